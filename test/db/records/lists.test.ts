import assert from 'node:assert/strict'
import fc from 'fast-check'
import { eraseContact } from '../../../db/erasure/erasures.ts'
import { SYSTEM } from '../../../db/model/actor.ts'
import type { KindName } from '../../../db/model/records/kind.ts'
import { createDefinition } from '../../../db/records/custom-fields/definitions.ts'
import { compareChanges } from '../../../db/records/lists/changes.ts'
import { createList, deleteList, getList, updateList } from '../../../db/records/lists/lists.ts'
import { changeMembers } from '../../../db/records/lists/members.ts'
import { comparePage, listPasses } from '../../../db/records/lists/passes.ts'
import { mergeRecords } from '../../../db/records/merge.ts'
import { purgeDeletedOf } from '../../../db/records/purge.ts'
import type { Selection } from '../../../db/records/selection.ts'
import { updateRecord } from '../../../db/records/update.ts'
import { untilBlocked } from '../../support/blocked.ts'
import { createOrganization, createTestDatabase, type TestDatabase } from '../../support/database.ts'
import { matchAll, memberEvents, settleLists } from '../../support/record-lists.ts'
import { filtersOf, recordsOf, type TestRecords } from '../../support/records.ts'

const selectionOf = (kind: KindName, query: Record<string, string>): Selection => {
  const { q, match = 'all', ...filters } = query
  return {
    sort: 'created_at',
    order: 'desc',
    match: match as 'all' | 'any',
    filters: filtersOf(kind, filters),
    ...(q !== undefined && { q }),
  }
}

const add = (records: TestRecords, entity: KindName, query?: Record<string, string>) =>
  records.tenant((tx) =>
    createList(tx, {
      entity,
      name: 'List',
      description: null,
      ...(query && { filter: { query, selection: selectionOf(entity, query) } }),
    }),
  )

/** What the members are by the list of records. */
const idsOf = async (records: TestRecords, kind: KindName, query: Record<string, string>) =>
  (await records.list(kind, selectionOf(kind, query))).data.map(({ id }) => id).sort()

const shown = (events: Awaited<ReturnType<typeof memberEvents>>) =>
  events.map(({ name, data }) => [name, data.id, data.cause])

describe('lists of records', () => {
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

  const list = (id: string) => records.tenant((tx) => getList(tx, id))
  const change = (id: string, members: { add?: string[]; remove?: string[] }) =>
    records.tenant((tx) => changeMembers(tx, id, { add: [], remove: [], ...members }))

  it('by a filter have the records that match, without events of the first ones, then one for each change', async () => {
    const old = await records.create('deals', { name: 'Old', stage: 'won' })
    const { id } = await add(records, 'deals', { stage: 'won' })
    const made = await records.create('deals', { name: 'Made while it is filled', stage: 'won' })
    await settleLists(db, { page: 1 })
    assert.deepEqual(await memberEvents(db, id), [])
    assert.deepEqual([(await list(id)).member_count, (await list(id)).filled_at !== null], [2, true])

    const next = await records.create('deals', { name: 'New', stage: 'won' })
    await records.update('deals', old.id, { name: 'Older' })
    await records.update('deals', made.id, { stage: 'lost' })
    await settleLists(db)
    await settleLists(db)
    const events = await memberEvents(db, id)
    assert.deepEqual(
      new Set(shown(events)),
      new Set([
        ['list.entered', next.id, 'record'],
        ['list.left', made.id, 'record'],
      ]),
    )
    assert.equal(events.length, 2)
    const [left] = events.filter(({ name }) => name === 'list.left')
    assert.deepEqual(
      [left!.data.list, left!.data.entity, left!.data.record.stage],
      [{ id, name: 'List' }, 'deals', 'lost'],
    )
    assert.deepEqual(await idsOf(records, 'deals', { list_id: id }), [old.id, next.id].sort())
    assert.equal((await list(id)).member_count, 2)
  })

  it('have the records that the list of records has, and each event once, whatever is done to records', async () => {
    const NAMES = ['ape', 'Bee', 'bee cat']
    const parts = fc.constantFrom<Record<string, string>>(
      { stage: 'won' },
      { 'amount[gte]': '10' },
      { 'name[contains]': 'be' },
      { 'tags[has_not]': 'vip' },
      { 'company.industry': 'software' },
      { 'company_id[is_null]': 'true' },
      { 'associations.contacts[is_null]': 'false' },
      { q: 'bee' },
    )
    const query = fc
      .tuple(parts, parts, fc.constantFrom('all', 'any'))
      .map(([a, b, match]): Record<string, string> => ({ ...a, ...b, match }))
    const values = fc.record(
      {
        name: fc.constantFrom(...NAMES),
        stage: fc.constantFrom('lead', 'won'),
        amount: fc.constantFrom('5', '10'),
        tags: fc.constantFrom(['vip'], []),
        company: fc.constantFrom(0, 1, null),
      },
      { requiredKeys: ['name'] },
    )
    const place = fc.nat({ max: 9 })
    const step = fc.oneof(
      fc.record({ do: fc.constant('create' as const), values }),
      fc.record({ do: fc.constant('update' as const), at: place, values }),
      fc.record({ do: fc.constantFrom('delete' as const, 'restore' as const, 'link' as const), at: place }),
      fc.record({ do: fc.constant('merge' as const), at: place, from: place }),
      fc.record({ do: fc.constant('company' as const), industry: fc.constantFrom('software', 'steel') }),
      fc.record({ do: fc.constant('settle' as const) }),
    )
    await fc.assert(
      fc.asyncProperty(
        fc.array(values, { minLength: 2, maxLength: 4 }),
        fc.array(query, { minLength: 1, maxLength: 3 }),
        fc.array(step, { minLength: 3, maxLength: 12 }),
        async (first, queries, steps) => {
          const own = await createOrganization(db)
          const on = recordsOf(db, own)
          const companies = [
            await on.create('companies', { name: 'A', industry: 'software' }),
            await on.create('companies', { name: 'B', industry: 'steel' }),
          ]
          const contact = await on.create('contacts', { first_name: 'Ada' })
          const deals: string[] = []
          const given = ({ company, ...rest }: Record<string, unknown>) => ({
            ...rest,
            ...(company !== undefined && {
              company_id: company === null ? null : companies[company as number]!.id,
            }),
          })
          for (const one of first) deals.push((await on.create('deals', given(one))).id)
          const lists: { id: string; query: Record<string, string> }[] = []
          for (const query of queries) lists.push({ id: (await add(on, 'deals', query)).id, query })
          const fixed = await add(on, 'deals')
          await on.tenant((tx) => changeMembers(tx, fixed.id, { add: deals, remove: [] }))
          await settleLists(db)
          const members = new Map<string, Set<string>>()
          for (const { id, query } of lists) members.set(id, new Set(await idsOf(on, 'deals', query)))
          for (const one of steps) {
            const at = 'at' in one ? deals[one.at % deals.length]! : ''
            try {
              if (one.do === 'create') deals.push((await on.create('deals', given(one.values))).id)
              else if (one.do === 'update') await on.update('deals', at, given(one.values))
              else if (one.do === 'delete') await on.delete('deals', at)
              else if (one.do === 'restore') await on.restore('deals', at)
              else if (one.do === 'link') await on.link('deals', at, 'contacts', contact.id)
              else if (one.do === 'merge')
                await on.tenant((tx) => mergeRecords(tx, 'deals', at, deals[one.from % deals.length]!))
              else if (one.do === 'company')
                await on.update('companies', companies[0]!.id, { industry: one.industry })
              else await settleLists(db)
            } catch (error) {
              // The record is deleted, or merged with itself.
              assert.match(String((error as { type?: string }).type), /not_found|validation_error/)
            }
          }
          // As an hour later.
          await db
            .system('lists')
            .where({ organization_id: own, drifts: true })
            .update({ due_at: new Date() })
          await settleLists(db, { page: 3 })
          for (const { id, query } of [...lists, { id: fixed.id, query: { list_id: fixed.id } }]) {
            const expected = await idsOf(on, 'deals', query)
            assert.deepEqual(await idsOf(on, 'deals', { list_id: id }), expected, JSON.stringify(query))
            const { member_count } = await on.tenant((tx) => getList(tx, id))
            assert.equal(member_count, expected.length)
            const told = members.get(id) ?? new Set()
            for (const { name, data } of await memberEvents(db, id)) {
              // An event that changes nothing would be the second of a change.
              assert.equal(told.has(data.id), name === 'list.left', `${name} ${data.id}`)
              if (name === 'list.entered') told.add(data.id)
              else told.delete(data.id)
            }
            assert.deepEqual([...told].sort(), expected)
          }
        },
      ),
      { numRuns: 15 },
    )
  })

  it('that are static lose deleted records, and get restored ones and the winners of merges', async () => {
    const { id } = await add(records, 'contacts')
    const [a, b, c] = await Promise.all(
      ['A', 'B', 'C'].map((first_name) => records.create('contacts', { first_name })),
    )
    assert.deepEqual(await change(id, { add: [a!.id, b!.id] }), [
      { id: a!.id, status: 'added' },
      { id: b!.id, status: 'added' },
    ])
    assert.deepEqual(await change(id, { add: [a!.id] }), [{ id: a!.id, status: 'unchanged' }])
    await records.delete('contacts', a!.id)
    await settleLists(db)
    assert.deepEqual(await idsOf(records, 'contacts', { list_id: id }), [b!.id])
    assert.equal((await list(id)).member_count, 1)
    await records.restore('contacts', a!.id)
    await settleLists(db)
    await records.tenant((tx) => mergeRecords(tx, 'contacts', c!.id, b!.id))
    await settleLists(db)
    assert.deepEqual(await idsOf(records, 'contacts', { list_id: id }), [a!.id, c!.id].sort())
    const events = shown(await memberEvents(db, id))
    assert.deepEqual(events.slice(0, 4), [
      ['list.entered', a!.id, 'members'],
      ['list.entered', b!.id, 'members'],
      ['list.left', a!.id, 'record'],
      ['list.entered', a!.id, 'record'],
    ])
    assert.deepEqual(
      new Set(events.slice(4)),
      new Set([
        ['list.entered', c!.id, 'record'],
        ['list.left', b!.id, 'record'],
      ]),
    )
    assert.deepEqual(await change(id, { remove: [a!.id, b!.id, c!.id] }), [
      { id: a!.id, status: 'removed' },
      { id: b!.id, status: 'removed' },
      { id: c!.id, status: 'removed' },
    ])
    // The loser had left.
    assert.equal((await memberEvents(db, id)).length, 8)
    assert.equal((await list(id)).member_count, 0)
  })

  it('are compared by one worker only, also if two take the same changes', async () => {
    const { id } = await add(records, 'deals', { stage: 'won' })
    await settleLists(db)
    for (let n = 0; n < 5; n++) await records.create('deals', { name: String(n), stage: 'won' })
    await matchAll(db)
    const queued = await db.system('list_changes').where({ organization_id: organizationId })
    const compare = () => db.tenant(organizationId, SYSTEM, (tx) => compareChanges(tx, 100))
    const compared = await Promise.all([compare(), compare(), compare()])
    assert.equal(
      compared.reduce((sum, n) => sum + n),
      queued.length,
    )
    assert.equal((await memberEvents(db, id)).length, 5)
  })

  it('leave nothing behind where comparing fails: the changes stay queued, no event is raised', async () => {
    const { id } = await add(records, 'deals', { stage: 'won' })
    await settleLists(db)
    await records.create('deals', { name: 'A', stage: 'won' })
    await matchAll(db)
    await assert.rejects(
      db.tenant(organizationId, SYSTEM, async (tx) => {
        assert.ok((await compareChanges(tx, 10)) > 0)
        throw new Error('killed')
      }),
      /killed/,
    )
    assert.deepEqual(await memberEvents(db, id), [])
    assert.equal((await list(id)).member_count, 0)
    await settleLists(db)
    assert.equal((await memberEvents(db, id)).length, 1)
  })

  it('change with the time by passes, whose events have the cause comparison', async () => {
    const query = { 'expected_close_date[lte]': 'yesterday' }
    const { id } = await add(records, 'deals', query)
    const tomorrow = new Date(Date.now() + 2 * 86_400_000).toISOString().slice(0, 10)
    const deal = await records.create('deals', { name: 'A', expected_close_date: tomorrow })
    await settleLists(db)
    assert.deepEqual(await memberEvents(db, id), [])
    const row = () => db.system('lists').where({ id })
    assert.ok((await row().first('due_at')).due_at > new Date(), 'it is compared again later')
    // The day has come.
    await db.system('deals').where({ id: deal.id }).update({ expected_close_date: '2020-01-01' })
    await row().update({ due_at: new Date() })
    await settleLists(db)
    assert.deepEqual(shown(await memberEvents(db, id)), [['list.entered', deal.id, 'comparison']])
  })

  it('whose members change with their own fields alone are not compared again', async () => {
    const { id } = await add(records, 'deals', { stage: 'won', 'created_at[gte]': '2026-01-01T00:00:00Z' })
    await settleLists(db)
    assert.equal((await db.system('lists').where({ id }).first('due_at')).due_at, null)
  })

  it('are filled in pages, each of which stores its progress', async () => {
    for (let n = 0; n < 5; n++) await records.create('deals', { name: String(n), stage: 'won' })
    const { id } = await add(records, 'deals', { stage: 'won' })
    const [job] = await listPasses.claim(db.system, 10)
    const page = () => db.tenant(organizationId, SYSTEM, (tx) => comparePage(tx, job!, 2))
    assert.deepEqual([await page(), (await list(id)).member_count], [true, 2])
    assert.deepEqual([await page(), (await list(id)).member_count], [true, 4])
    assert.deepEqual([await page(), (await list(id)).member_count], [false, 5])
    assert.ok((await list(id)).filled_at)
    assert.equal(await page(), false)
    assert.deepEqual(await memberEvents(db, id), [])
  })

  it('say why they cannot be compared, and go on once they can', async () => {
    const { id } = await add(records, 'deals', { 'custom_fields.size[contains]': 'l' })
    await settleLists(db)
    const row = () => db.system('lists').where({ id })
    await records.tenant((tx) => createDefinition(tx, 'deals', 'size', { type: 'number' }))
    await records.create('deals', { name: 'A' })
    await settleLists(db)
    assert.match((await list(id)).problem!, /contains is not an operator of the type number/)
    assert.ok((await row().first('due_at')).due_at > new Date())
    const query = { 'custom_fields.size[gte]': '3' }
    await records.tenant((tx) =>
      updateList(tx, id, { filter: { query, selection: selectionOf('deals', query) } }),
    )
    const deal = await records.create('deals', { name: 'B', custom_fields: { size: 4 } })
    await settleLists(db)
    assert.deepEqual([(await list(id)).problem, (await list(id)).member_count], [null, 1])
    assert.deepEqual(await idsOf(records, 'deals', { list_id: id }), [deal.id])
  })

  it('that are deleted are in no filter at once, and then gone with their members', async () => {
    const deal = await records.create('deals', { name: 'A', stage: 'won' })
    const { id } = await add(records, 'deals', { stage: 'won' })
    await settleLists(db)
    await records.tenant((tx) => deleteList(tx, id))
    assert.deepEqual(await idsOf(records, 'deals', { list_id: id }), [])
    assert.deepEqual(await idsOf(records, 'deals', { 'list_id[is_null]': 'true' }), [deal.id])
    await assert.rejects(list(id), { type: 'not_found' })
    await settleLists(db, { page: 1 })
    assert.equal(await db.system('lists').where({ id }).first('id'), undefined)
    assert.equal(await db.system('list_members').where({ list_id: id }).first('record_id'), undefined)
    assert.deepEqual(await memberEvents(db, id), [])
  })

  it('forget records that are purged', async () => {
    const { id } = await add(records, 'contacts')
    const contact = await records.create('contacts', { first_name: 'A' })
    await change(id, { add: [contact.id] })
    await records.delete('contacts', contact.id)
    await settleLists(db)
    const rows = () => db.system('list_members').where({ list_id: id })
    assert.equal((await rows()).length, 1, 'until then, a restore brings it back')
    await db
      .system('contacts')
      .where({ id: contact.id })
      .update({ deleted_at: new Date(0) })
    await purgeDeletedOf(db.system, organizationId)
    assert.deepEqual(await rows(), [])
    assert.equal((await list(id)).member_count, 0)
  })

  it('keep nothing of a person who is erased while the record is compared', async () => {
    const { id } = await add(records, 'contacts', { lead_status: 'new' })
    await settleLists(db)
    const contact = await records.create('contacts', { first_name: 'Eve', lead_status: 'new' })
    await matchAll(db)
    let compared: Promise<number> | undefined
    await records.tenant(async (tx) => {
      await eraseContact(tx, contact.id, { byName: false })
      compared = db.tenant(organizationId, SYSTEM, (other) => compareChanges(other, 10))
      await untilBlocked(db)
    })
    assert.ok((await compared!) > 0)
    assert.deepEqual(await memberEvents(db, id), [])
    assert.equal(await db.system('list_members').where({ list_id: id }).first('record_id'), undefined)
    assert.equal((await list(id)).member_count, 0)
  })

  it('by a filter are limited by the plan', async () => {
    await db
      .system('organizations')
      .where({ id: organizationId })
      .update({ limits: { filter_lists: 2 } })
    const query = { stage: 'won' }
    await add(records, 'deals', query)
    const { id } = await add(records, 'deals', query)
    await assert.rejects(add(records, 'deals', query), {
      type: 'plan_limit',
      message: 'the plan allows 2 lists by a filter, and all are in use',
    })
    await add(records, 'deals')
    await records.tenant((tx) => deleteList(tx, id))
    await add(records, 'deals', query)
  })

  it('raise events with the actor and the run of the change', async () => {
    const { id } = await add(records, 'deals', { stage: 'won' })
    await settleLists(db)
    const user = { type: 'user' as const, id: '01890a5d-ac96-774b-bcce-b302099a8057' }
    const deal = await records.create('deals', { name: 'A' })
    await db.tenant(organizationId, user, (tx) => updateRecord(tx, 'deals', deal.id, { stage: 'won' }))
    await settleLists(db)
    const [event] = await memberEvents(db, id)
    assert.deepEqual(event!.actor, user)
  })
})
