import assert from 'node:assert/strict'
import { compareChanges } from '../../../db/records/lists/changes.ts'
import { createList, getList } from '../../../db/records/lists/lists.ts'
import { listPasses } from '../../../db/records/lists/passes.ts'
import { createOrganization, createTestDatabase, type TestDatabase } from '../../support/database.ts'
import { matchAll, memberEvents, settleLists } from '../../support/record-lists.ts'
import { filtersOf, recordsOf, type TestRecords } from '../../support/records.ts'

const HOP = { 'company.industry': 'software' }
const OWN = { lead_status: 'new' }
/** A contact that the second finds. */
const ADA = { first_name: 'Ada', ...OWN }

describe('lists whose filters cannot be compared', () => {
  let db: TestDatabase
  let organizationId: string
  let records: TestRecords
  before(async () => {
    db = await createTestDatabase()
  })
  beforeEach(async () => {
    organizationId = await createOrganization(db)
    records = recordsOf(db, organizationId)
  })
  after(() => db?.drop())

  const add = async (query: Record<string, string>): Promise<string> => {
    const filters = filtersOf('contacts', query)
    const selection = { sort: 'created_at', order: 'desc' as const, match: 'all' as const, filters }
    const list = { entity: 'contacts' as const, name: 'x', description: null, filter: { query, selection } }
    return (await records.tenant((tx) => createList(tx, list))).id
  }
  const list = (id: string) => records.tenant((tx) => getList(tx, id))
  const dueAt = async (id: string) => (await db.system('lists').where({ id }).first('due_at')).due_at
  const setDue = (ids: string[], due_at = new Date()) =>
    db.system('lists').whereIn('id', ids).update({ due_at })
  /** While a statement that reads companies waits, as if it had many to read. */
  const withSlowCompanies = (work: () => Promise<void>) =>
    db.asOwner(async (client) => {
      await client.query('begin; lock table companies in access exclusive mode')
      await work()
      await client.query('rollback')
    })
  const inSoftware = async () => (await records.create('companies', { name: 'A', industry: 'software' })).id

  it('in time are not compared with further changes, and with all records later', async () => {
    const slow = await add(HOP)
    const quick = await add(OWN)
    await settleLists(db)
    const values = { ...ADA, company_id: await inSoftware() }
    const first = await records.create('contacts', values)
    const second = await records.create('contacts', { ...values, lead_status: null })
    await matchAll(db)
    await withSlowCompanies(() => settleLists(db))
    assert.equal((await list(slow)).problem, 'the filter takes too long')
    assert.deepEqual(
      (await memberEvents(db, quick)).map(({ data }) => data.id),
      [first.id],
    )
    const due = await dueAt(slow)
    await records.update('contacts', second.id, OWN)
    await matchAll(db)
    await withSlowCompanies(() => settleLists(db))
    assert.deepEqual(await dueAt(slow), due, 'it was left alone')
    assert.equal((await memberEvents(db, quick)).length, 2)
    assert.deepEqual(await memberEvents(db, slow), [])

    await setDue([slow])
    await settleLists(db)
    assert.deepEqual([(await list(slow)).problem, (await list(slow)).member_count], [null, 2])
    const events = await memberEvents(db, slow)
    assert.deepEqual(
      events.map(({ name, data }) => [name, data.cause]),
      [
        ['list.entered', 'comparison'],
        ['list.entered', 'comparison'],
      ],
    )
  })

  it('in time together are left to passes, too, and those that had a problem come last', async () => {
    const slow = [await add(HOP), await add(HOP), await add(HOP)]
    const quick = await add(OWN)
    await settleLists(db)
    const first = await records.create('contacts', { ...ADA, company_id: await inSoftware() })
    await matchAll(db)
    const compare = () => records.tenant((tx) => compareChanges(tx, 100))
    await withSlowCompanies(async () => assert.ok((await compare()) > 0))
    const problems = () => Promise.all([...slow, quick].map(async (id) => (await list(id)).problem))
    const tooLong = slow.map(() => 'the filter takes too long')
    assert.deepEqual(await problems(), [...tooLong, 'the filters of all lists take too long together'])

    await setDue([quick])
    await settleLists(db)
    // As an hour later, before their passes.
    await setDue(slow)
    const second = await records.create('contacts', { ...ADA, company_id: first.company_id as string })
    await matchAll(db)
    await withSlowCompanies(async () => assert.ok((await compare()) > 0))
    assert.deepEqual(await problems(), [...tooLong, null])
    await setDue(slow)
    await settleLists(db)
    for (const id of [...slow, quick])
      assert.deepEqual(
        new Set((await memberEvents(db, id)).map(({ data }) => data.id)),
        new Set([first.id, second.id]),
      )
  })

  it('for an unknown reason have a problem, and the others go on', async () => {
    const broken = await add(OWN)
    const other = await add(OWN)
    await settleLists(db)
    await db
      .system('lists')
      .where({ id: broken })
      .update({ selection: JSON.stringify({ filters: null }) })
    await records.create('contacts', ADA)
    await settleLists(db)
    assert.equal((await memberEvents(db, other)).length, 1)
    assert.equal((await list(broken)).problem, 'the filter could not be compared')
  })

  it('do not keep new ones from being filled: who is due first has the turn', async () => {
    const old = await add(HOP)
    const filling = await add(OWN)
    const claimed = async () => {
      const jobs = await listPasses.claim(db.system, 100)
      for (const job of jobs) await listPasses.takeTurn(db.system, job, async () => false)
      return jobs.filter(({ organization_id }) => organization_id === organizationId).map(({ id }) => id)
    }
    const now = Date.now()
    await setDue([old], new Date(now - 1_000))
    await setDue([filling], new Date(now - 2_000))
    assert.deepEqual(await claimed(), [filling])
    await setDue([filling], new Date(now + 3_600_000))
    assert.deepEqual(await claimed(), [old])
  })
})
