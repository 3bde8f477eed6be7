import assert from 'node:assert/strict'
import { createMany } from '../../../db/records/create.ts'
import { createOrganization, createTestDatabase, type TestDatabase } from '../../support/database.ts'
import { recordsOf, type TestRecords } from '../../support/records.ts'

/** More than one statement can write. */
const CONTACTS = 2_300

describe('deleting a company with many contacts', () => {
  let db: TestDatabase
  let records: TestRecords
  let company: string

  before(async () => {
    db = await createTestDatabase()
    records = recordsOf(db, await createOrganization(db))
    company = (await records.create('companies', { name: 'Acme' })).id
    const inputs = Array.from({ length: CONTACTS }, (_, i) => ({
      first_name: `Ada ${i}`,
      company_id: company,
      do_not_contact: false,
    }))
    await records.tenant((tx) => createMany(tx, 'contacts', inputs))
  })
  after(() => db.drop())

  const count = (table: string, where: object) =>
    records.tenant(async (tx) => {
      const rows = tx.trx(table).where({ organization_id: tx.organizationId, ...where })
      return Number((await rows.count({ n: '*' }))[0]!.n)
    })
  const all = async () => ({
    linked: await count('contacts', { company_id: company }),
    history: await count('record_history', { object: 'contact', action: 'updated' }),
    events: await count('events', { name: 'contact.updated' }),
  })

  it('clears their reference, each with its version, history and event', async () => {
    await records.delete('companies', company)
    assert.deepEqual(await all(), { linked: 0, history: CONTACTS, events: CONTACTS })
    assert.equal(await count('contacts', { version: 2 }), CONTACTS)
    const [one] = (await records.list('contacts', { limit: 1 })).data
    const [, cleared] = await records.historyOf(one!.id)
    assert.deepEqual(cleared.changes, { company_id: { from: company, to: null } })
    const [, told] = await records.eventsOf(one!.id)
    assert.deepEqual([told.previous, told.data], [{ company_id: company }, one])
  })

  it('is undone by a restore, except for contacts that moved to another company', async () => {
    const other = (await records.create('companies', { name: 'Other' })).id
    const [gone] = (await records.list('contacts', { limit: 1 })).data
    await records.update('contacts', gone!.id, { company_id: other })
    await records.restore('companies', company)
    assert.deepEqual(await all(), { linked: CONTACTS - 1, history: 2 * CONTACTS, events: 2 * CONTACTS })
    assert.equal((await records.get('contacts', gone!.id)).company_id, other)
  })
})
