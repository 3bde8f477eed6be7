import assert from 'node:assert/strict'
import { randomUUID } from 'node:crypto'
import { cancelRun, terminateRun } from '../../db/runs/moves/ends.ts'
import { pauseRun, unpauseRun } from '../../db/runs/moves/pauses.ts'
import { Sweep } from '../../worker/sweep.ts'
import type { Happened, SegmentAnswer, SegmentInput } from '../../workflows/bundle/protocol.ts'
import { createOrganization, createTestDatabase, type TestDatabase, testActor } from '../support/database.ts'
import { forgetRun } from '../support/forget-run.ts'
import { holdFor } from '../support/hold.ts'
import { httpResponse } from '../support/http-response.ts'
import { call, delay, edge, set } from '../support/nodes.ts'
import { until } from '../support/until.ts'
import { nodeStatuses, queueRun, startWorker, type TestWorker, testLog, untilRun } from '../support/worker.ts'

/**
 * Requests to pause, resume, cancel and terminate that meet at the worst moment: the last one that was accepted holds.
 */
describe('control requests that meet', () => {
  let db: TestDatabase
  let worker: TestWorker
  let organizationId: string
  /** Resolves before a segment runs; tests hold segments by it. */
  let gate: (input: SegmentInput) => Promise<void>
  /** Replaces the answer of a segment; `repeat` asks for it again, after more has happened. */
  let again: (
    answer: SegmentAnswer,
    repeat: (happened: Happened[]) => Promise<SegmentAnswer>,
  ) => Promise<SegmentAnswer>
  let held: Promise<void>
  let calls: number
  /** Segments in progress. */
  let advancing = 0

  const start = (taskQueue?: string) =>
    startWorker(
      db,
      {
        advance: (advance) => async (input) => {
          advancing += 1
          try {
            await gate(input)
            return await again(await advance(input), (happened) =>
              advance({ ...input, happened: [...input.happened, ...happened] }),
            )
          } finally {
            advancing -= 1
          }
        },
        http: async () => {
          calls += 1
          await held
          return httpResponse()
        },
      },
      taskQueue,
    )

  before(async () => {
    db = await createTestDatabase()
    organizationId = await createOrganization(db)
    worker = await start()
  })
  beforeEach(() => {
    gate = async () => {}
    again = async (answer) => answer
    held = Promise.resolve()
    calls = 0
  })
  after(async () => {
    await worker?.stop()
    await db?.drop()
  })

  const move = (work: typeof pauseRun | typeof terminateRun | typeof cancelRun, id: string) =>
    db.tenant<unknown>(organizationId, testActor, (tx) => work(tx, id))
  const row = (id: string) => db.system('runs').where({ id }).first()
  const workflow = (id: string) => worker.client.workflow.getHandle(`run:${id}`)
  const waiting = (id: string) => until(async () => (await row(id)).sleeps_until !== null)

  /** Holds the segments for which `matches`, until `release`. `reached` resolves with the first of them. */
  function hold(matches: (input: SegmentInput) => boolean) {
    const held = holdFor(matches)
    gate = held.pass
    return held
  }

  it('a paused workflow whose task is repeated after the resume applies nothing any more', async () => {
    const id = await queueRun(db, organizationId, { nodes: [delay('wait', '1h')] })
    await waiting(id)
    const { temporal_run_id: first } = await row(id)
    const repeated = new Promise<SegmentAnswer>((resolve) => {
      again = async (answer, repeat) => {
        if (!isPause(answer)) return answer
        again = async (other) => other
        await move(unpauseRun, id)
        // Temporal refuses an end if something has arrived meanwhile, and repeats the task with it.
        const second = await repeat([{ type: 'timer', node: 'wait' }])
        resolve(second)
        return second
      }
    })
    await move(pauseRun, id)
    assert.ok(isPause(await repeated))
    await until(async () => (await row(id)).temporal_run_id !== first)
    assert.deepEqual(await nodeStatuses(db, id), { wait: 'waiting' })
    await move(terminateRun, id)
  })

  const isPause = ({ commands }: SegmentAnswer) =>
    commands.some((command) => command.type === 'end' && command.status === 'paused')

  it('a run that is terminated before its resumed workflow has begun stays terminated', async () => {
    const id = await queueRun(db, organizationId, {
      nodes: [delay('pause', '300ms'), call('call'), set('next')],
      edges: [edge('pause', 'call'), edge('call', 'next')],
    })
    await waiting(id)
    await move(pauseRun, id)
    await untilRun(db, id, ['paused'])
    const segments = hold(({ resume }) => resume !== undefined)
    await move(unpauseRun, id)
    await segments.reached
    await move(terminateRun, id)
    const { events } = await eventsOf(id)
    segments.release()
    await until(async () => (await workflow(id).describe()).status.name !== 'RUNNING')
    // The segment goes on in the worker after Temporal has ended the workflow.
    await until(async () => (await row(id)).workflow_command === null)
    await until(() => advancing === 0)
    assert.equal((await row(id)).status, 'terminated')
    assert.equal(calls, 0)
    assert.deepEqual(await nodeStatuses(db, id), { pause: 'cancelled' })
    assert.equal((await eventsOf(id)).events, events)
  })

  const eventsOf = async (id: string) => {
    const events = await db.system('events').where({ subject_id: id })
    return { events: events.length }
  }

  it('a pause after a cancellation that was accepted changes nothing, also while the run is queued again', async () => {
    const id = await queueRun(db, organizationId, { nodes: [delay('wait', '1h')] })
    await waiting(id)
    await move(pauseRun, id)
    await untilRun(db, id, ['paused'])
    await db.system('organizations').where({ id: organizationId }).update({ limits: '{"max_running": 0}' })
    await move(unpauseRun, id)
    await move(cancelRun, id)
    await move(pauseRun, id)
    await db.system('organizations').where({ id: organizationId }).update({ limits: '{}' })
    assert.equal((await untilRun(db, id)).status, 'cancelled')
  })

  it('a run whose cancellation was accepted while it pauses is cancelled', async () => {
    const id = await queueRun(db, organizationId, { nodes: [delay('pause', '1h')] })
    await waiting(id)
    const segments = hold(({ happened }) => happened.some(({ type }) => type === 'refresh'))
    await move(pauseRun, id)
    await segments.reached
    await move(cancelRun, id)
    segments.release()
    assert.equal((await untilRun(db, id)).status, 'cancelled')
    assert.deepEqual(await nodeStatuses(db, id), { pause: 'cancelled' })
    await until(async () => (await workflow(id).describe()).status.name === 'CANCELLED')
  })

  it('a resumed run whose first segment always fails is failed after five failures', async () => {
    const id = await queueRun(db, organizationId, {
      nodes: [delay('pause', '1s'), set('next')],
      edges: [edge('pause', 'next')],
    })
    await waiting(id)
    await move(pauseRun, id)
    await untilRun(db, id, ['paused'])
    await worker.stop()
    const { workflow_id } = await row(id)
    await db.system('workflow_versions').where({ workflow_id }).update({ program: '{"engine": 1}' })
    worker = await start(worker.taskQueue)
    await move(unpauseRun, id)
    const ended = await untilRun(db, id)
    assert.deepEqual([ended.status, ended.error?.code], ['failed', 'internal_error'])
    await until(async () => (await workflow(id).describe()).status.name === 'FAILED')
  })

  it('a pause takes effect after Temporal has lost the run and its attempt with a worker', async () => {
    let release = () => {}
    held = new Promise((resolve) => {
      release = resolve
    })
    const id = await queueRun(db, organizationId, { nodes: [call('call')] })
    await until(() => calls === 1)
    await forgetRun(worker.client, id)
    // As a killed worker leaves it.
    await db.system('run_nodes').where({ run_id: id }).update({ attempt_token: randomUUID() })
    await move(pauseRun, id)
    await new Sweep({ db, client: worker.client, taskQueue: worker.taskQueue, log: testLog }).once(
      '0 seconds',
    )
    await untilRun(db, id, ['paused'])
    release()
    held = Promise.resolve()
    await move(unpauseRun, id)
    assert.equal((await untilRun(db, id)).status, 'completed')
  })
})
