import type { DataConverter } from '@temporalio/common'
import { type NativeConnection, Worker, type WorkerOptions } from '@temporalio/worker'
import type { createDeliver } from '../activities/deliver.ts'
import type { createFiles } from '../activities/files/index.ts'
import type { createActivities, createPoolActivities } from '../activities/index.ts'
import { CALLS as CALL_SLOTS } from '../activities/slots/call-slots.ts'
import { FILE_SLOTS } from '../db/files/queue.ts'
import { ATTEMPTS } from '../db/outgoing/slots.ts'
import { filesTaskQueue, poolTaskQueue } from '../workflows/bundle/protocol.ts'
import type { RunCapacity } from './run-capacity.ts'
import { withWorkflowThreads } from './workflow-threads.ts'

interface ConnectionOptions {
  connection: NativeConnection
  namespace: string
  /** The task queue of runs; those of deliveries, files and pools are named after it. */
  taskQueue: string
  /** Activities may finish for so long after `shutdown()`; then they are cancelled, and retried by other workers. */
  shutdownGraceMs: number
  interceptors: NonNullable<WorkerOptions['interceptors']>
  /** How payloads and failures are stored; default: in plain text. */
  dataConverter?: DataConverter
}

export interface WorkersOptions extends ConnectionOptions {
  /** Path of the workflow bundle. */
  bundle: string
  activities: ReturnType<typeof createActivities>
  deliveries: ReturnType<typeof createDeliver>
  files: ReturnType<typeof createFiles>
  /** Connections of this process to PostgreSQL for transactions of tenants. */
  databasePool: number
  /** Measures the segments of the first worker. */
  capacity: RunCapacity
  /** Records the stacks that the query `__stack_trace` ("Call Stack" in the Temporal UI) returns. */
  stackTraces?: boolean
}

/** The time between the cancellation of activities and the end of a worker whose activities ignore it. */
const CANCEL_MS = 2_000

/**
 * How long the tasks of a dead worker's runs stay in its sticky queue, before any worker may take them. A call whose
 * heartbeats have ended is made again some nine seconds after a kill, and its result would wait for so long once more:
 * Temporal holds the queue for alive for ten seconds. Live workers take a task within half a second (`run-capacity.ts`).
 * Interrupted deliveries are found in their rows.
 */
const STICKY = '3 seconds'

/** Bounded by memory: a cached workflow takes some 60 KiB. */
const CACHED_WORKFLOWS = 1_000

/**
 * More slots than the pollers (one slot each) and the relay's starts occupy together: without a free slot a start is
 * not eager, and its first task arrives a second later (measured).
 */
const WORKFLOW_TASKS = 400

/** The workflow task slots of deliveries beside those of the attempts in progress. */
const SPARE_TASKS = 100

/** Deliveries have a separate task queue and slots: slow receivers do not delay runs. */
export const deliveriesTaskQueue = (taskQueue: string) => `${taskQueue}-deliveries`

/**
 * Activities of the task queue of runs that a worker holds at once: calls in progress, calls that wait in the worker for
 * a slot, where organizations take turns (`activities/slots/`), and room for those that find neither and go back.
 */
const ACTIVITIES = CALL_SLOTS.all + CALL_SLOTS.waiting + 50

/** The most active runs of a worker. */
export const MOST_RUNS = 250

/**
 * Segments that a worker runs at once, for each connection to PostgreSQL: a segment is one transaction and holds a
 * connection while it runs, so the second one waits for the first to commit. With 100 segments and 10 connections, 600
 * runs of five nodes that write took as long as with 20 or 10 (21 to 40 runs/s, the machine's noise), and 15.6 ms of CPU
 * each instead of 12.7 to 15; 1 in 100 segments waited 190 to 220 ms for a connection instead of 50 to 100.
 */
export const segmentsAtOnce = (databasePool: number): number => 2 * databasePool

/**
 * Imports and exports that a worker holds at once: all that one organization may have running, and some of others. They
 * wait for a place in the order of arrival, and have it for seconds.
 */
const FILES_AT_ONCE = 2 * FILE_SLOTS + 2

/**
 * A longer activation of a workflow is terminated, and Node 20 may abort the process then ("async hook stack has become
 * corrupted": https://github.com/nodejs/node/issues/43135). Ours take milliseconds: only a process that was frozen, or that
 * has no CPU time, exceeds the SDK's default of 5 s. The SDK passes the option on, but does not declare it.
 */
const ACTIVATION = { isolateExecutionTimeout: '1 minute' }
const ACTIVATION_MS = 60_000

/** The Temporal workers of this process, one for each task queue. */
export async function createWorkers(options: WorkersOptions): Promise<Worker[]> {
  const { stackTraces = false } = options
  const workers = await withWorkflowThreads({ stackTraces }, () => createAll(options))
  for (const { options } of workers)
    if (options.isolateExecutionTimeoutMs !== ACTIVATION_MS)
      throw new Error('@temporalio/worker ignores isolateExecutionTimeout: worker/workers.ts')
  return workers
}

/**
 * The most concurrent polls per task queue and kind of task. Each task that a poll gets is a write to Temporal's
 * database. With the SDK's 100, most waited for SQLite's only connection beyond Temporal's limit of a second, and their
 * tasks were dispatched again. 16 polls carry over 1,000 tasks a second where a write takes 10 ms.
 */
const POLLS = 16

/** The options of every worker. */
const optionsOf = ({
  connection,
  namespace,
  interceptors,
  shutdownGraceMs,
  dataConverter = {},
}: ConnectionOptions) =>
  ({
    ...ACTIVATION,
    connection,
    namespace,
    dataConverter,
    interceptors,
    shutdownGraceTime: shutdownGraceMs,
    shutdownForceTime: shutdownGraceMs + CANCEL_MS,
  }) satisfies Partial<WorkerOptions>

/** The options of the workers that make calls. */
const CALLS = {
  activityTaskPollerBehavior: { type: 'autoscaling', initial: 5, maximum: POLLS },
  // Far below the heartbeat timeouts: a delayed heartbeat must not look like a dead worker.
  maxHeartbeatThrottleInterval: '2 seconds',
  defaultHeartbeatThrottleInterval: '2 seconds',
} satisfies Partial<WorkerOptions>

/** The Temporal worker of a process in a pool: it makes the calls of external nodes, and runs no workflow. */
export const createPoolWorker = (
  options: ConnectionOptions & { pool: string; activities: ReturnType<typeof createPoolActivities> },
): Promise<Worker> =>
  Worker.create({
    ...optionsOf(options),
    ...CALLS,
    taskQueue: poolTaskQueue(options.taskQueue, options.pool),
    activities: options.activities,
    maxConcurrentActivityTaskExecutions: ACTIVITIES,
  })

function createAll(options: WorkersOptions): Promise<Worker[]> {
  const { taskQueue } = options
  const common = optionsOf(options)
  const shared = {
    ...common,
    ...CALLS,
    workflowBundle: { codePath: options.bundle },
    workflowTaskPollerBehavior: { type: 'autoscaling', initial: 5, maximum: POLLS },
    maxConcurrentWorkflowTaskExecutions: WORKFLOW_TASKS,
  } satisfies Partial<WorkerOptions>
  return Promise.all([
    Worker.create({
      ...shared,
      taskQueue,
      interceptors: {
        ...shared.interceptors,
        activity: [...(shared.interceptors.activity ?? []), options.capacity.interceptor()],
      },
      activities: options.activities,
      maxConcurrentActivityTaskExecutions: ACTIVITIES,
      maxConcurrentLocalActivityExecutions: segmentsAtOnce(options.databasePool),
      maxCachedWorkflows: CACHED_WORKFLOWS,
      stickyQueueScheduleToStartTimeout: STICKY,
    }),
    Worker.create({
      ...shared,
      taskQueue: deliveriesTaskQueue(taskQueue),
      activities: options.deliveries,
      // Room for all attempts that may be in progress, as first ones or as retries. They are not bounded by the
      // connections to PostgreSQL: an attempt uses one for its two short transactions, and none during its call.
      maxConcurrentActivityTaskExecutions: 2 * ATTEMPTS.all,
      maxConcurrentLocalActivityExecutions: ATTEMPTS.all,
      // A first attempt occupies a workflow task.
      maxConcurrentWorkflowTaskExecutions: ATTEMPTS.all + SPARE_TASKS,
      maxCachedWorkflows: ATTEMPTS.all + SPARE_TASKS,
    }),
    // Activities only: the first worker runs the workflows of files, because another workflow thread costs 30 MB.
    Worker.create({
      ...common,
      activityTaskPollerBehavior: { type: 'simple-maximum', maximum: 1 },
      taskQueue: filesTaskQueue(taskQueue),
      activities: options.files,
      maxConcurrentActivityTaskExecutions: FILES_AT_ONCE,
    }),
  ])
}
