import type { RetryPolicy } from '../language/definition.ts'
import type { EndStatus } from '../shared/statuses.ts'

/**
 * The messages between workflows and activities. Temporal histories store them: members may be added; existing ones
 * keep their meaning. They hold no values of nodes, which stay in the database.
 */

/**
 * The version of the run workflow that new runs start with. Version 1 completes a failed run in Temporal, and fails a run
 * that was cancelled before its first segment; version 2 never continues as new. Both are kept for the histories that
 * have them.
 */
export const RUN_WORKFLOW_VERSION = 3

/** The input of a run, from the relay. `engine` is the version of the run workflow. */
export interface RunInput {
  engine: 1 | 2 | typeof RUN_WORKFLOW_VERSION
  organization_id: string
  run_id: string
  /** The title of the first node, for the timeline of the Temporal UI. */
  starts_with: string
  /**
   * Of a run that was paused, whose workflow Temporal had lost, or that continued as new: where the new workflow
   * starts.
   */
  resume?: Resume
}

/** Options of a local activity that is one transaction. */
export const IN_DATABASE = {
  // Longer than the statement timeout of the database, so that its error arrives.
  startToCloseTimeout: '75 seconds',
  retry: { initialInterval: '100 ms', backoffCoefficient: 2, maximumInterval: '20 seconds' },
  // Longer pauses are timers: they are visible in the history, and hold no workflow task.
  localRetryThreshold: '2 seconds',
} as const

/** Search attributes that the run workflow reads and writes: a namespace that lacks one lacks the other. */
export const ORGANIZATION_ATTRIBUTE = 'AgxOrganization'
export const STATE_ATTRIBUTE = 'AgxState'
/** The value of AgxState of a run that waits for a person. */
export const WAITS_FOR_PERSON = 'waiting_for_person'

/** The signal that adds `refresh`. */
export const REFRESH = 'refresh'

export interface Resume {
  /** The segment to start with. */
  segment: number
  /** How often the run was resumed: tells the start of the newest resume from an older one. */
  count: number
}

/** A node of a run. `path` names the iteration that it is in; absent outside of any loop. */
export interface NodeAt {
  node: string
  path?: string
}

/** Something that the run waited for. */
export type Happened =
  /** The timer of a waiting node has fired: it is over, or its wait for an answer has expired. */
  | ({ type: 'timer' } & NodeAt)
  /** The activity of an external node has written its row. */
  | ({ type: 'settled' } & NodeAt)
  /** The activity failed for good; `code` and `message` count if it could not write its row. */
  | ({ type: 'failed'; code: string; message: string } & NodeAt)
  | { type: 'cancelled' }
  /** The sweep found that the rows wait for something that the workflow does not: see `reissue`. */
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
  /** The workflow will continue as new, as soon as it waits for no activity: no node is started. */
  drain?: true
}

export type Command =
  | ({ type: 'timer'; title: string; ms: number } & NodeAt)
  | ({
      type: 'external'
      node_type: string
      title: string
      timeout_ms: number
      retry: RetryPolicy
    } & NodeAt)
  /** The node no longer waits for its timer, or the item that it belongs to has ended without it. */
  | ({ type: 'cancel' } & NodeAt)
  /** The segment reached a limit; more nodes are ready. */
  | { type: 'continue' }
  /** `error` is the one of the run, for Temporal. */
  /** `paused`: the workflow ends, and another one resumes the run. */
  | { type: 'end'; status: EndStatus | 'paused'; error?: { code: string; message: string } }

export interface SegmentAnswer {
  commands: Command[]
  /** The nodes that ran, as `node: status`, for the marker in the Temporal UI. */
  nodes: string[]
  /** For setCurrentDetails. */
  details: string
  /** The value of the search attribute AgxState, where it changes; null: none. */
  state?: typeof WAITS_FOR_PERSON | null
  /** The time that the run has left; in the first answer, and where commands are issued again, if there is a timeout. */
  timeout_ms?: number
}

/** The input of an external node's activity. */
export interface NodeInput extends NodeAt {
  organization_id: string
  run_id: string
}

export interface NodeTestInput {
  organization_id: string
  test_id: string
}

/** The id of a workflow's Schedule in Temporal. */
export const scheduleIdOf = (workflowId: string): string => `schedule:${workflowId}`

/** The task queue of the file activities: slots of their own, so that a long file does not delay runs. */
export const filesTaskQueue = (taskQueue: string): string => `${taskQueue}-files`
