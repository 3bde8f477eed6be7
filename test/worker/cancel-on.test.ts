import assert from 'node:assert/strict'
import { matchEvents } from '../../db/events/match.ts'
import { insertEvents } from '../../db/events/outbox.ts'
import { cancelPage, type EventCancel, eventCancels } from '../../db/runs/event-cancels.ts'
import { pauseRun } from '../../db/runs/moves/pauses.ts'
import { CHAIN_START, createRun, createRuns, type NewRun } from '../../db/runs/runs.ts'
import { getRun } from '../../db/runs/views.ts'
import { activate } from '../../db/workflows/workflows.ts'
import type { Definition } from '../../workflows/language/definition.ts'
import { createOrganization, createTestDatabase, type TestDatabase, testActor } from '../support/database.ts'
import { holdFor } from '../support/hold.ts'
import { delay, edge } from '../support/nodes.ts'
import { recordsOf } from '../support/records.ts'
import { until } from '../support/until.ts'
import { withWorker } from '../support/with-worker.ts'
import { nodeStatuses, saveWorkflow, untilRun } from '../support/worker.ts'

const SLEEP: Pick<Definition, 'nodes'> = { nodes: [delay('sleep', '1h')] }
const INPUTS: Pick<Definition, 'inputs'> = { inputs: { key: { type: 'any' } } }
const byKey = (event = 'order.cancelled') => ({ event, when: '{{ event.data.key == inputs.key }}' })

describe('settings.cancel_on', () => {
  const suite = withWorker()
  const inTenant = <T>(
    work: Parameters<typeof suite.db.tenant<T>>[2],
    organizationId = suite.organizationId,
  ) => suite.db.tenant(organizationId, testActor, work)
  const raise = (name: string, data: Record<string, unknown>, organizationId?: string) =>
    inTenant((tx) => insertEvents(tx, [{ name, data }]), organizationId)

  async function workflow(definition: Partial<Definition>, organizationId = suite.organizationId) {
    const { id, name } = await saveWorkflow(suite.db, organizationId, { ...INPUTS, ...SLEEP, ...definition })
    return (inputs: Record<string, unknown> = {}, more: Partial<NewRun> = {}) =>
      inTenant(
        (tx) =>
          createRun(tx, {
            workflow: { id, version: 1, name },
            trigger: { type: 'api' },
            inputs,
            chain: CHAIN_START,
            ...more,
          }),
        organizationId,
      )
  }
  const statusOf = async (id: string) => (await suite.db.system('runs').where({ id }).first()).status
  const settled = () =>
    until(async () => {
      const [events, jobs] = await Promise.all([
        suite.db.system('events').whereNull('matched_at').first('id'),
        suite.db.system('event_cancels').first('id'),
      ])
      return (!events && !jobs) || undefined
    }, 'the events are compared')

  it('cancels the runs for which its condition holds, running, paused or held, and no others', async () => {
    const start = await workflow({ settings: { cancel_on: [byKey()] } })
    const running = await start({ key: 'a' })
    const paused = await start({ key: 'a' })
    const other = await start({ key: 'b' })
    for (const id of [running, paused, other]) await untilRun(suite.db, id, ['running'])
    await inTenant((tx) => pauseRun(tx, paused))
    await untilRun(suite.db, paused, ['paused'])
    const limited = await workflow({
      settings: { cancel_on: byKey(), rate: { limit: 1, per: '7d', policy: 'queue' } },
    })
    const through = await limited({ key: 'b' })
    const held = await limited({ key: 'a' })
    await untilRun(suite.db, through, ['running'])
    await until(
      async () => (await suite.db.system('runs').where({ id: held }).first()).hold === 'rate' || undefined,
      'the rate',
    )
    const [event] = await raise('order.cancelled', { key: 'a' })
    for (const id of [running, paused, held]) {
      const { status, error } = await untilRun(suite.db, id)
      assert.deepEqual(
        [status, error],
        [
          'cancelled',
          {
            code: 'cancelled',
            message: `The run was cancelled by the event order.cancelled ${event} (settings.cancel_on).`,
          },
        ],
      )
    }
    await settled()
    assert.deepEqual([await statusOf(other), await statusOf(through)], ['running', 'running'])
  })

  it('runs the cleanup of a run that it cancels', async () => {
    const start = await workflow({
      settings: {
        cancel_on: byKey('order.stopped'),
        on_cancel: { type: 'set_fields', config: { fields: { why: '{{ run.error.message }}' } } },
      },
    })
    const id = await start({ key: 1 })
    await untilRun(suite.db, id, ['running'])
    await raise('order.stopped', { key: 1 })
    assert.equal((await untilRun(suite.db, id)).status, 'cancelled')
    const row = await suite.db.system('run_nodes').where({ run_id: id, node_id: 'on_cancel' }).first()
    assert.match(row.output.why, /cancelled by the event order\.stopped/)
  })

  it('does not cancel runs of another organization', async () => {
    const settings = { cancel_on: byKey('order.ours') }
    const strangers = await createOrganization(suite.db)
    const foreign = await (await workflow({ settings }, strangers))({ key: 'a' })
    const own = await (await workflow({ settings }))({ key: 'a' })
    await untilRun(suite.db, foreign, ['running'])
    await raise('order.ours', { key: 'a' })
    await untilRun(suite.db, own, ['cancelled'])
    await settled()
    assert.equal(await statusOf(foreign), 'running')
    await raise('order.ours', { key: 'a' }, strangers)
    await untilRun(suite.db, foreign, ['cancelled'])
  })

  it('compares the record of the event with that of the trigger', async () => {
    const records = recordsOf(suite.db, suite.organizationId)
    const { id } = await saveWorkflow(suite.db, suite.organizationId, {
      ...SLEEP,
      trigger: { type: 'event', events: ['contact.created'] },
      settings: {
        cancel_on: [{ event: 'contact.deleted', when: '{{ event.record.id == trigger.record.id }}' }],
      },
    })
    await inTenant((tx) => activate(tx, id))
    const [ada, bob] = [
      await records.create('contacts', { first_name: 'Ada' }),
      await records.create('contacts', { first_name: 'Bob' }),
    ]
    const runOf = (record: string) =>
      until(
        async () =>
          suite.db
            .system('runs')
            .where({ workflow_id: id, record_id: record, status: 'running' })
            .first<{ id: string } | undefined>('id'),
        'the run',
      )
    const [adas, bobs] = [await runOf(ada.id), await runOf(bob.id)]
    await records.delete('contacts', ada.id)
    await untilRun(suite.db, adas.id, ['cancelled'])
    await settled()
    assert.equal(await statusOf(bobs.id), 'running')
  })

  it('does not cancel the run that raises the event, but the others', async () => {
    const id = await saveWorkflow(suite.db, suite.organizationId, {
      inputs: { ...INPUTS.inputs, sleep: { type: 'string' } },
      nodes: [
        {
          id: 'raise',
          type: 'emit_event',
          config: { event: 'order.replaced', data: { key: '{{ inputs.key }}' } },
        },
        delay('sleep', '{{ inputs.sleep }}'),
      ],
      edges: [edge('raise', 'sleep')],
      settings: { cancel_on: byKey('order.replaced') },
    })
    const start = (sleep: string) =>
      inTenant((tx) =>
        createRun(tx, {
          workflow: { id: id.id, version: 1, name: id.name },
          trigger: { type: 'api' },
          inputs: { key: 'a', sleep },
          chain: CHAIN_START,
        }),
      )
    const first = await start('1h')
    await until(async () => (await nodeStatuses(suite.db, first)).raise === 'completed')
    await settled()
    const second = await start('1s')
    assert.equal((await untilRun(suite.db, first)).status, 'cancelled')
    assert.equal((await untilRun(suite.db, second)).status, 'completed')
  })

  it('cancels a run by an event that was raised before the run was queued, but after the event that triggers it', async () => {
    const { id } = await saveWorkflow(suite.db, suite.organizationId, {
      ...SLEEP,
      trigger: { type: 'event', events: ['order.placed'] },
      settings: {
        cancel_on: [
          {
            event: ['order.withdrawn', 'order.placed'],
            when: '{{ event.data.key == trigger.data.key }}',
          },
        ],
      },
    })
    await inTenant((tx) => activate(tx, id))
    const event = (name: string, key: string) => ({ name, data: { key } })
    await inTenant((tx) =>
      insertEvents(tx, [
        event('order.withdrawn', 'late'),
        event('order.placed', 'late'),
        event('order.placed', 'soon'),
        event('order.withdrawn', 'soon'),
        event('order.placed', 'twice'),
        event('order.placed', 'twice'),
      ]),
    )
    const runs = () => suite.db.system('runs').where({ workflow_id: id }).orderBy('trigger_key')
    await until(async () => (await runs()).length === 4)
    await settled()
    await until(async () => (await runs()).every(({ status }) => status !== 'queued'))
    assert.deepEqual(
      (await runs()).map(({ trigger, cancel_requested_at }) => [
        trigger.data.key,
        cancel_requested_at !== null,
      ]),
      [
        ['late', false],
        ['soon', true],
        ['twice', true],
        ['twice', false],
      ],
    )
  })

  it('cancels a run whose transaction commits after the event was matched', async () => {
    const settings = { cancel_on: [byKey('order.overtook')] }
    const { id, name } = await saveWorkflow(suite.db, suite.organizationId, {
      ...INPUTS,
      nodes: [{ id: 'begin', type: 'set_fields', config: { fields: { value: 1 } } }, delay('sleep', '1h')],
      edges: [edge('begin', 'sleep')],
      settings,
    })
    const both: string[] = []
    const commit = holdFor<void>(() => true)
    const queued = inTenant(async (tx) => {
      for (const key of ['a', 'b'])
        both.push(
          await createRun(tx, {
            workflow: { id, version: 1, name },
            trigger: { type: 'api' },
            inputs: { key },
            chain: CHAIN_START,
          }),
        )
      await commit.pass()
    })
    await commit.reached
    const [event] = await raise('order.overtook', { key: 'a' })
    await settled()
    commit.release()
    await queued
    const [overtaken, other] = both as [string, string]
    const { status, error } = await untilRun(suite.db, overtaken)
    assert.equal(status, 'cancelled')
    assert.match(error!.message, new RegExp(`cancelled by the event order\\.overtook ${event}`))
    assert.deepEqual(await nodeStatuses(suite.db, overtaken), {}, 'no node has begun')
    await until(async () => (await nodeStatuses(suite.db, other)).sleep === 'waiting')
    assert.equal(await statusOf(other), 'running')
  })

  it('does not cancel a run that the raising run starts after the event', async () => {
    const records = recordsOf(suite.db, suite.organizationId)
    const contact = await records.create('contacts', { first_name: 'Ada' })
    const { id: workflow_id } = await saveWorkflow(suite.db, suite.organizationId, {
      ...INPUTS,
      ...SLEEP,
      settings: { cancel_on: [{ event: 'contact.updated', when: '{{ event.record.id == inputs.key }}' }] },
    })
    const start = await workflow({
      nodes: [
        {
          id: 'update',
          type: 'crm_manager',
          config: {
            operation: 'update',
            entity: 'contacts',
            id: contact.id,
            fields: { first_name: 'Augusta' },
          },
        },
        {
          id: 'follow',
          type: 'run_workflow',
          config: { workflow: workflow_id, inputs: { key: contact.id }, wait: false },
        },
      ],
      edges: [edge('update', 'follow')],
    })
    assert.equal((await untilRun(suite.db, await start())).status, 'completed')
    await settled()
    const child = await suite.db.system('runs').where({ workflow_id }).first()
    assert.equal(child.cancel_requested_at, null)
    await records.update('contacts', contact.id, { first_name: 'Ada' })
    await untilRun(suite.db, child.id, ['cancelled'])
  })

  it('tells at the run why its condition could not be rendered, and goes on', async () => {
    const start = await workflow({
      settings: { cancel_on: [{ event: 'order.odd', when: '{{ event.data.key == trigger.record.id }}' }] },
    })
    const odd = await start()
    const even = await start({}, { trigger: { type: 'api', record: { id: 'x' } } })
    for (const id of [odd, even]) await untilRun(suite.db, id, ['running'])
    const [event] = await raise('order.odd', { key: 'x' })
    await untilRun(suite.db, even, ['cancelled'])
    await settled()
    const { cancel_problem, status } = await inTenant((tx) => getRun(tx, odd))
    assert.equal(status, 'running')
    assert.deepEqual([cancel_problem!.event, cancel_problem!.event_id], ['order.odd', event])
    assert.match(cancel_problem!.message, /trigger\.record/)
  })
})

const MANY = 1_000
const PAGE = 50

describe(`${MANY} open runs that an event cancels`, () => {
  let db: TestDatabase
  let organizationId: string
  before(async () => {
    db = await createTestDatabase()
    organizationId = await createOrganization(db)
  })
  after(() => db?.drop())

  it('are cancelled in pages, each once, also if a page is rolled back', async () => {
    const { id, name } = await saveWorkflow(db, organizationId, {
      ...INPUTS,
      ...SLEEP,
      settings: { cancel_on: byKey() },
    })
    const run = (n: number): NewRun => ({
      workflow: { id, version: 1, name },
      trigger: { type: 'api' },
      inputs: { key: n % 2 },
      chain: CHAIN_START,
    })
    const tenant = <T>(work: Parameters<typeof db.tenant<T>>[2]) => db.tenant(organizationId, testActor, work)
    await tenant((tx) =>
      createRuns(
        tx,
        Array.from({ length: MANY }, (_, n) => run(n)),
      ),
    )
    await tenant((tx) => insertEvents(tx, [{ name: 'order.cancelled', data: { key: 1 } }]))
    await matchEvents(db.system)
    const [job, ...others] = await eventCancels.claim(db.system, 10)
    assert.ok(job && others.length === 0)
    assert.deepEqual(await eventCancels.claim(db.system, 10), [], 'it is leased')
    const page = (claimed: EventCancel) => tenant((tx) => cancelPage(tx, claimed, PAGE))
    const cancelled = async () =>
      Number((await db.system('runs').where({ status: 'cancelled' }).count())[0]!.count)

    assert.equal(await page(job), true)
    const first = await cancelled()
    assert.ok(first > 0 && first <= PAGE)
    // The process dies in the middle of a page.
    await assert.rejects(
      tenant(async (tx) => {
        await cancelPage(tx, job, PAGE)
        throw new Error('killed')
      }),
      /killed/,
    )
    assert.equal(await cancelled(), first)
    let pages = 1
    while (await page(job)) pages += 1
    assert.ok(pages >= MANY / PAGE, `${pages} pages`)
    const rows = await db.system('runs').where({ organization_id: organizationId })
    assert.deepEqual(rows.filter(({ status }) => status === 'cancelled').length, MANY / 2)
    assert.ok(rows.every(({ status, inputs }) => (status === 'cancelled') === (inputs.key === 1)))
    assert.equal(await page(job), false, 'it is done')
    assert.equal(await db.system('event_cancels').first('id'), undefined)
  })

  it('are those that were queued before it, also if it is compared later', async () => {
    const { id, name } = await saveWorkflow(db, organizationId, {
      ...INPUTS,
      ...SLEEP,
      settings: { cancel_on: [byKey('order.late')] },
    })
    const start = (tx: Parameters<typeof createRun>[0]) =>
      createRun(tx, {
        workflow: { id, version: 1, name },
        trigger: { type: 'api' },
        inputs: { key: 'a' },
        chain: CHAIN_START,
      })
    const tenant = <T>(work: Parameters<typeof db.tenant<T>>[2]) => db.tenant(organizationId, testActor, work)
    const raise = (tx: Parameters<typeof createRun>[0]) =>
      insertEvents(tx, [{ name: 'order.late', data: { key: 'a' } }])
    const first = await tenant(start)
    // In one transaction, as in a segment, the times are equal.
    const [before, after] = await tenant(async (tx) =>
      [await start(tx), await raise(tx), await start(tx)].filter((one) => typeof one === 'string'),
    )
    const last = await tenant(start)
    await matchEvents(db.system)
    const [job] = await eventCancels.claim(db.system, 1)
    await tenant((tx) => cancelPage(tx, job!, PAGE))
    const rows = await db.system('runs').where({ workflow_id: id, status: 'cancelled' }).orderBy('id')
    assert.deepEqual(
      rows.map((row) => row.id),
      [first, before],
    )
    assert.ok(after && last)
  })

  it('take turns with those of other organizations', async () => {
    const settings = { cancel_on: [byKey()] }
    const quiet = await createOrganization(db)
    for (const [organization, events] of [
      [organizationId, 200],
      [quiet, 1],
    ] as const) {
      const { id, name } = await saveWorkflow(db, organization, { ...INPUTS, ...SLEEP, settings })
      await db.tenant(organization, testActor, async (tx) => {
        await createRun(tx, {
          workflow: { id, version: 1, name },
          trigger: { type: 'api' },
          inputs: { key: 'none' },
          chain: CHAIN_START,
        })
      })
      await db.tenant(organization, testActor, (tx) =>
        insertEvents(tx, Array(events).fill({ name: 'order.cancelled', data: { key: 'other' } })),
      )
    }
    while ((await matchEvents(db.system)).more);
    const claimed = await eventCancels.claim(db.system, 8)
    assert.equal(claimed.filter(({ organization_id }) => organization_id === quiet).length, 1)
    const flood = claimed.filter(({ organization_id }) => organization_id === organizationId)
    assert.ok(flood.length > 0 && flood.length < 7, `${flood.length} of the flood`)
  })
})
