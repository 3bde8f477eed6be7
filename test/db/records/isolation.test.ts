import assert from 'node:assert/strict'
import { kindNames } from '../../../db/model/records/kinds/index.ts'
import { finderBy } from '../../../db/records/find-by-key.ts'
import {
  createMember,
  createOrganization,
  createTestDatabase,
  type TestDatabase,
} from '../../support/database.ts'
import { createExample } from '../../support/example-of.ts'
import { recordsOf, type TestRecords } from '../../support/records.ts'

describe('organizations', () => {
  let db: TestDatabase
  let mine: TestRecords
  let theirs: TestRecords
  let contact: string
  let company: string

  before(async () => {
    db = await createTestDatabase()
    mine = recordsOf(db, await createOrganization(db))
    theirs = recordsOf(db, await createOrganization(db))
    company = (await theirs.create('companies', { name: 'Secret Ltd', domain: 'secret.example' })).id
    const fields = { first_name: 'Secret', email: 's@secret.example', company_id: company, external_id: 'x' }
    contact = (await theirs.create('contacts', fields)).id
    for (const kind of kindNames) await createExample(kind, theirs.create)
  })
  after(() => db.drop())

  it("do not see each other's records in any operation", async () => {
    const notFound = (error: { type?: string }) => error.type === 'not_found'
    await assert.rejects(mine.get('contacts', contact), notFound)
    await assert.rejects(mine.update('contacts', contact, { first_name: 'Mine' }), notFound)
    await assert.rejects(mine.delete('contacts', contact), notFound)
    assert.equal((await mine.list('contacts', { q: 'secret' })).total, 0)
    assert.equal((await mine.list('companies')).total, 0)
    const found = await mine.tenant(async (tx) =>
      (await finderBy(tx, 'contacts', 'email')).find(['s@secret.example']),
    )
    assert.deepEqual([...found], [])
    const own = await mine.create('contacts', { first_name: 'Own', external_id: 'x' })
    await assert.rejects(mine.link('contacts', own.id, 'companies', company), notFound)
    await assert.rejects(mine.update('contacts', own.id, { company_id: company }), {
      type: 'validation_error',
    })
    const user = await createMember(db, await theirs.tenant(async (tx) => tx.organizationId))
    await theirs.update('contacts', contact, { owner_id: user })
    await assert.rejects(mine.update('contacts', own.id, { owner_id: user }), { type: 'validation_error' })
    await theirs.delete('companies', company)
    await assert.rejects(mine.restore('companies', company), notFound)
    await theirs.restore('companies', company)
  })

  for (const table of [...kindNames, 'record_history', 'associations'])
    it(`see no rows of others in ${table}, even by a query without the organization`, async () => {
      const rows = (records: TestRecords) => records.tenant((tx) => tx.trx(table).select('organization_id'))
      assert.ok((await rows(theirs)).length > 0)
      const own = await mine.tenant(async (tx) => tx.organizationId)
      for (const row of await rows(mine)) assert.equal(row.organization_id, own)
    })

  it('change no rows of others, even by a statement without the organization', async () => {
    for (const table of [...kindNames, 'associations'])
      await mine.tenant((tx) => tx.trx(table).whereNot('organization_id', tx.organizationId).delete())
    await assert.rejects(
      mine.tenant(async (tx) => {
        const other = await theirs.tenant(async ({ organizationId }) => organizationId)
        await tx.trx('associations').insert({
          organization_id: other,
          a_entity: 'companies',
          a_id: company,
          b_entity: 'contacts',
          b_id: company,
        })
      }),
      /row-level security/,
    )
    assert.equal((await theirs.get('contacts', contact)).first_name, 'Secret')
    for (const kind of kindNames) assert.ok((await theirs.list(kind)).data.length > 0)
  })
})
