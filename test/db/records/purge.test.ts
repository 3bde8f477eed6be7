import assert from 'node:assert/strict'
import { listHistory } from '../../../db/records/history.ts'
import { mergeRecords } from '../../../db/records/merge.ts'
import { createOrganization, createTestDatabase, type TestDatabase } from '../../support/database.ts'
import { purgeAll } from '../../support/purge.ts'
import { recordsOf, type TestRecords } from '../../support/records.ts'

describe('the purge of records', () => {
  let db: TestDatabase
  let organizationId: string
  let records: TestRecords

  before(async () => {
    db = await createTestDatabase()
  })
  after(() => db.drop())
  beforeEach(async () => {
    organizationId = await createOrganization(db)
    records = recordsOf(db, organizationId)
  })

  const age = (id: string, days: number) =>
    db
      .system('contacts')
      .where({ organization_id: organizationId, id })
      .update({ deleted_at: db.system.raw(`now() - interval '${days} days'`) })
  const purge = () => purgeAll(db)
  const left = async (table: string, column: string, id: string) =>
    (await db.system(table).where({ organization_id: organizationId, [column]: id })).length

  it('removes only records deleted over 30 days ago, with their histories and links', async () => {
    const company = await records.create('companies', { name: 'C' })
    const [old, recent, kept] = await Promise.all(
      ['old', 'recent', 'kept'].map((name) =>
        records.create('contacts', { first_name: name, company_id: company.id }),
      ),
    )
    for (const { id } of [old!, recent!]) await records.delete('contacts', id)
    await age(old!.id, 31)
    await age(recent!.id, 29)
    await purge()
    for (const [id, rows, entries] of [
      [old!.id, 0, 0],
      [recent!.id, 1, 2],
      [kept!.id, 1, 1],
    ] as const) {
      assert.equal(await left('contacts', 'id', id), rows)
      assert.equal(await left('record_history', 'record_id', id), entries)
      const links = (await left('associations', 'a_id', id)) + (await left('associations', 'b_id', id))
      assert.equal(links, rows)
    }
    assert.equal((await records.restore('contacts', recent!.id)).first_name, 'recent')
    await assert.rejects(records.restore('contacts', old!.id), /not found/)
  })

  it('keeps the history of a merged record as long as that of the winner', async () => {
    const winner = await records.create('contacts', { first_name: 'W' })
    const loser = await records.create('contacts', { first_name: 'L' })
    await records.tenant((tx) => mergeRecords(tx, 'contacts', winner.id, loser.id))
    await age(loser.id, 31)
    await purge()
    assert.equal(await left('contacts', 'id', loser.id), 0)
    await assert.rejects(records.get('contacts', loser.id), { details: { merged_into: winner.id } })
    const query = { limit: 50, offset: 0, order: 'asc' } as const
    const { data } = await records.tenant((tx) => listHistory(tx, 'contacts', winner.id, query))
    assert.equal(data.filter(({ record_id }) => record_id === loser.id).length, 2)

    await records.delete('contacts', winner.id)
    await age(winner.id, 31)
    await purge()
    for (const id of [winner.id, loser.id]) assert.equal(await left('record_history', 'record_id', id), 0)
    assert.equal(await left('merged_records', 'id', loser.id), 0)
  })

  it('takes the consents of a contact along, which would belong to nobody', async () => {
    const [old, kept] = await Promise.all(
      ['old', 'kept'].map((first_name) => records.create('contacts', { first_name })),
    )
    const consentOf = (contact_id: string) =>
      records.create('consents', { contact_id, purpose: 'newsletter', channel: 'email', state: 'granted' })
    const [gone, other] = await Promise.all([consentOf(old!.id), consentOf(kept!.id)])
    const cutOff = await consentOf((await records.create('contacts', { first_name: 'recent' })).id)
    await records.delete('contacts', String(cutOff.contact_id))
    await records.delete('contacts', old!.id)
    await age(old!.id, 31)
    await purge()
    for (const [id, rows] of [
      [gone!.id, 0],
      [other!.id, 1],
      [cutOff.id, 1],
    ] as const)
      assert.equal(await left('consents', 'id', id), rows)
    assert.equal(await left('record_history', 'record_id', gone!.id), 0)
  })

  it('leaves the consents of another contact that are only linked with it, as that one can still be restored', async () => {
    const [first, last] = await Promise.all(
      ['first', 'last'].map((first_name) => records.create('contacts', { first_name })),
    )
    const moved = await records.create('consents', {
      contact_id: first!.id,
      purpose: 'newsletter',
      channel: 'email',
      state: 'withdrawn',
    })
    await records.update('consents', moved.id, { contact_id: last!.id })
    await records.link('consents', moved.id, 'contacts', first!.id)
    await records.delete('contacts', first!.id)
    await records.delete('contacts', last!.id)
    await age(first!.id, 31)
    await purge()
    assert.equal(await left('contacts', 'id', first!.id), 0)
    const [row] = await db.system('consents').where({ organization_id: organizationId, id: moved.id })
    assert.equal(row?.deleted_at, null)
  })
})
