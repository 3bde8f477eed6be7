import type { RetryPolicy } from './definition/types.ts'
import type { EndStatus } from './interpret/statuses.ts'

/**
 * What workflows and activities say to one another. These shapes are in stored histories: they may grow, and what
 * is there keeps its meaning. No values of nodes travel here, those stay in the database.
 */

/** What the relay starts a run with. `engine` is the version of this protocol. */
export interface RunInput {
  engine: 1
  organization_id: string
  run_id: string
  /** The title of the first node, for the timeline of the Temporal UI. */
  starts_with: string
}

/** Something that a segment waited for. */
export type Happened =
  /** The time that a node waited for has come. */
  | { type: 'timer'; node: string }
  /** The activity of an external node has written its row. */
  | { type: 'settled'; node: string }
  /** The activity failed for good; where it could not write its row, this is why. */
  | { type: 'failed'; node: string; code: string; message: string }
  | { type: 'cancelled' }
  /** The run has taken longer than its workflow allows. */
  | { type: 'timeout' }

export interface SegmentInput {
  organization_id: string
  run_id: string
  /** From 0. */
  segment: number
  happened: Happened[]
}

export type Command =
  | { type: 'timer'; node: string; title: string; ms: number }
  | {
      type: 'external'
      node: string
      node_type: string
      title: string
      timeout_ms: number
      retry: RetryPolicy
    }
  /** The segment was long enough; nodes are still ready. */
  | { type: 'continue' }
  | { type: 'end'; status: EndStatus }

export interface SegmentAnswer {
  commands: Command[]
  /** What ran, as `node: status`, for whoever reads the marker in the Temporal UI. */
  nodes: string[]
  /** For setCurrentDetails. */
  details: string
  /** Milliseconds until the run must have ended; in the first answer, of workflows that have a timeout. */
  timeout_ms?: number
}

/** What the activity of an external node is given. */
export interface NodeInput {
  organization_id: string
  run_id: string
  node: string
}

export interface NodeTestInput {
  organization_id: string
  test_id: string
}

/** Of the activities on files: they have slots of their own, so that a long file holds no run up. */
export const filesTaskQueue = (taskQueue: string): string => `${taskQueue}-files`
