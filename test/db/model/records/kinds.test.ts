import assert from 'node:assert/strict'
import { kindNames, kinds } from '../../../../db/model/records/kinds/index.ts'
import { createSchema } from '../../../../db/model/records/schemas.ts'
import { createRecord } from '../../../../db/records/create.ts'
import { updateRecord } from '../../../../db/records/update.ts'
import { mergeableKinds } from '../../../../workflows/shared/record-kinds.ts'
import {
  createMember,
  createOrganization,
  createTestDatabase,
  type TestDatabase,
} from '../../../support/database.ts'
import { exampleOf } from '../../../support/example-of.ts'
import { recordsOf, type TestRecords } from '../../../support/records.ts'

describe('kinds', () => {
  let db: TestDatabase
  let records: TestRecords
  let organizationId: string
  let user: string

  before(async () => {
    db = await createTestDatabase()
    organizationId = await createOrganization(db, { settings: { currency: 'CHF' } })
    records = recordsOf(db, organizationId)
    user = await createMember(db, organizationId)
  })
  after(() => db.drop())

  const eventsOf = async (id: string) => (await records.eventsOf(id)).map(({ name }) => name)
  const wrong = (work: Promise<unknown>, ...names: string[]) =>
    assert.rejects(work, (error: { details?: { issues?: { loc: string[] }[] } }) => {
      assert.deepEqual(error.details?.issues?.map(({ loc }) => loc[1]).sort(), names.sort())
      return true
    })

  for (const kind of kindNames) {
    const { object, fields, identity } = kinds[kind]
    it(`${kind} are created, changed, found, deleted and restored`, async () => {
      const example = await exampleOf(kind, records.create)
      const created = await records.create(kind, example)
      assert.equal(created.object, object)
      for (const [name, value] of Object.entries(example)) assert.equal(created[name], value, name)
      assert.deepEqual(await records.get(kind, created.id), created)
      const changed = await records.update(kind, created.id, { tags: ['vip'], owner_id: user })
      assert.deepEqual([changed.version, changed.owner_id], [2, user])
      const said = Object.keys(example).filter((name) => fields[name]!.type === 'text')
      const found = await records.list(kind, { q: said.map((name) => example[name]).join(' ') })
      assert.deepEqual(found.data, [changed])
      await records.delete(kind, created.id)
      const restored = await records.restore(kind, created.id)
      assert.deepEqual({ ...restored, updated_at: changed.updated_at }, { ...changed, version: 4 })
      const expected = ['created', 'updated', 'deleted', 'restored'].map((action) => `${object}.${action}`)
      const own = (await eventsOf(created.id)).filter((name) => expected.includes(name))
      assert.deepEqual(own, expected)
      assert.deepEqual(
        (await records.historyOf(created.id)).map(({ version }) => version),
        [1, 2, 3, 4],
      )
    })

    it(`${kind} belong to a member of the organization, or to nobody`, async () => {
      const stranger = await createMember(db, await createOrganization(db))
      const example = await exampleOf(kind, records.create)
      await wrong(records.create(kind, { ...example, owner_id: stranger }), 'owner_id')
    })

    if (identity)
      it(`${kind} are not merged, as two with one key are none`, () =>
        assert.ok(!mergeableKinds.some((one) => one === kind)))
  }

  describe('a deal', () => {
    const deal = (fields: object) => records.create('deals', { name: 'Engine', ...fields })
    const change = (id: string, fields: object) => records.update('deals', id, { ...fields })

    it('has the probability of its stage by default', async () => {
      const stages = { lead: 10, qualified: 25, proposal: 50, negotiation: 75, won: 100, lost: 0 }
      for (const [stage, probability] of Object.entries(stages))
        assert.equal((await deal({ stage })).probability, probability)
      const { id, probability } = await deal({ stage: 'qualified', probability: 40 })
      assert.equal(probability, 40)
      assert.equal((await change(id, { name: 'Engine 2' })).probability, 40)
      assert.equal((await change(id, { stage: 'proposal' })).probability, 50)
      assert.equal((await change(id, { stage: 'negotiation', probability: 60 })).probability, 60)
      assert.equal((await change(id, { probability: null })).probability, 75)
    })

    it('starts as a lead in the default pipeline, in the currency of the organization', async () => {
      const { stage, pipeline, currency, amount, closed_at } = await deal({ amount: 5 })
      assert.deepEqual(
        [stage, pipeline, currency, amount, closed_at],
        ['lead', 'default', 'CHF', '5.00', null],
      )
    })

    it('is closed while it is won or lost', async () => {
      const won = await deal({ stage: 'won' })
      assert.equal(won.closed_at, won.created_at)
      const open = await change(won.id, { stage: 'negotiation' })
      assert.equal(open.closed_at, null)
      const lost = await change(won.id, { stage: 'lost', lost_reason: 'Too expensive' })
      assert.equal(lost.closed_at, lost.updated_at)
      const later = await change(won.id, { lost_reason: 'Too late' })
      assert.equal(later.closed_at, lost.closed_at)
      const [, , third] = await records.historyOf(won.id)
      assert.deepEqual(Object.keys(third.changes).sort(), [
        'closed_at',
        'lost_reason',
        'outcome',
        'probability',
        'stage',
        'stage_changed_at',
      ])
    })

    it('raises events for a change of stage, and when won or lost', async () => {
      const { id } = await deal({})
      await change(id, { stage: 'won' })
      await change(id, { name: 'Engine 2' })
      await change(id, { stage: 'lost' })
      const moved = ['deal.updated', 'deal.stage_changed']
      const names = ['deal.created', ...moved, 'deal.won', 'deal.updated', ...moved, 'deal.lost']
      assert.deepEqual(await eventsOf(id), names)
      const won = (await records.eventsOf(id)).find(({ name }) => name === 'deal.won')
      assert.deepEqual([won.data.stage, won.previous.stage, won.previous.closed_at], ['won', 'lead', null])
      assert.deepEqual(await eventsOf((await deal({ stage: 'won' })).id), ['deal.created', 'deal.won'])
    })

    it('returns a date as written', async () => {
      const { id } = await deal({ expected_close_date: '2024-02-29' })
      assert.equal((await records.get('deals', id)).expected_close_date, '2024-02-29')
      const { data } = await records.list('deals', { sort: 'expected_close_date', limit: 1 })
      assert.equal(data[0]!.id, id)
    })
  })

  describe('a task', () => {
    it('is completed while done, and raises an event', async () => {
      const { id, status, priority, type } = await records.create('tasks', { title: 'Call' })
      assert.deepEqual([status, priority, type], ['todo', 'medium', 'todo'])
      const done = await records.update('tasks', id, { status: 'done' })
      assert.equal(done.completed_at, done.updated_at)
      const again = await records.update('tasks', id, { status: 'in_progress' })
      assert.equal(again.completed_at, null)
      assert.deepEqual(await eventsOf(id), ['task.created', 'task.updated', 'task.completed', 'task.updated'])
    })

    it('raises an event with its assignee', async () => {
      const other = await createMember(db, organizationId)
      const { id } = await records.create('tasks', { title: 'Call', assignee_id: user })
      await records.update('tasks', id, { assignee_id: other })
      await records.update('tasks', id, { assignee_id: null, title: 'Call again' })
      assert.deepEqual(await eventsOf(id), [
        'task.created',
        'task.assigned',
        'task.updated',
        'task.assigned',
        'task.updated',
      ])
    })

    it('accepts only members as assignee, and reports all issues at once', async () => {
      const stranger = await createMember(db, await createOrganization(db))
      const fields = { title: 'Call', assignee_id: stranger, owner_id: stranger }
      await wrong(records.create('tasks', fields), 'assignee_id', 'owner_id')
    })
  })

  describe('a note', () => {
    it('has the creating user as its author by default', async () => {
      const write = (type: 'user' | 'key', fields: object) =>
        db.tenant(organizationId, { type, id: user }, async (tx) => {
          const { id } = await createRecord(
            tx,
            'notes',
            createSchema('notes').parse({ body: 'Hello', ...fields }),
          )
          return (await updateRecord(tx, 'notes', id, { title: 'Hi' })).author_id
        })
      assert.equal(await write('key', {}), null)
      assert.equal(await write('key', { author_id: user }), user)
      assert.equal(await write('user', {}), user)
      const other = await createMember(db, organizationId)
      assert.equal(await write('user', { author_id: other }), other)
    })
  })

  describe('an activity', () => {
    it('occurs now by default', async () => {
      const now = await records.create('activities', { type: 'call' })
      assert.deepEqual([now.occurred_at, now.status], [now.created_at, 'completed'])
      const before = '2026-01-31T09:00:00.000Z'
      const { id, occurred_at } = await records.create('activities', { type: 'call', occurred_at: before })
      assert.equal(occurred_at, before)
      const reset = await records.update('activities', id, { occurred_at: null })
      assert.equal(reset.occurred_at, reset.updated_at)
    })
  })
})

/** Finds mistakes in the definitions of kinds before PostgreSQL does. */
describe('the files of the kinds', () => {
  for (const kind of kindNames)
    it(`${kind}: defaults are valid values, and references have a target kind`, () => {
      for (const [name, field] of Object.entries(kinds[kind].fields)) {
        if (field.values && field.default !== undefined)
          assert.ok(field.values.includes(field.default as string), name)
        assert.equal(field.type === 'reference', field.to !== undefined, name)
      }
    })
})
