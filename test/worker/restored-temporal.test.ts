import assert from 'node:assert/strict'
import type { Tenant } from '../../db/postgres/tenancy.ts'
import { answerApproval } from '../../db/runs/approvals.ts'
import { cancelRun } from '../../db/runs/moves/ends.ts'
import { pauseRun, unpauseRun } from '../../db/runs/moves/pauses.ts'
import { sendSignal } from '../../db/runs/signals.ts'
import { Sweep } from '../../worker/sweep.ts'
import type { Definition, NodeSpec } from '../../workflows/language/definition.ts'
import { createOrganization, createTestDatabase, type TestDatabase, testActor } from '../support/database.ts'
import { httpResponse } from '../support/http-response.ts'
import { call, delay, edge, set } from '../support/nodes.ts'
import { type OwnTemporal, startOwnTemporal } from '../support/own-temporal.ts'
import { until } from '../support/until.ts'
import { nodeStatuses, queueRun, startWorker, type TestWorker, testLog, untilRun } from '../support/worker.ts'

const signalNode = (id: string): NodeSpec => ({ id, type: 'wait_for_signal', config: { name: id } })
const approvalNode = (id: string): NodeSpec => ({ id, type: 'approval', config: { title: id } })

/** Nodes one after the other, each of which waits for a signal of its name. */
const inTurn = (...ids: string[]): Pick<Definition, 'nodes' | 'edges'> => ({
  nodes: ids.map(signalNode),
  edges: ids.slice(1).map((id, n) => edge(ids[n]!, id, 'received')),
})

describe('runs whose Temporal is restored to an earlier moment', () => {
  let temporal: OwnTemporal
  let db: TestDatabase
  let worker: TestWorker
  let organizationId: string
  /** The calls of nodes that wait for an answer, and their idempotency keys. */
  const calls: (() => void)[] = []
  const keys: string[] = []
  const start = (taskQueue?: string) =>
    startWorker(
      db,
      {
        address: temporal.address,
        http: ({ headers }) =>
          new Promise((resolve) => {
            keys.push(new Headers(headers as HeadersInit).get('idempotency-key')!)
            calls.push(() => resolve(httpResponse()))
          }),
      },
      taskQueue,
    )

  before(async () => {
    temporal = await startOwnTemporal()
    db = await createTestDatabase()
    organizationId = await createOrganization(db)
    worker = await start()
  })
  after(async () => {
    for (const answer of calls) answer()
    await worker?.stop()
    await db?.drop()
    await temporal?.stop()
  })

  const tenant = <T>(work: (tx: Tenant) => Promise<T>) => db.tenant(organizationId, testActor, work)
  const run = (definition: Parameters<typeof queueRun>[2]) => queueRun(db, organizationId, definition)
  const signal = (id: string, name: string) => tenant((tx) => sendSignal(tx, id, { name, payload: name }))
  const row = (id: string) => db.system('runs').where({ id }).first()
  const temporalStatus = async (id: string) =>
    (await worker.client.workflow.getHandle(`run:${id}`).describe()).status.name
  const historyLength = async (id: string) =>
    (await worker.client.workflow.getHandle(`run:${id}`).describe()).historyLength
  const waitsFor = (id: string, ...nodes: string[]) =>
    until(async () => {
      const waiting = await db.system('run_nodes').where({ run_id: id, status: 'waiting' }).pluck('node_id')
      return waiting.sort().join() === nodes.sort().join() && (await row(id)).sleeps_until !== null
    }, `${id} waits for ${nodes}`)
  /** Until Temporal has done what the workflow of the run decided. */
  const settled = (id: string) =>
    until(async () => {
      const { raw } = await worker.client.workflow.getHandle(`run:${id}`).describe()
      return !raw.pendingWorkflowTask
    }, `${id} has settled`)
  const answer = async (id: string, nodeId: string) => {
    const wait = await db.system('run_waits').where({ run_id: id, node_id: nodeId }).first()
    await tenant((tx) =>
      answerApproval(
        tx,
        { run_id: id, id: wait.id },
        { decision: 'approved', comment: null },
        { type: 'key', id: null },
      ),
    )
  }
  const sweep = () =>
    new Sweep({ db, client: worker.client, taskQueue: worker.taskQueue, log: testLog }).once('0 seconds')

  it('continue where their rows are', async () => {
    const both = {
      nodes: [set('start'), signalNode('a'), signalNode('b'), set('end')],
      edges: [
        edge('start', 'a'),
        edge('start', 'b'),
        edge('a', 'end', 'received'),
        edge('b', 'end', 'received'),
      ],
    }
    const approvals = {
      nodes: [approvalNode('first'), approvalNode('second')],
      edges: [edge('first', 'second', 'approved')],
    }
    const ids = {
      message: await run(both),
      answered: await run(approvals),
      decided: await run({ nodes: [approvalNode('first')] }),
      signalled: await run(inTurn('a', 'b', 'c', 'd')),
      cancelled: await run({ nodes: [delay('long', '1h')] }),
      paused: await run(inTurn('a')),
      resumed: await run(inTurn('a', 'b')),
      untouched: await run(inTurn('a', 'b')),
    }
    await waitsFor(ids.message, 'a', 'b')
    for (const id of [ids.answered, ids.decided]) await waitsFor(id, 'first')
    for (const id of [ids.signalled, ids.paused, ids.resumed, ids.untouched]) await waitsFor(id, 'a')
    await waitsFor(ids.cancelled, 'long')
    for (const id of Object.values(ids)) await settled(id)
    temporal.copy()

    await signal(ids.message, 'a')
    await answer(ids.answered, 'first')
    await answer(ids.decided, 'first')
    for (const name of ['a', 'b', 'c']) {
      await signal(ids.signalled, name)
      await until(async () => (await nodeStatuses(db, ids.signalled))[name] === 'completed')
    }
    await tenant((tx) => cancelRun(tx, ids.cancelled))
    for (const id of [ids.paused, ids.resumed]) await tenant((tx) => pauseRun(tx, id))
    await untilRun(db, ids.decided)
    await untilRun(db, ids.cancelled)
    for (const id of [ids.paused, ids.resumed]) await untilRun(db, id, ['paused'])
    await tenant((tx) => unpauseRun(tx, ids.resumed))
    await untilRun(db, ids.resumed, ['running'])
    await signal(ids.resumed, 'a')
    await waitsFor(ids.message, 'b')
    await waitsFor(ids.answered, 'second')
    await waitsFor(ids.signalled, 'd')
    await waitsFor(ids.resumed, 'b')
    for (const id of Object.values(ids)) await settled(id)
    await worker.stop()
    await temporal.restore()
    worker = await start(worker.taskQueue)

    // The first messages after the restore.
    await signal(ids.message, 'b')
    await answer(ids.answered, 'second')
    await signal(ids.signalled, 'd')
    await signal(ids.resumed, 'b')
    await tenant((tx) => unpauseRun(tx, ids.paused))
    await signal(ids.paused, 'a')
    for (const name of ['a', 'b']) await signal(ids.untouched, name)
    const open = [ids.message, ids.answered, ids.signalled, ids.paused, ids.resumed, ids.untouched]
    for (const id of open) assert.equal((await untilRun(db, id)).status, 'completed')
    for (const id of open) await until(async () => (await temporalStatus(id)) === 'COMPLETED', 'completed')
    // Their ends are in the rows, and nobody sends a message.
    await sweep()
    await until(async () => (await temporalStatus(ids.decided)) === 'COMPLETED', 'decided')
    await until(async () => (await temporalStatus(ids.cancelled)) === 'CANCELLED', 'cancelled')
  })

  it('go on while a worker works that knows the later moment by heart', async () => {
    const ids = await Promise.all([1, 2].map(() => run(inTurn('a', 'b', 'c', 'd'))))
    for (const id of ids) await waitsFor(id, 'a')
    for (const id of ids) await settled(id)
    temporal.copy()
    for (const id of ids)
      for (const [name, next] of [
        ['a', 'b'],
        ['b', 'c'],
        ['c', 'd'],
      ] as const) {
        await signal(id, name)
        await waitsFor(id, next)
        await settled(id)
      }
    await temporal.restore()
    const before = await Promise.all(ids.map((id) => historyLength(id)))
    for (const id of ids) await signal(id, 'd')
    // The worker skips the message, because it has seen a later event of this number.
    for (const [n, id] of ids.entries()) {
      await until(async () => (await historyLength(id)) > before[n]!, `${id} is told`)
      await settled(id)
    }
    await sweep()
    for (const id of ids) assert.equal((await untilRun(db, id)).status, 'completed')
    for (const id of ids) await until(async () => (await temporalStatus(id)) === 'COMPLETED', 'completed')
  })

  it('are looked at again until they have done what they were told', async () => {
    const id = await run(inTurn('a', 'b'))
    await waitsFor(id, 'a')
    await settled(id)
    await sweep()
    assert.equal((await row(id)).checked, true)
    // As if Temporal was restored a moment after the relay had told it.
    const now = db.system.fn.now()
    await db
      .system('run_waits')
      .where({ run_id: id })
      .update({
        answer: JSON.stringify({ payload: 1 }),
        answered_by: JSON.stringify(testActor),
        answered_at: now,
        notified_at: now,
      })
    await db.system('runs').where({ id }).update({ checked: false })
    await sweep()
    assert.equal((await row(id)).checked, false)
  })

  it('are told again what they had been told', async () => {
    const ids = {
      answered: await run({ nodes: [approvalNode('first')] }),
      signalled: await run(inTurn('a', 'b')),
      cancelled: await run({ nodes: [delay('long', '1h')] }),
      paused: await run({ nodes: [delay('long', '1h')] }),
    }
    await waitsFor(ids.answered, 'first')
    await waitsFor(ids.signalled, 'a')
    for (const id of [ids.cancelled, ids.paused]) await waitsFor(id, 'long')
    for (const id of Object.values(ids)) await settled(id)
    // As if Temporal was restored after the relay had told it, and before the workflow had acted.
    const ago = db.system.raw("now() - interval '2 minutes'")
    await db
      .system('runs')
      .where({ id: ids.cancelled })
      .update({ cancel_requested_at: ago, cancel_sent_at: ago })
    await db.system('runs').where({ id: ids.paused }).update({ pause_requested_at: ago })
    for (const id of [ids.answered, ids.signalled])
      await db
        .system('run_waits')
        .where({ run_id: id })
        .update({
          answer: JSON.stringify({ decision: 'approved', comment: null, payload: 1 }),
          answered_by: JSON.stringify(testActor),
          answered_at: ago,
          notified_at: ago,
        })
    await sweep()
    assert.equal((await untilRun(db, ids.answered)).status, 'completed')
    await waitsFor(ids.signalled, 'b')
    assert.equal((await untilRun(db, ids.cancelled)).status, 'cancelled')
    await untilRun(db, ids.paused, ['paused'])
  })

  it('go on if Temporal has lost them, and give back their slots, before the next whole sweep', async () => {
    const few = await createOrganization(db, { limits: { max_running: 2 } })
    temporal.copy()
    const held = await Promise.all([1, 2].map(() => queueRun(db, few, { nodes: [call('call')] })))
    await until(() => calls.length === 2, 'the calls')
    await temporal.restore()
    for (const answer of calls) answer()
    const next = await queueRun(db, few, { nodes: [set('next')] })
    const partly = new Sweep({ db, client: worker.client, taskQueue: worker.taskQueue, log: testLog })
    await until(async () => {
      await partly.glance()
      for (const answer of calls) answer()
      return (await row(next)).status === 'completed'
    }, 'the next run')
    for (const id of held) assert.deepEqual((await untilRun(db, id)).error, null)
    assert.equal(new Set(keys).size, held.length)
  })
})
