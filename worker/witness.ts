import { setTimeout as pause } from 'node:timers/promises'
import { type Client, WorkflowExecutionAlreadyStartedError, WorkflowNotFoundError } from '@temporalio/client'
import proto from '@temporalio/proto'
import { ConfigError } from '../db/model/config-error.ts'
import { databaseId } from '../db/postgres/database-id.ts'
import type { System } from '../db/postgres/tenancy.ts'
import type { Logger } from '../db/process/log.ts'
import { freeSweepLease } from '../db/queue/sweep-state.ts'
import {
  markBehind,
  markLost,
  markSeen,
  nextSequence,
  readWitness,
  recordDatabaseId,
} from '../db/queue/witness.ts'
import type { witness } from '../workflows/bundle/index.ts'
import type { Testimony } from '../workflows/bundle/protocol.ts'
import { witnessed } from '../workflows/bundle/witness.ts'
import { MissingPayloadKey } from './payload-codec.ts'
import { withTimeout } from './sweep/describe.ts'

/**
 * The witness: a workflow in Temporal, one per task queue, that remembers which database owns the queue, and a number
 * that the database lets grow. The database knows the greatest number that the witness has remembered. If the witness
 * remembers less or is gone, Temporal was restored to an earlier moment, or emptied. If it remembers another database,
 * this one is a copy, or a stranger, that must not work on the queue.
 */
export interface WitnessDeps {
  system: System
  client: Client
  taskQueue: string
  log: Logger
}

export const witnessId = (taskQueue: string) => `witness:${taskQueue}`

type Remembered =
  /** Temporal does not have it. */
  | 'gone'
  /** An operator has ended it; its memory no longer counts. */
  | 'ended'
  | Testimony

/**
 * Requires that this database owns the task queue, before a worker polls it; a queue without a witness becomes its own.
 * `adopt`: the database replaces the one that owns the queue. Throws ConfigError if another database owns it, and another
 * error as long as a database that cannot be told from this one seems to work on it.
 * @returns whether Temporal has lost its witness.
 */
export function requireOwnQueue(deps: WitnessDeps, adopt: boolean): Promise<boolean> {
  return own(deps, adopt).catch((error: unknown) => {
    // Another worker has started the witness meanwhile.
    if (!(error instanceof WorkflowExecutionAlreadyStartedError)) throw error
    return own(deps, adopt)
  })
}

async function own(deps: WitnessDeps, adopt: boolean): Promise<boolean> {
  const { system, taskQueue, log } = deps
  const id = await databaseId(system)
  const [remembered, state] = [await ask(deps), await readWitness(system, taskQueue)]
  // The first sweep of this worker does not wait for it.
  if (adopt) await freeSweepLease(system)
  if (typeof remembered === 'string') {
    await recordDatabaseId(system, id)
    const lost = state.seen > 0 && remembered === 'gone'
    if (lost) await noteLoss(deps, 'gone')
    else if (adopt) await markLost(system, taskQueue)
    await begin(deps, id, 0)
    return lost
  }
  if (remembered.database === id) {
    const quiet = state.now.getTime() - Date.parse(remembered.at)
    const behind = remembered.sequence > state.sequence
    if (behind && quiet < STRANGER_MS && !adopt) throw new Error(STRANGER(taskQueue))
    await recordDatabaseId(system, id)
    if (behind || adopt) await noteBehind(deps, !adopt)
    return false
  }
  if (!adopt) throw new ConfigError(FOREIGN(taskQueue, remembered.database, id))
  log.warn(
    { taskQueue, replaced: remembered.database },
    'this database replaces the one that owned the task queue',
  )
  await recordDatabaseId(system, id, remembered.database)
  await noteBehind(deps, false)
  await markLost(system, taskQueue)
  await begin(deps, id, remembered.sequence)
  return false
}

/**
 * How long ago another database must have told the witness something: twice the interval of the sweep, and some. A copy
 * of the files of a database has the same id, and so has the database itself after a restore of its files.
 */
const STRANGER_MS = 90_000

const STRANGER = (taskQueue: string) =>
  `another copy of this database works on the task queue ${taskQueue}, or did less than ${STRANGER_MS / 1_000} s ago: ` +
  'stop its workers, or give one of them another TEMPORAL_NAMESPACE or TEMPORAL_TASK_QUEUE'

const FOREIGN = (taskQueue: string, owner: string, own: string) =>
  `the task queue ${taskQueue} belongs to another database (${owner}, this one is ${own}), whose runs this worker would ` +
  'end: use another TEMPORAL_NAMESPACE or TEMPORAL_TASK_QUEUE for a copy such as staging; if this database replaces ' +
  'the other one for good, stop all workers of the other one, and start once with TEMPORAL_ADOPT=true'

/**
 * Compares what the witness remembers with what it had remembered, and tells it the next number.
 * @returns whether Temporal has lost something since.
 */
export async function consultWitness(deps: WitnessDeps): Promise<boolean> {
  const { system, taskQueue, log } = deps
  const own = await databaseId(system)
  const [remembered, state] = [await ask(deps), await readWitness(system, taskQueue)]
  if (typeof remembered === 'string') {
    const lost = state.seen > 0 && remembered === 'gone'
    if (lost) await noteLoss(deps, 'gone')
    await begin(deps, own, 0)
    return lost
  }
  if (remembered.database !== own) {
    log.error(
      { taskQueue, owner: remembered.database },
      'another database has taken over the task queue; stop one',
    )
    return false
  }
  if (remembered.sequence > state.sequence) await noteBehind(deps, true)
  const lost = remembered.sequence < state.seen
  if (lost) await noteLoss(deps, remembered.at)
  else await markSeen(system, taskQueue, remembered.sequence)
  const testimony = { database: own, ...(await nextSequence(system, taskQueue, remembered.sequence)) }
  await withTimeout(deps.client, () => handleOf(deps).signal(witnessed, testimony))
  await readBack(deps, testimony.sequence)
  return lost
}

/**
 * Whether Temporal seems to have lost something since the witness was last consulted, which says so for sure. One
 * question to Temporal, so that a loss is noticed within seconds.
 */
export async function seemsForgetful(deps: WitnessDeps): Promise<boolean> {
  // First: what the witness remembers grows meanwhile.
  const { seen } = await readWitness(deps.system, deps.taskQueue)
  const remembered = await ask(deps)
  if (seen === 0 || remembered === 'ended') return false
  if (remembered === 'gone') return true
  return remembered.sequence < seen && remembered.database === (await databaseId(deps.system))
}

/** A worker with a free slot answers in milliseconds; otherwise the next call reads what it has remembered. */
const READS = 5
const READ_MS = 100

async function readBack(deps: WitnessDeps, sequence: number): Promise<void> {
  for (let reads = 0; reads < READS; reads++) {
    await pause(READ_MS)
    const remembered = await ask(deps)
    if (typeof remembered === 'string' || remembered.sequence < sequence) continue
    return markSeen(deps.system, deps.taskQueue, remembered.sequence)
  }
}

async function noteBehind({ system, taskQueue, log }: WitnessDeps, behind: boolean): Promise<void> {
  await markBehind(system, taskQueue, behind)
  if (behind)
    log.warn(
      { taskQueue },
      'Temporal knows more than the database, which is a copy of its files, or was restored to an earlier moment: runs ' +
        'that it does not know are retried, not ended, until a worker is started once with TEMPORAL_ADOPT=true',
    )
}

async function noteLoss({ system, taskQueue, log }: WitnessDeps, restoredTo: string): Promise<void> {
  await markLost(system, taskQueue)
  log.warn(
    { taskQueue, restoredTo },
    'Temporal has lost what it had: it was restored or emptied; all that is open is compared with it',
  )
}

const { WorkflowExecutionStatus } = proto.temporal.api.enums.v1

const handleOf = ({ client, taskQueue }: WitnessDeps) => client.workflow.getHandle(witnessId(taskQueue))

async function ask(deps: WitnessDeps): Promise<Remembered> {
  try {
    const { status, memo } = await withTimeout(deps.client, () => handleOf(deps).describe())
    return status.name === 'RUNNING' ? (memo as unknown as Testimony) : 'ended'
  } catch (error) {
    if (error instanceof WorkflowNotFoundError) return 'gone'
    if (!(error instanceof MissingPayloadKey)) throw error
    if (!(await isRunning(deps))) return 'ended'
    throw new ConfigError(
      `the workflow ${witnessId(deps.taskQueue)} cannot be read: ${error.message}; if the key is lost for good, terminate that workflow in Temporal`,
    )
  }
}

/** Whether the witness runs, by what needs no key: the client of the SDK decodes the memo of every description. */
async function isRunning({ client, taskQueue }: WitnessDeps): Promise<boolean> {
  const { workflowExecutionInfo: info } = await withTimeout(client, () =>
    client.workflowService.describeWorkflowExecution({
      namespace: client.options.namespace,
      execution: { workflowId: witnessId(taskQueue) },
    }),
  )
  return info?.status === WorkflowExecutionStatus.WORKFLOW_EXECUTION_STATUS_RUNNING
}

/** Starts the witness; another one of the queue ends. */
async function begin(deps: WitnessDeps, database: string, after: number): Promise<void> {
  const { system, client, taskQueue } = deps
  const testimony: Testimony = { database, ...(await nextSequence(system, taskQueue, after)) }
  await withTimeout(client, () =>
    client.workflow.start<typeof witness>('witness', {
      taskQueue,
      workflowId: witnessId(taskQueue),
      args: [testimony],
      memo: { ...testimony },
      staticSummary: 'Remembers the database of this task queue',
      workflowIdConflictPolicy: after > 0 ? 'TERMINATE_EXISTING' : 'FAIL',
    }),
  )
}
