import assert from 'node:assert/strict'
import { randomBytes } from 'node:crypto'
import { tsToMs } from '@temporalio/common/lib/time.js'
import proto from '@temporalio/proto'
import { pauseRun, unpauseRun } from '../../db/runs/moves/pauses.ts'
import { sendSignal } from '../../db/runs/signals.ts'
import { createOrganization, createTestDatabase, type TestDatabase, testActor } from '../support/database.ts'
import { delay, edge } from '../support/nodes.ts'
import { SUGGESTED_EVENTS } from '../support/temporal-settings.ts'
import { until } from '../support/until.ts'
import {
  type historyOf,
  nodeStatuses,
  queueRun,
  startWorker,
  type TestWorker,
  untilRun,
} from '../support/worker.ts'

const ITEMS = 32
const DELAYS = 25
const WAITS = ITEMS * DELAYS
/** Half of the bytes that a message to Temporal may have. */
const MOST = 2_000_000

/** A node id of the greatest length. */
const long = (name: string) => name.padEnd(64, '_')

/** Items that wait for their delays and a signal; the item that gets the signal fails, and with it the loop. */
function itemsThatWait() {
  const [each, signal] = [long('each'), long('signal')]
  const delays = Array.from({ length: DELAYS }, (_, n) => ({
    ...delay(long(`d${n}_`), '1h'),
    title: '語'.repeat(200),
  }))
  return {
    nodes: [
      {
        id: each,
        type: 'for_each',
        config: { items: Array(ITEMS).fill({}), concurrency: ITEMS, on_item_error: 'stop' },
        on_error: 'continue' as const,
      },
      { id: signal, type: 'wait_for_signal', config: { name: 'fail' } },
      { id: 'fails', type: 'set_fields', config: { fields: { x: '{{ item.missing }}' } } },
      ...delays,
      delay('next', '1h'),
    ],
    edges: [
      ...[signal, ...delays.map(({ id }) => id)].map((id) => edge(each, id, 'item')),
      edge(signal, 'fails', 'received'),
      edge(each, 'next', 'done'),
    ],
  }
}

type Event = Awaited<ReturnType<typeof historyOf>>[number]

/** The bytes of what each workflow task of a history has issued. */
function taskSizes(events: Event[]): number[] {
  const sizes = new Map<string, number>()
  for (const event of events) {
    const attributes: { workflowTaskCompletedEventId?: unknown } | undefined = Object.values(event).find(
      (value) => value !== null && typeof value === 'object' && 'workflowTaskCompletedEventId' in value,
    )
    if (!attributes) continue
    const task = String(attributes.workflowTaskCompletedEventId)
    const { length } = proto.temporal.api.history.v1.HistoryEvent.encode(event).finish()
    sizes.set(task, (sizes.get(task) ?? 0) + length)
  }
  return [...sizes.values()]
}

describe('a run with many open waits of the longest names', () => {
  let db: TestDatabase
  let worker: TestWorker
  before(async () => {
    db = await createTestDatabase()
    worker = await startWorker(db, { payloadKeys: { encrypt: randomBytes(32), open: [] } })
  })
  after(async () => {
    await worker?.stop()
    await db?.drop()
  })

  it('issues and cancels them in tasks of bounded size, and starts nodes although they fill its history', async () => {
    assert.ok(WAITS > SUGGESTED_EVENTS)
    const organizationId = await createOrganization(db)
    const id = await queueRun(db, organizationId, itemsThatWait())
    const row = () => db.system('runs').where({ id }).first()
    const sleeps = async (unlike?: string) => {
      const { sleeps_until, temporal_run_id } = await row()
      return sleeps_until !== null && temporal_run_id !== unlike
    }
    const isTimerOfDelay = ({ timerStartedEventAttributes: timer }: Event) =>
      timer && tsToMs(timer.startToFireTimeout) > 60_000
    /** The history of an execution, once it has one of these events for each wait. */
    const historyWith = (isOne: (event: Event) => unknown, runId: string) =>
      until(async () => {
        const { events } = await worker.client.workflow.getHandle(`run:${id}`, runId).fetchHistory()
        return events?.filter(isOne).length === WAITS && events
      })

    await until(() => sleeps(), 'all waits')
    const { temporal_run_id: first } = await row()
    const sizes = taskSizes(await historyWith(isTimerOfDelay, first))
    await db.tenant(organizationId, testActor, (tx) => pauseRun(tx, id))
    await untilRun(db, id, ['paused'])
    await db.tenant(organizationId, testActor, (tx) => unpauseRun(tx, id))
    await until(() => sleeps(first), 'the waits of the resumed run')
    const { temporal_run_id: second } = await row()
    await historyWith(isTimerOfDelay, second)
    await db.tenant(organizationId, testActor, (tx) => sendSignal(tx, id, { name: 'fail', payload: null }))
    await until(async () => (await nodeStatuses(db, id)).next === 'waiting', 'the node after the loop')
    const resumed = await historyWith((event) => event.timerCanceledEventAttributes, second)
    assert.ok(resumed.every((event) => !event.workflowTaskFailedEventAttributes))
    sizes.push(...taskSizes(resumed))
    assert.ok(Math.max(...sizes) < MOST, `${sizes} bytes`)
    assert.equal((await row()).status, 'running')
  })
})
