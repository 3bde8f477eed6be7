import assert from 'node:assert/strict'
import { ApplicationFailure } from '@temporalio/activity'
import { cancelRun } from '../../db/runs/moves/ends.ts'
import { NodeError } from '../../workflows/language/node-error.ts'
import { bundleWith } from '../support/bundle.ts'
import { createOrganization, createTestDatabase, type TestDatabase, testActor } from '../support/database.ts'
import { httpResponse } from '../support/http-response.ts'
import { call, delay, each, edge, set } from '../support/nodes.ts'
import { SUGGESTED_EVENTS } from '../support/temporal-settings.ts'
import { until } from '../support/until.ts'
import { historyOf, queueRun, startWorker, type TestWorker, untilRun } from '../support/worker.ts'

describe('runs with a long history', () => {
  let db: TestDatabase
  let worker: TestWorker
  let organizationId: string
  let made: string[] = []
  let answer: () => Promise<void> = async () => {}
  let away = false
  /** Whether the first segment while no node may start was asked for before, of a worker that died with the answer. */
  let lost = false

  before(async () => {
    db = await createTestDatabase()
    organizationId = await createOrganization(db)
    worker = await startWorker(db, {
      bundle: await bundleWith({
        attempts: 20,
        firstRetry: '2 ms',
        lastRetry: '2 ms',
        longestPauseInTask: '1 ms',
        drainLook: '100 ms',
        drainLooks: 2,
      }),
      async http({ headers = {} }) {
        made.push(headers['Idempotency-Key'] ?? '')
        await answer()
        return httpResponse()
      },
      advance: (advance) => async (input) => {
        if (away) throw ApplicationFailure.create({ message: 'The database is unavailable.' })
        const { drain, ...before } = input
        if (lost && drain) {
          lost = false
          await advance(before)
        }
        return advance(input)
      },
    })
  })
  beforeEach(() => {
    made = []
    answer = async () => {}
    away = false
    lost = false
  })
  after(async () => {
    await worker?.stop()
    await db?.drop()
  })

  const row = (id: string) => db.system('runs').where({ id }).first()
  const itemsDone = async (id: string) => {
    const [found] = await db.system('run_iterations').where({ run_id: id, status: 'completed' }).count()
    return Number(found!.count)
  }
  /** The executions of a run's workflow, with the events of each. */
  async function executions(id: string) {
    const lengths: number[] = []
    for await (const one of worker.client.workflow.list({ query: `WorkflowId = 'run:${id}'` }))
      lengths.push(one.historyLength)
    return lengths
  }
  /** A call beside a loop of `items` waits, each of which takes some six events. */
  const beside = (first: ReturnType<typeof call>, items: number) =>
    queueRun(
      db,
      organizationId,
      {
        nodes: [set('start'), first, each({ output: 1 }), delay('pause', '1ms'), set('last')],
        edges: [
          edge('start', first.id),
          edge('start', 'each'),
          edge('each', 'pause', 'item'),
          edge('each', 'last', 'done'),
        ],
        inputs: { items: { type: 'array' } },
      },
      { items: Array.from({ length: items }, (_, n) => n) },
    )

  it('do not repeat a call in progress when they continue as new, nor wait for it for long', async () => {
    let release = () => {}
    const released = new Promise<void>((resolve) => {
      release = resolve
    })
    answer = () => released
    const id = await beside(call('long'), SUGGESTED_EVENTS / 2)
    await until(async () => (await itemsDone(id)) > SUGGESTED_EVENTS / 5)
    release()
    assert.equal((await untilRun(db, id, undefined, 120)).status, 'completed')
    assert.deepEqual(made, [`${id}:long`])
    const lengths = await until(async () => {
      const all = await executions(id)
      return all.length >= 2 ? all : undefined
    }, 'two executions')
    assert.ok(Math.max(...lengths) > SUGGESTED_EVENTS, String(lengths))
  })

  it('do not repeat a call whose segment was recorded before the history was long, by a worker that died', async () => {
    let release = () => {}
    const released = new Promise<void>((resolve) => {
      release = resolve
    })
    answer = () => released
    lost = true
    const id = await beside(call('long'), SUGGESTED_EVENTS / 2)
    await until(() => !lost, 'a long history')
    const items = await itemsDone(id)
    await until(async () => (await itemsDone(id)) > items + 5)
    release()
    assert.equal((await untilRun(db, id, undefined, 120)).status, 'completed')
    assert.deepEqual(made, [`${id}:long`])
  })

  it('continue as new beside a call that waits for its next attempt, which stays as late as it was', async () => {
    answer = async () => {
      throw new NodeError('http_429', 'Too many requests.', { retryable: true, retryAfterMs: 3_600_000 })
    }
    const items = Math.ceil(SUGGESTED_EVENTS / 3)
    const id = await beside(call('limited'), items)
    await until(async () => (await itemsDone(id)) === items)
    await until(async () => (await executions(id)).length >= 2, 'two executions')
    const node = await db.system('run_nodes').where({ run_id: id, node_id: 'limited' }).first()
    assert.deepEqual([node.attempt, made.filter((key) => key.startsWith(id)).length], [2, 1])
    assert.ok(node.next_attempt_at.getTime() > Date.now() + 3_000_000)
    await db.tenant(organizationId, testActor, (tx) => cancelRun(tx, id))
    assert.equal((await untilRun(db, id)).status, 'cancelled')
  })

  /** Makes the database unavailable from a moment in which the run waits, until its workflow has continued as new. */
  async function outageOf(id: string, during: () => Promise<unknown> = async () => {}) {
    const before = (await executions(id)).length
    away = true
    await during()
    await until(async () => (await executions(id)).length > before)
    away = false
  }

  it('continue as new in an outage of the database, and go on after it', async () => {
    const id = await queueRun(db, organizationId, {
      nodes: [delay('pause', '300ms'), set('next')],
      edges: [edge('pause', 'next')],
    })
    await until(async () => (await row(id)).sleeps_until, 'the pause')
    await outageOf(id)
    assert.equal((await untilRun(db, id)).status, 'completed')
    for (const events of await executions(id))
      assert.ok(events < SUGGESTED_EVENTS + 1_000, `${events} events`)
    const started = await db.system('events').where({ subject_id: id, name: 'workflow.started' })
    assert.equal(started.length, 1)
  })

  it('start once after an outage that began before their first segment', async () => {
    away = true
    const id = await queueRun(db, organizationId, {
      nodes: [set('only')],
      outputs: { value: '{{ nodes.only.output.value }}' },
    })
    await until(async () => (await executions(id)).length > 0, 'the workflow')
    await outageOf(id)
    const run = await untilRun(db, id)
    assert.deepEqual([run.status, run.outputs], ['completed', { value: 'only' }])
    const events = await db.system('events').where({ subject_id: id }).orderBy('id')
    assert.deepEqual(
      events.map(({ name }) => name),
      ['workflow.started', 'workflow.completed'],
    )
  })

  it('are cancelled by a request of Temporal that came in an outage', async () => {
    const id = await queueRun(db, organizationId, { nodes: [delay('pause', '1h')] })
    await until(async () => (await row(id)).sleeps_until, 'the pause')
    const handle = worker.client.workflow.getHandle(`run:${id}`)
    await outageOf(id, () => handle.cancel())
    assert.equal((await untilRun(db, id)).status, 'cancelled')
    await assert.rejects(handle.result())
    assert.equal((await handle.describe()).status.name, 'CANCELLED')
  })

  it('keep the call whose result waits for the database', async () => {
    const id = await queueRun(db, organizationId, {
      // The history takes longer to grow on a busy machine than a call may by default.
      nodes: [set('start'), call('call', { timeout: '10m' }), delay('pause', '1s')],
      edges: [edge('start', 'call'), edge('start', 'pause')],
    })
    let release = () => {}
    answer = () =>
      new Promise<void>((resolve) => {
        release = resolve
      })
    const calls = () => made.filter((key) => key.startsWith(id)).length
    await until(() => calls() === 1, 'the call')
    away = true
    const handle = worker.client.workflow.getHandle(`run:${id}`)
    const length = async () => (await historyOf(worker.client, handle.workflowId)).length
    await until(async () => (await length()) > SUGGESTED_EVENTS + 200)
    away = false
    release()
    assert.equal((await untilRun(db, id)).status, 'completed')
    assert.deepEqual([calls(), (await executions(id)).length], [1, 1])
  })
})
