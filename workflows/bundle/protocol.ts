import type { RetryPolicy } from '../language/definition.ts'
import type { EndStatus } from '../shared/statuses.ts'

/**
 * The messages between workflows and activities. Temporal histories store them: members may be added; existing members
 * keep their meaning. They hold no values of nodes, which stay in the database.
 */

/**
 * The version of the run workflow for new runs. Version 1 completes a failed run in Temporal, and fails a run that was
 * cancelled before its first segment; version 2 never continues as new; version 3 repeats calls of more than five
 * minutes when it does, never while the database is away, and keeps the memo and time limit of a run that is migrated;
 * version 4 stops to start nodes also where its open nodes would fill a new history. All are kept to replay their
 * histories.
 */
export const RUN_WORKFLOW_VERSION = 5

/** The input of a run, from the relay. `engine` is the version of the run workflow. */
export interface RunInput {
  engine: 1 | 2 | 3 | 4 | typeof RUN_WORKFLOW_VERSION
  organization_id: string
  run_id: string
  /** The title of the first node, for the timeline of the Temporal UI. */
  starts_with: string
  /** The id of the database that has the run's rows: a copy of it must not go on with the run. */
  database?: string
  /** Where the workflow starts, if it continues a run: after a pause, a lost workflow, or as new. */
  resume?: Resume
  /** What happened in the workflow that continued as this one, and was not recorded. */
  happened?: Happened[]
}

/** Options of a local activity that is one transaction. */
export const IN_DATABASE = {
  // Longer than the statement timeout of the database, so that its error arrives.
  startToCloseTimeout: '75 seconds',
  retry: { initialInterval: '100 ms', backoffCoefficient: 2, maximumInterval: '20 seconds' },
  // Longer pauses are timers: the history shows them, and they occupy no workflow task.
  localRetryThreshold: '2 seconds',
} as const

/** The search attributes that the run workflow reads and writes. */
export const ORGANIZATION_ATTRIBUTE = 'AgxOrganization'
export const STATE_ATTRIBUTE = 'AgxState'
export const EXPECTED_BY_ATTRIBUTE = 'AgxExpectedBy'
/** The value of AgxState for a run that waits for a person. */
export const WAITS_FOR_PERSON = 'waiting_for_person'

/** The signal that adds `refresh` to what happened. */
export const REFRESH = 'refresh'

export interface Resume {
  /** The segment to start with. */
  segment: number
  /** How often the run was resumed: distinguishes the start of the newest resume from older ones. */
  count: number
}

/** A node of a run. `path` is its iteration; absent outside of any loop. */
export interface NodeAt {
  node: string
  path?: string
}

/** Something that the run waited for. */
export type Happened =
  /** The timer of a waiting node has fired: the delay is over, or the wait for an answer has expired. */
  | ({ type: 'timer' } & NodeAt)
  /** The activity of an external node has written its row. */
  | ({ type: 'settled' } & NodeAt)
  /** The activity failed finally; `code` and `message` count if it could not write its row. */
  | ({ type: 'failed'; code: string; message: string } & NodeAt)
  | { type: 'cancelled' }
  /** The sweep found that the rows wait for something for which the workflow does not: see `reissue`. */
  | { type: 'refresh' }
  /** The run has exceeded the timeout of its workflow. */
  | { type: 'timeout' }

export interface SegmentInput {
  organization_id: string
  run_id: string
  /** From 0. */
  segment: number
  happened: Happened[]
  /** In the first segment of a workflow that resumes a run. */
  resume?: Resume
  /** With `resume`: the Temporal run as which the workflow was started; another one than its own if it was reset. */
  origin?: string
  /** Issues the commands of the open nodes after this one again: those before it were in the last answers. */
  after?: string
  /** The workflow will continue as new once it waits for no activity: no node is started. */
  drain?: true
  /** The database of the run. */
  database?: string
  /** The events of the workflow's history so far: Temporal has at least these, unless it was restored. */
  history_length?: number
}

export type Command =
  | ({ type: 'timer'; title: string; ms: number } & NodeAt)
  | ({
      type: 'external'
      node_type: string
      title: string
      timeout_ms: number
      retry: RetryPolicy
      /** The time that is left until its next attempt. */
      delay_ms?: number
      /** The worker pool whose task queue gets it; absent: the one of the workflow. */
      pool?: string
      /** It may be cancelled before the run ends: see `Cleanup`. */
      alone?: true
    } & NodeAt)
  /** The node no longer waits for its timer, or its item has ended without it. */
  | ({ type: 'cancel' } & NodeAt)
  /**
   * The segment reached a limit; more nodes are ready, or have commands to issue again: those with a key past `after`.
   */
  | { type: 'continue'; after?: string }
  /** The run has ended, with its error for Temporal. `paused`: the workflow ends, and another one resumes the run. */
  | { type: 'end'; status: EndStatus | 'paused'; error?: { code: string; message: string } }

/** The commands for one node. */
export type NodeCommand = Exclude<Command, { type: 'continue' | 'end' }>

export interface SegmentAnswer {
  commands: Command[]
  /** The nodes that ran, as `node: status`, for the marker in the Temporal UI. */
  nodes: string[]
  /** For setCurrentDetails. */
  details: string
  /** The value of the search attribute AgxState, where it changes; null: none. */
  state?: typeof WAITS_FOR_PERSON | null
  /** With `drain`: a call is in progress or begins soon, and would be repeated in a workflow that continues as new. */
  busy?: true
  /** The time that is left to the run, if it has a timeout; in the first answer, and when commands are issued again. */
  timeout_ms?: number
  /**
   * The number of the segment, if the commands, with those of the next segments, are all that the rows wait for: Temporal
   * was restored to an earlier moment, so the workflow is behind the rows and asked for another number; or the
   * cancellations would be too many for one answer.
   */
  segment?: number
  /** For a migrated run: the version of its workflow, for the memo. */
  version?: number
  /** For a migrated run: when it is late, for the search attribute, in ISO 8601; null: never. */
  expected_by?: string | null
  /** For a migrated run: `timeout_ms` replaces the time limit that the workflow knows; absent, there is none. */
  replaces_timeout?: true
}

/** The input of an external node's activity. */
export interface NodeInput extends NodeAt {
  organization_id: string
  run_id: string
}

/**
 * The codes of a call that this worker must not make, and did not: the organization was given the pool whose workers make
 * it, or the database is a copy that does not have the run. The next segment queues it again.
 */
export const NOT_MADE = { wrongQueue: 'wrong_queue', unknownRun: 'unknown_run' } as const

export interface NodeTestInput {
  organization_id: string
  test_id: string
  /** The worker pool that makes the test. */
  pool?: string
}

/** What a database tells the witness of its task queue (`witness.ts`). */
export interface Testimony {
  /** The id of the database (`db/postgres/database-id.ts`). */
  database: string
  sequence: number
  /** The database's time, in ISO 8601. */
  at: string
}

/** The id of a workflow's Schedule in Temporal. */
export const scheduleIdOf = (workflowId: string): string => `schedule:${workflowId}`

/** The task queue of the file activities: their own slots, so that a long file does not delay runs. */
export const filesTaskQueue = (taskQueue: string): string => `${taskQueue}-files`

/** The task queue of the calls of a worker pool, beside that of runs. */
export const poolTaskQueue = (taskQueue: string, pool: string): string => `${taskQueue}-pool-${pool}`
