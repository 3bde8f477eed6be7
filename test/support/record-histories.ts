/**
 * Records the histories that `test/workflows/replay.test.ts` replays:
 * `node --import tsx test/support/record-histories.ts` with TEST_DATABASE_URL and TEST_TEMPORAL_ADDRESS. Stored histories
 * are never overwritten: every later version of the workflows must be able to replay them. A new case gets a new name.
 * Those in an outage, and beside a call that comes later, are of `test/worker/long-histories.test.ts`, with
 * limit.historyCount.suggestContinueAsNew=60. The drained one is of the code of version 4, with the same setting.
 */
import { randomBytes, randomUUID } from 'node:crypto'
import { existsSync, mkdirSync } from 'node:fs'
import { setTimeout as sleep } from 'node:timers/promises'
import { setPools } from '../../db/access/pools.ts'
import { insertEvents } from '../../db/events/outbox.ts'
import { answerApproval } from '../../db/runs/approvals.ts'
import { migrateRun } from '../../db/runs/migrate.ts'
import { cancelRun } from '../../db/runs/moves/ends.ts'
import { resumeRun } from '../../db/runs/moves/starts.ts'
import { createNodeTest } from '../../db/runs/node-tests.ts'
import { sendSignal } from '../../db/runs/signals.ts'
import { activate, getWorkflow, updateWorkflow } from '../../db/workflows/workflows.ts'
import { compile } from '../../workflows/authoring/compile.ts'
import { REFRESH } from '../../workflows/bundle/protocol.ts'
import type { Definition } from '../../workflows/language/definition.ts'
import { createOrganization, createTestDatabase, testActor } from './database.ts'
import { saveHistory } from './histories.ts'
import { httpResponse } from './http-response.ts'
import { edge } from './nodes.ts'
import { until } from './until.ts'
import { queueRun, startPoolWorker, startWorker, untilRun } from './worker.ts'
import { createEmptyWorkflow } from './workflows.ts'

const folder = new URL('../fixtures/histories/', import.meta.url)
const set = (id: string) => ({ id, type: 'set_fields', config: { fields: { id } } })
const call = { id: 'call', type: 'api_request', config: { method: 'POST', url: 'https://example.com/' } }
const wait = (time: string) => ({ id: 'wait', type: 'delay', config: { for: time } })

const each = (items: unknown[], concurrency = 1) => ({
  id: 'each',
  type: 'for_each',
  config: { items, concurrency },
})

const WAITS = Array.from({ length: 60 }, (_, n) => `wait${n}`)

type Case = Partial<Definition> & Pick<Definition, 'nodes'>
const cases: Record<string, Case> = {
  'five-light-nodes': {
    nodes: ['a', 'b', 'c', 'd', 'e'].map(set),
    edges: [edge('a', 'b'), edge('b', 'c'), edge('c', 'd'), edge('d', 'e')],
  },
  'branches-with-delay-and-external': {
    nodes: [set('start'), wait('20ms'), call, set('join')],
    edges: [edge('start', 'wait'), edge('start', 'call'), edge('wait', 'join'), edge('call', 'join')],
    settings: { timeout: '1h' },
  },
  'external-that-fails': { nodes: [{ ...call, retry: { max_attempts: 1 } }] },
  cancelled: { nodes: [set('start'), wait('1h')], edges: [edge('start', 'wait')] },
  'redone-task': {
    nodes: [set('start'), wait('20ms'), set('end')],
    edges: [edge('start', 'wait'), edge('wait', 'end')],
  },
  'failed-of-version-2': { nodes: [{ ...call, retry: { max_attempts: 1 } }] },
  'cancelled-before-the-first-segment': { nodes: [set('start')] },
  'resumed-with-open-nodes': {
    nodes: [set('start'), wait('1500ms'), call, set('join')],
    edges: [edge('start', 'wait'), edge('start', 'call'), edge('wait', 'join'), edge('call', 'join')],
    settings: { timeout: '1h' },
  },
  'drained-of-version-4': {
    nodes: [
      set('start'),
      { id: 'go', type: 'wait_for_signal', config: { name: 'go' } },
      set('then'),
      ...WAITS.map((id) => ({ ...wait('1h'), id })),
    ],
    edges: [...['go', ...WAITS].map((id) => edge('start', id)), edge('go', 'then', 'received')],
  },
  'migrated-with-a-time-limit': {
    nodes: [set('start'), wait('2s')],
    edges: [edge('start', 'wait')],
    settings: { timeout: '1h' },
  },
  refreshed: { nodes: [set('start'), wait('1s')], edges: [edge('start', 'wait')] },
  'run-timeout': { nodes: [wait('1h')], settings: { timeout: '1s' } },
  'many-segments': {
    nodes: Array.from({ length: 120 }, (_, n) => set(`n${n}`)),
    edges: Array.from({ length: 119 }, (_, n) => edge(`n${n}`, `n${n + 1}`)),
  },
  'segment-retried-by-timers': { nodes: [set('start'), wait('20ms')], edges: [edge('start', 'wait')] },
  'refreshed-during-a-slow-call': { nodes: [call] },
  'cleaned-up-after-a-failure': {
    nodes: [
      { ...set('start'), undo: { type: call.type, config: call.config, retry: { max_attempts: 1 } } },
      { ...call, retry: { max_attempts: 1 } },
    ],
    edges: [edge('start', 'call')],
    settings: { timeout: '1h', finally: { type: 'set_fields', config: { fields: { x: 1 } } } },
  },
  'slow-calls-cancelled-and-undone': {
    nodes: [
      set('start'),
      { ...call, id: 'a', undo: { type: call.type, config: call.config } },
      { ...call, id: 'b' },
      wait('1h'),
    ],
    edges: ['a', 'b', 'wait'].map((id) => edge('start', id)),
    settings: { timeout: '2h' },
  },
  'slow-calls-cancelled': {
    nodes: [set('start'), ...['a', 'b', 'c'].map((id) => ({ ...call, id }))],
    edges: ['a', 'b', 'c'].map((id) => edge('start', id)),
  },
  'join-any': {
    nodes: [set('start'), wait('500ms'), call, { ...set('first'), join: 'any' }, { ...call, id: 'after' }],
    edges: [
      edge('start', 'wait'),
      edge('start', 'call'),
      edge('wait', 'first'),
      edge('call', 'first'),
      edge('first', 'after'),
    ],
  },
  'wait-until': {
    nodes: [
      { id: 'past', type: 'wait_until', config: { until: '2020-01-01' } },
      { id: 'soon', type: 'wait_until', config: { until: new Date(Date.now() + 20_000).toISOString() } },
    ],
    edges: [edge('past', 'soon')],
  },
  'waits-for-an-event': {
    nodes: [
      { id: 'event', type: 'wait_for_event', config: { event: 'invoice.paid', timeout: '1h' } },
      set('then'),
    ],
    edges: [edge('event', 'then', 'received')],
  },
  'waits-for-an-approval': {
    nodes: [{ id: 'ask', type: 'approval', config: { title: 'May I?', timeout: '1h' } }, wait('20ms')],
    edges: [edge('ask', 'wait', 'approved')],
  },
  'approval-that-expires': {
    nodes: [{ id: 'ask', type: 'approval', config: { title: 'May I?', timeout: '1s' } }],
  },
  'waits-for-signals': {
    nodes: [
      { id: 'first', type: 'wait_for_signal', config: { name: 'a' } },
      { id: 'second', type: 'wait_for_signal', config: { name: 'b', timeout: '1h' } },
    ],
    edges: [edge('first', 'second', 'received')],
  },
  'loop-of-calls-and-waits': {
    nodes: [each([1, 2, 3], 2), wait('20ms'), call, set('end')],
    edges: [edge('each', 'wait', 'item'), edge('wait', 'call'), edge('each', 'end', 'done')],
    settings: { timeout: '1h' },
  },
  'loop-in-a-loop': {
    nodes: [
      each([['a', 'b'], [], ['c']], 2),
      { id: 'inner', type: 'for_each', config: { items: '{{ item }}', concurrency: 2 } },
      call,
      set('last'),
    ],
    edges: [edge('each', 'inner', 'item'), edge('inner', 'call', 'item'), edge('inner', 'last', 'done')],
  },
  'loop-of-many-pages': {
    nodes: [each(Array(350).fill(0)), set('body')],
    edges: [edge('each', 'body', 'item')],
  },
  'loop-that-stops-with-items-in-progress': {
    nodes: [
      each(['1h', '20ms'], 2),
      wait('{{ item }}'),
      { id: 'bad', type: 'set_fields', config: { fields: { x: '{{ inputs.missing }}' } } },
      { ...call, id: 'after' },
    ],
    edges: [edge('each', 'wait', 'item'), edge('wait', 'bad'), edge('each', 'after', 'error')],
  },
  'repeat-with-pauses': {
    nodes: [
      { id: 'again', type: 'repeat', config: { until: '{{ index == 2 }}', pause: '20ms' } },
      call,
      set('end'),
    ],
    edges: [edge('again', 'call', 'turn'), edge('again', 'end', 'done')],
  },
  'resumed-loop': {
    nodes: [each([1, 2, 3], 2), wait('1500ms')],
    edges: [edge('each', 'wait', 'item')],
  },
  'waits-for-a-child': {
    nodes: [{ id: 'child', type: 'run_workflow', config: { workflow: 'Child' } }, set('then')],
    edges: [edge('child', 'then')],
  },
  'call-in-a-pool': {
    nodes: [
      { ...call, pool: 'dmz' },
      { ...call, id: 'after' },
    ],
    edges: [edge('call', 'after')],
  },
}

const db = await createTestDatabase()
const organizationId = await createOrganization(db)
const secretsKey = randomBytes(32)
let status = 200
let slow = false
let faults = 0
const worker = await startWorker(db, {
  secretsKey,
  async http(_, { signal }) {
    if (slow) await sleep(3_000, undefined, { signal })
    return httpResponse({ status })
  },
  advance: (advance) => async (input) => {
    if (faults-- > 0) throw new Error('the database is away')
    return advance(input)
  },
})
/** Migrates a run that waits to a version with a longer time limit. */
async function migrated(id: string, definition: Case): Promise<void> {
  await until(() => db.system('runs').where({ id }).whereNotNull('sleeps_until').first(), 'the wait')
  const { workflow_id } = await db.system('runs').where({ id }).first()
  await db.tenant(organizationId, testActor, async (tx) => {
    const before = await getWorkflow(tx, workflow_id)
    const after = { ...before.definition, ...definition, settings: { timeout: '2h' } }
    const content = { spec: null, definition: after, program: compile(after) }
    await migrateRun(tx, id, (await updateWorkflow(tx, before, { content })).version)
  })
}

const pool = 'dmz'
const inPool = await startPoolWorker(db, worker.taskQueue, {
  pool,
  secretsKey,
  http: async () => httpResponse({ status }),
})
await setPools(db.system, organizationId, [pool])
mkdirSync(folder, { recursive: true })
for (const [name, definition] of Object.entries(cases)) {
  const file = new URL(`${name}.binpb`, folder)
  if (existsSync(file)) continue
  status = /fail/.test(name) ? 500 : 200
  slow = name.includes('slow')
  faults = name.includes('retried') ? 7 : 0
  const limit = (limits: object) =>
    db
      .system('organizations')
      .where({ id: organizationId })
      .update({ limits: JSON.stringify(limits) })
  if (name === 'cancelled-before-the-first-segment') await limit({ max_running: 0 })
  if (name === 'waits-for-a-child')
    await queueRun(db, organizationId, { name: 'Child', nodes: [wait('500ms')] })
  const id = await queueRun(db, organizationId, definition)
  const handle = worker.client.workflow.getHandle(`run:${id}`)
  if (name === 'cancelled' || name.startsWith('slow-calls-cancelled')) {
    await untilRun(db, id, ['running'])
    await sleep(300)
    await db.tenant(organizationId, testActor, (tx) => cancelRun(tx, id))
  }
  if (name === 'cancelled-before-the-first-segment') {
    await db.system('runs').where({ id }).update({ cancel_requested_at: new Date() })
    await limit({})
  }
  if (name.startsWith('resumed') || name.startsWith('refreshed')) {
    await untilRun(db, id, ['running'])
    await sleep(500)
  }
  if (name.startsWith('refreshed')) await handle.signal(REFRESH)
  if (name.startsWith('migrated')) await migrated(id, definition)
  if (name.startsWith('waits-for-a') && name !== 'waits-for-a-child') {
    const { id: waitId } = await until(() => db.system('run_waits').where({ run_id: id }).first(), 'the wait')
    await sleep(300)
    await db.tenant(organizationId, testActor, async (tx) => {
      if (name === 'waits-for-an-event') await insertEvents(tx, [{ name: 'invoice.paid', data: {} }])
      const decision = { decision: 'approved' as const, comment: null }
      if (name === 'waits-for-an-approval')
        await answerApproval(tx, { run_id: id, id: waitId }, decision, { type: 'link', id: null })
    })
  }
  if (name === 'waits-for-signals') {
    await untilRun(db, id, ['running'])
    await sleep(300)
    for (const signal of ['b', 'a'])
      await db.tenant(organizationId, testActor, (tx) => sendSignal(tx, id, { name: signal, payload: 1 }))
  }
  if (name.startsWith('drained')) {
    await until(() => db.system('runs').where({ id }).whereNotNull('sleeps_until').first(), 'the waits')
    await db.tenant(organizationId, testActor, (tx) => sendSignal(tx, id, { name: 'go', payload: null }))
    await until(() => db.system('run_nodes').where({ run_id: id, node_id: 'then' }).first(), 'the next node')
    await sleep(300)
    await db.tenant(organizationId, testActor, (tx) => cancelRun(tx, id))
  }
  if (name.startsWith('resumed')) {
    // Simulates that Temporal has lost the workflow.
    await handle.terminate()
    const { temporal_run_id } = await db.system('runs').where({ id }).first('temporal_run_id')
    await db.tenant(organizationId, testActor, (tx) => resumeRun(tx, id, temporal_run_id))
  }
  await untilRun(db, id)
  await handle.result().catch(() => {})
  if (name === 'redone-task') {
    const done = (await handle.fetchHistory()).events?.find(
      (event) => event.workflowTaskCompletedEventAttributes,
    )
    // A reset repeats its first task: the same history as after the death of a worker.
    await worker.client.workflowService.resetWorkflowExecution({
      namespace: 'default',
      workflowExecution: { workflowId: handle.workflowId },
      workflowTaskFinishEventId: done!.eventId!,
      requestId: randomUUID(),
      reason: 'to record it',
    })
    await handle.result()
  }
  saveHistory(file, await handle.fetchHistory())
}
for (const [name, { type, config }, where] of [
  ['node-test', set('test'), {}],
  ['node-test-in-a-pool', call, { pool }],
] as const) {
  const tested = new URL(`${name}.binpb`, folder)
  if (existsSync(tested)) continue
  status = 200
  const id = await db.tenant(organizationId, testActor, (tx) =>
    createNodeTest(tx, secretsKey, { node_type: type, title: type, config, inputs: {}, ...where }),
  )
  await untilRun(db, id)
  const handle = worker.client.workflow.getHandle(`node-test:${id}`)
  await handle.result()
  saveHistory(tested, await handle.fetchHistory())
}
const fired = new URL('fire-of-a-schedule.binpb', folder)
if (!existsSync(fired)) {
  const { id } = await db.tenant(organizationId, testActor, async (tx) => {
    const workflow = await createEmptyWorkflow(tx, { type: 'schedule', cron: '0 8 * * 1', timezone: 'UTC' })
    return activate(tx, workflow.id)
  })
  const schedule = worker.client.schedule.getHandle(`schedule:${id}`)
  const ready = () =>
    schedule.describe().then(
      () => true,
      () => undefined,
    )
  await until(ready, 'the Schedule')
  await schedule.trigger()
  const { workflowId } = await until(async () => {
    const [action] = (await schedule.describe()).info.recentActions
    return action?.action.workflow
  }, 'its workflow')
  const handle = worker.client.workflow.getHandle(workflowId)
  await handle.result()
  saveHistory(fired, await handle.fetchHistory())
  await schedule.delete()
}
const witnessFile = new URL('witness.binpb', folder)
if (!existsSync(witnessFile)) {
  const testimony = (sequence: number) => ({
    database: '1/1',
    sequence,
    at: new Date(sequence).toISOString(),
  })
  const handle = await worker.client.workflow.start('witness', {
    taskQueue: worker.taskQueue,
    workflowId: `witness:${worker.taskQueue}`,
    args: [testimony(1)],
    memo: { ...testimony(1) },
  })
  for (const sequence of [2, 3]) {
    await handle.signal('witnessed', testimony(sequence))
    await until(async () => (await handle.describe()).memo?.sequence === sequence, 'its memo')
  }
  saveHistory(witnessFile, await handle.fetchHistory())
  await handle.terminate()
}
const caughtUp = new URL('caught-up-with-the-rows.binpb', folder)
if (!existsSync(caughtUp)) {
  const go = { id: 'go', type: 'wait_for_signal', config: { name: 'go' } }
  const id = await queueRun(db, organizationId, {
    nodes: [set('start'), wait('1h'), go],
    edges: [edge('start', 'wait'), edge('start', 'go')],
  })
  const row = () => db.system('runs').where({ id }).first()
  const { temporal_run_id } = await until(
    async () => ((await row()).sleeps_until ? await row() : undefined),
    'its sleep',
  )
  // As if Temporal was restored to the moment before the end of the delay.
  const key = { organization_id: organizationId, run_id: id }
  await db
    .system('run_nodes')
    .where({ ...key, node_id: 'wait' })
    .update({
      status: 'completed',
      settled_segment: 1,
      ended_at: new Date(),
    })
  const fired = JSON.stringify([{ type: 'timer', node: 'wait' }])
  await db
    .system('run_segments')
    .insert({ ...key, temporal_run_id, segment: 1, happened: fired, answer: '{}' })
  const handle = worker.client.workflow.getHandle(`run:${id}`)
  await handle.signal(REFRESH)
  await until(
    () =>
      db
        .system('run_segments')
        .where({ ...key, segment: 2 })
        .first(),
    'segment 2',
  )
  await db.tenant(organizationId, testActor, (tx) => sendSignal(tx, id, { name: 'go', payload: null }))
  await handle.result()
  saveHistory(caughtUp, await handle.fetchHistory())
}
await inPool.stop()
await worker.stop()
await db.drop()
