import assert from 'node:assert/strict'
import { updateOrganization } from '../../../db/access/organization.ts'
import { matchEvents } from '../../../db/events/match.ts'
import { insertEvents } from '../../../db/events/outbox.ts'
import type { Actor } from '../../../db/model/actor.ts'
import type { NewEvent } from '../../../db/model/events/event.ts'
import type { Tenant } from '../../../db/postgres/tenancy.ts'
import { CHAIN_START, createRun } from '../../../db/runs/runs.ts'
import { activate, deactivate, getWorkflow } from '../../../db/workflows/workflows.ts'
import { CHAIN_DEPTH } from '../../../workflows/shared/limits.ts'
import {
  createOrganization,
  createTestDatabase,
  type TestDatabase,
  testActor,
} from '../../support/database.ts'
import { createEmptyWorkflow } from '../../support/workflows.ts'

const RECORD = '01890a5d-ac96-774b-bcce-b302099a8057'

describe('the match of events and triggers', () => {
  let db: TestDatabase
  let organizationId: string
  before(async () => {
    db = await createTestDatabase()
  })
  beforeEach(async () => {
    organizationId = await createOrganization(db)
  })
  after(() => db?.drop())

  const tenant = <T>(work: (tx: Tenant) => Promise<T>, actor: Actor = testActor): Promise<T> =>
    db.tenant(organizationId, actor, work)
  const listening = (events: string[], when?: string): Promise<string> =>
    tenant(async (tx) => {
      const { id } = await createEmptyWorkflow(tx, { type: 'event', events, ...(when && { when }) })
      await activate(tx, id)
      return id
    })
  const raise = (events: NewEvent[], actor?: Actor) => tenant((tx) => insertEvents(tx, events), actor)
  const matchAll = async () => {
    for (;;) if (!(await matchEvents(db.system)).more) return
  }
  const runsOf = (workflowId: string) => db.system('runs').where({ workflow_id: workflowId }).orderBy('id')

  it('starts one run per event and workflow, with the record and its old values', async () => {
    const won = await listening(['deal.won', 'deal.updated'])
    const other = await listening(['deal.lost'])
    const data = { id: RECORD, object: 'deal', stage: 'won' }
    const [id] = await raise([{ name: 'deal.won', data, previous: { stage: 'lead' } }])
    await matchAll()
    const [run, ...more] = await runsOf(won)
    assert.deepEqual(more, [])
    const event = await db.system('events').where({ id }).first()
    assert.deepEqual(run.trigger, {
      type: 'event',
      event: { id, name: 'deal.won', created_at: event.created_at.toISOString() },
      record: data,
      previous: { stage: 'lead' },
      changed: ['stage'],
    })
    assert.deepEqual(
      [run.status, run.record_id, run.trigger_key, run.depth, run.cause, run.priority],
      ['queued', RECORD, id, 0, null, 1],
    )
    assert.deepEqual(await runsOf(other), [])
    await db.system('events').where({ id }).update({ matched_at: null })
    await matchAll()
    assert.equal((await runsOf(won)).length, 1, 'an event that is matched again starts nothing')
  })

  it('gives the data of an event that is not about a record as data', async () => {
    const paid = await listening(['invoice.paid'])
    await raise([{ name: 'invoice.paid', data: { id: 'INV-7', amount: '12.00' } }])
    await matchAll()
    const [run] = await runsOf(paid)
    assert.deepEqual([run.trigger.data, run.record_id], [{ id: 'INV-7', amount: '12.00' }, null])
    assert.ok(!('record' in run.trigger))
  })

  it('starts no run of another organization', async () => {
    const elsewhere = organizationId
    const there = await listening(['invoice.paid'])
    organizationId = await createOrganization(db)
    const here = await listening(['invoice.paid'])
    await raise([{ name: 'invoice.paid', data: {} }])
    await matchAll()
    assert.deepEqual([(await runsOf(here)).length, (await runsOf(there)).length], [1, 0])
    assert.equal((await runsOf(here))[0].organization_id, organizationId)
    assert.notEqual(organizationId, elsewhere)
  })

  it('starts runs only where `when` holds, in the order of the events', async () => {
    const big = await listening(['invoice.paid'], '{{ trigger.data.big }}')
    await raise(
      Array.from({ length: 40 }, (_, n) => ({ name: 'invoice.paid', data: { n, big: n % 2 === 1 } })),
    )
    await matchAll()
    assert.deepEqual(
      (await runsOf(big)).map((run) => run.trigger.data.n),
      Array.from({ length: 20 }, (_, n) => 2 * n + 1),
    )
  })

  it('keeps the order of the events, and starts each once, where several processes match', async () => {
    const id = await listening(['invoice.paid'])
    for (let i = 0; i < 4; i++)
      await raise(Array.from({ length: 300 }, (_, n) => ({ name: 'invoice.paid', data: { n: 300 * i + n } })))
    for (let open = true; open; ) {
      const matched = await Promise.all(Array.from({ length: 4 }, () => matchEvents(db.system)))
      open = matched.some(({ events }) => events > 0)
    }
    assert.deepEqual(
      (await runsOf(id)).map((run) => run.trigger.data.n),
      Array.from({ length: 1_200 }, (_, n) => n),
    )
  })

  it('starts a run for each of many events at once and each of ten workflows, and none is lost', async () => {
    // An event storm has 10,000; fewer show the same in each build.
    const count = Number(process.env.EVENTS ?? 300)
    const ids: string[] = []
    for (let n = 0; n < 10; n++) ids.push(await listening(['invoice.paid']))
    const page = 100
    for (let from = 0; from < count; from += page)
      await raise(Array.from({ length: page }, (_, n) => ({ name: 'invoice.paid', data: { n: from + n } })))
    for (let open = true; open; ) {
      const matched = await Promise.all(Array.from({ length: 2 }, () => matchEvents(db.system)))
      open = matched.some(({ events }) => events > 0)
    }
    const { rows } = await db.system.raw<{ rows: object[] }>(
      `select count(*) as runs, count(distinct trigger_key) as events, min(cast(trigger #>> '{data,n}' as integer)) as first,
         max(cast(trigger #>> '{data,n}' as integer)) as last from runs where workflow_id = any(?) group by workflow_id`,
      [ids],
    )
    const each = { runs: count, events: count, first: 0, last: count - 1 }
    assert.deepEqual(rows.map(Object.entries), Array(10).fill(Object.entries(each)))
    const open = await db.system('events').where({ organization_id: organizationId, matched_at: null })
    assert.equal(open.length, 0)
  })

  it('lets a `when` read the settings of the organization', async () => {
    await tenant((tx) => updateOrganization(tx, { env: { least: 100 } }))
    const large = await listening(['invoice.paid'], '{{ trigger.data.amount >= env.least }}')
    await raise([99, 100].map((amount) => ({ name: 'invoice.paid', data: { amount } })))
    await matchAll()
    assert.deepEqual(
      (await runsOf(large)).map(({ trigger }) => trigger.data.amount),
      [100],
    )
  })

  it('records the problem of a `when` that cannot be rendered, and starts all other runs', async () => {
    const broken = await listening(['invoice.paid'], '{{ trigger.data.missing.name }}')
    const costly = await listening(
      ['invoice.paid'],
      `{{ trigger.data.text${' | append: trigger.data.text'.repeat(40)} | size }}`,
    )
    const fine = await listening(['invoice.paid'], '{{ trigger.data.id }}')
    const events = [1, 2, 3].map((n) => ({
      name: 'invoice.paid',
      data: { id: `${n}`, text: 'x'.repeat(9_000) },
    }))
    const ids = await raise(events)
    // In several batches, if evaluating takes long.
    const problems = new Set<string>()
    for (let more = true; more; ) {
      const matched = await matchEvents(db.system)
      for (const { workflow_id } of matched.problems) problems.add(workflow_id)
      more = matched.more
    }
    assert.deepEqual([...problems].sort(), [broken, costly].sort())
    assert.deepEqual(
      (await Promise.all([broken, costly, fine].map(runsOf))).map((runs) => runs.length),
      [0, 0, 3],
    )
    const { trigger_problem } = await tenant((tx) => getWorkflow(tx, broken))
    assert.deepEqual(
      [trigger_problem?.count, trigger_problem?.event, trigger_problem?.event_id],
      [3, 'invoice.paid', ids[2]],
    )
    assert.match(
      trigger_problem?.message ?? '',
      /^when: \{\{ trigger.data.missing.name \}\}: undefined variable/,
    )
    const tooExpensive = await tenant((tx) => getWorkflow(tx, costly))
    assert.match(tooExpensive.trigger_problem?.message ?? '', /too expensive/)
    assert.equal((await tenant((tx) => getWorkflow(tx, fine))).trigger_problem, null)
    assert.equal((await tenant((tx) => activate(tx, broken))).trigger_problem, null)
  })

  it('starts nothing for a workflow that was inactive when the event was raised', async () => {
    const id = await listening(['invoice.paid'])
    await raise([{ name: 'invoice.paid', data: { n: 1 } }])
    await tenant((tx) => activate(tx, id))
    await matchAll()
    assert.equal((await runsOf(id)).length, 1, 'activated again in the meantime')
    await tenant((tx) => deactivate(tx, id))
    await raise([{ name: 'invoice.paid', data: { n: 2 } }])
    await new Promise((resolve) => setTimeout(resolve, 5))
    await tenant((tx) => activate(tx, id))
    await matchAll()
    assert.equal((await runsOf(id)).length, 1)
  })

  it('records a run that is too deep in its chain as failed, without an event', async () => {
    const loop = await listening(['invoice.paid'])
    const parent = await tenant((tx) =>
      createRun(tx, {
        workflow: { id: loop, version: 1, name: 'Nothing' },
        trigger: { type: 'event' },
        inputs: {},
        chain: { depth: CHAIN_DEPTH, cause: CHAIN_START.cause },
      }),
    )
    await raise([{ name: 'invoice.paid', data: {} }], { type: 'workflow_run', id: parent })
    await matchAll()
    const [, run] = await runsOf(loop)
    assert.deepEqual(
      [run.status, run.error.code, run.depth, run.cause, run.ended_at !== null],
      ['failed', 'chain_too_long', CHAIN_DEPTH + 1, parent, true],
    )
    assert.ok(run.error.message.includes(parent))
    assert.equal((await db.system('events').where({ subject_id: run.id })).length, 0)
  })

  it('leaves events in the outbox if their `when`s take too long, and matches them in order later', async () => {
    const text = 'x'.repeat(1_000)
    const slow = `trigger.data.text${' | split: "" | reverse | join: ""'.repeat(3)}`
    const id = await listening(['invoice.paid'], `{{ ${slow} }}`)
    // No condition holds for these: a batch would have too many runs.
    await Promise.all(
      Array.from({ length: 39 }, () => listening(['invoice.paid'], `{{ ${slow} | slice: 0, 0 }}`)),
    )
    await raise(Array.from({ length: 200 }, (_, n) => ({ name: 'invoice.paid', data: { n, text } })))
    const first = await matchEvents(db.system)
    assert.ok(first.more && first.events > 0 && first.events < 200, `${first.events} events`)
    await matchAll()
    assert.deepEqual(
      (await runsOf(id)).map((run) => run.trigger.data.n),
      Array.from({ length: 200 }, (_, n) => n),
    )
  })
})
