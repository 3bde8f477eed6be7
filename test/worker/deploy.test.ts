import assert from 'node:assert/strict'
import { randomUUID } from 'node:crypto'
import { rmSync } from 'node:fs'
import { setTimeout as sleep } from 'node:timers/promises'
import { Client, Connection } from '@temporalio/client'
import type { temporal } from '@temporalio/proto'
import { CHAIN_START, createRun } from '../../db/runs/runs.ts'
import { sendSignal } from '../../db/runs/signals.ts'
import { createWorkflow } from '../../db/workflows/workflows.ts'
import { compile } from '../../workflows/authoring/compile.ts'
import { RUN_WORKFLOW_VERSION } from '../../workflows/bundle/protocol.ts'
import type { Definition, NodeSpec } from '../../workflows/language/definition.ts'
import { testActor } from '../support/database.ts'
import { type Deliveries, startDeliveries } from '../support/deliveries.ts'
import { edge } from '../support/nodes.ts'
import { NEXT, writeNextVersion } from '../support/other-version.ts'
import { startProcess, type TestProcess } from '../support/process.ts'
import { until } from '../support/until.ts'
import { historyOf, queueRun, untilRun } from '../support/worker.ts'

const delay = (time: string): NodeSpec => ({ id: 'pause', type: 'delay', config: { for: time } })
/** Waits for the signal `go`. */
const HOLD: NodeSpec = { id: 'hold', type: 'wait_for_signal', config: { name: 'go' } }
const save = (id: string): NodeSpec => ({
  id,
  type: 'crm_manager',
  config: { operation: 'create', entity: 'contacts', fields: { first_name: '{{ run.id }}', last_name: id } },
})

/** Worker processes of two versions on one database, namespace and task queue: see support/other-version.ts. */
describe('a deploy of the next version of the worker', () => {
  let on: Deliveries
  let next: string
  let connection: Connection
  let client: Client
  let taskQueue: string
  const workers: TestProcess[] = []
  /** Whether the stream of runs goes on. */
  let open = false

  before(async () => {
    on = await startDeliveries()
    await on.createWebhook({ events: ['contact.created'] })
    next = writeNextVersion()
    connection = await Connection.connect({ address: process.env.TEST_TEMPORAL_ADDRESS! })
    client = new Client({ connection })
  })
  beforeEach(() => {
    taskQueue = `test-${randomUUID()}`
    on.receiver.behave()
  })
  afterEach(async () => {
    open = false
    await Promise.all(workers.splice(0).map((worker) => worker.stop('SIGKILL')))
  })
  after(async () => {
    await connection?.close()
    await on?.stop()
    if (next) rmSync(next, { recursive: true })
  })

  async function start(root?: string): Promise<TestProcess> {
    const worker = await startProcess('worker', {
      databaseUrl: on.db.url,
      ...(root && { root }),
      env: {
        TEMPORAL_TASK_QUEUE: taskQueue,
        SECRETS_KEY: on.api.secretsKey.toString('base64'),
        ALLOW_INSECURE_WEBHOOKS: 'true',
      },
    })
    workers.push(worker)
    return worker
  }

  /** Two effects on own data around a wait and a call. */
  const shape = (pause: NodeSpec, more: NodeSpec[] = []): Pick<Definition, 'nodes' | 'edges'> => {
    const call = { id: 'call', type: 'api_request', config: { method: 'POST', url: on.receiver.url } }
    const nodes = [save('before'), pause, call, ...more, save('after')]
    const edges = nodes.slice(1).map(({ id }, n) => edge(nodes[n]!.id, id))
    edges[1]!.handle = pause === HOLD ? 'received' : 'success'
    return { nodes, edges }
  }
  const queue = (pause: NodeSpec) => queueRun(on.db, on.api.organizationId, shape(pause))
  const release = (id: string) =>
    on.db.tenant(on.api.organizationId, testActor, (tx) => sendSignal(tx, id, { name: 'go', payload: null }))
  /** How many of these runs have ended. */
  const endedOf = async (ids: string[]) =>
    (await on.db.system('runs').whereIn('id', ids).whereNotNull('ended_at')).length

  /**
   * Saves and runs a workflow as the api of the next version does: with its node type, and its engine in the program.
   */
  const queueNext = (pause: NodeSpec): Promise<string> =>
    on.db.tenant(on.api.organizationId, testActor, async (tx) => {
      const set: NodeSpec = { id: 'set', type: 'set_fields', config: { fields: { value: 1 } } }
      const definition: Definition = {
        name: 'Next',
        trigger: { type: 'manual' },
        inputs: {},
        outputs: {},
        settings: {},
        ...shape(pause, [set]),
      }
      const program = compile(definition)
      program.nodes.set!.type = NEXT.nodeType
      const { id, name } = await createWorkflow(tx, {
        name: 'Next',
        description: null,
        spec: null,
        definition,
        program: { ...program, engine: NEXT.engine as typeof program.engine },
      })
      const workflow = { id, version: 1, name }
      return createRun(tx, { workflow, trigger: { type: 'api' }, inputs: {}, chain: CHAIN_START })
    })

  const run = (id: string) => on.db.system('runs').where({ id }).first()

  /** Effects on own data happened once, the call was made, and the created contacts were delivered. */
  async function assertComplete(id: string): Promise<void> {
    const ended = await untilRun(on.db, id)
    assert.deepEqual([ended.status, ended.error], ['completed', null], id)
    const contacts = await on.db.system('contacts').where({ first_name: id }).orderBy('id')
    assert.deepEqual(
      contacts.map(({ last_name }) => last_name),
      ['before', 'after'],
    )
    const calls = on.receiver.received.filter(({ headers }) => headers['idempotency-key'] === `${id}:call`)
    assert.ok(calls.length > 0, `no call of ${id}`)
    await until(() => {
      const hooks = on.receiver.received.filter(
        ({ headers, body }) => headers['webhook-id'] && body.includes(id),
      )
      return new Set(hooks.map(({ headers }) => headers['webhook-id'])).size === 2 ? true : undefined
    }, `the deliveries of ${id}`)
  }

  type Event = temporal.api.history.v1.IHistoryEvent
  const failuresIn = (events: Event[]) =>
    events.flatMap(({ workflowTaskFailedEventAttributes: failed }) => failed?.failure?.message ?? [])
  /** Whether the worker process completed a workflow task of the run. */
  const workedOn = (events: Event[], { child }: TestProcess) =>
    events.some(({ workflowTaskCompletedEventAttributes: completed }) =>
      completed?.identity?.startsWith(`${child.pid}@`),
    )

  it('ends every run and delivery of a stream that goes on throughout', async () => {
    const older = await start()
    // They wait until the older worker has stopped.
    const held = [await queue(HOLD), await queue(HOLD)]
    const ids = [...held]
    const needNext: string[] = []
    open = true
    const stream = (async () => {
      for (let n = 0; open; n++, await sleep(300)) {
        ids.push(await queue(delay(`${[10, 1_000, 5_000][n % 3]}ms`)))
        if (n % 5 === 0) needNext.push(await queueNext(delay('500ms')))
      }
    })()
    await until(async () => (await endedOf(ids)) >= 3, 'runs that the older worker has ended')
    for (const id of held)
      await until(() => on.db.system('run_waits').where({ run_id: id }).first(), 'its wait')
    for (const id of needNext) assert.equal((await run(id)).status, 'queued', 'it needs the next version')
    const newer = await start(next)
    await until(async () => (await endedOf(needNext)) >= 1, 'a run of the next version')
    const { code } = await older.stop()
    assert.equal(code, 0, older.output())
    for (const id of held) await release(id)
    const after = ids.length
    await until(() => ids.length >= after + 3, 'runs that began without the older worker')
    open = false
    await stream

    for (const id of [...ids, ...needNext]) await assertComplete(id)
    const histories = await Promise.all([...ids, ...needNext].map((id) => historyOf(client, `run:${id}`)))
    const both = histories.filter((events) => workedOn(events, older) && workedOn(events, newer))
    assert.ok(both.length >= 2, `${both.length} of ${histories.length} runs had tasks on both workers`)
    for (const failure of histories.flatMap(failuresIn)) assert.match(failure, /it needs a newer worker/)
    for (const { output } of workers) assert.doesNotMatch(output(), /nondeterminism/i)
    const deliveries = await on.db.system('deliveries').whereNot({ status: 'succeeded' })
    assert.deepEqual(deliveries, [])
  })

  it('can be rolled back: what the next version has started waits until it is back', async () => {
    const newer = await start(next)
    const ids = [await queue(delay('3s')), await queueNext(delay('3s'))]
    for (const id of ids) await until(async () => (await run(id)).sleeps_until, 'the wait')
    await newer.stop('SIGKILL')
    const older = await start()
    await assertComplete(await queue(delay('10ms')))
    ids.push(await startAsNext())
    for (const id of ids)
      await until(
        async () => failuresIn(await historyOf(client, `run:${id}`))[0],
        'the older worker to refuse',
      )
    for (const id of ids) assert.notEqual((await run(id)).status, 'completed')
    await start(next)
    await older.stop()
    for (const id of ids) await assertComplete(id)
    for (const id of ids)
      for (const failure of failuresIn(await historyOf(client, `run:${id}`)))
        assert.match(failure, /it needs a newer worker/)
  })

  /** A run started by a relay of the next version without its worker: any worker may get its first task. */
  async function startAsNext(): Promise<string> {
    // With this limit no relay claims it.
    const limits = JSON.stringify({ max_running: 0 })
    await on.db.system('organizations').where({ id: on.api.organizationId }).update({ limits })
    const id = await queue(delay('10ms'))
    await client.workflow.start('run', {
      taskQueue,
      workflowId: `run:${id}`,
      args: [
        {
          organization_id: on.api.organizationId,
          run_id: id,
          starts_with: 'before',
          engine: RUN_WORKFLOW_VERSION + 1,
        },
      ],
    })
    return id
  }
})
