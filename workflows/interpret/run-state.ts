import type { Happened, SegmentAnswer } from '../bundle/protocol.ts'
import type { CleanupRole, ON_ITEM_ERROR } from '../language/definition.ts'
import type { Answer } from '../nodes/wait-for.ts'
import type { EndStatus, ITERATION_STATUSES, NodeStatus, RunStatus } from '../shared/statuses.ts'

/** A run, as the interpreter reads it and the database stores it. */

/** What starts runs. */
export const RUN_TRIGGERS = ['api', 'webhook', 'event', 'schedule', 'error', 'run'] as const

/** Who or what started a run; every member is a placeholder's `trigger.<member>`. */
export interface RunTrigger {
  type: (typeof RUN_TRIGGERS)[number] | 'node_test'
  [member: string]: unknown
}

/** The start of a segment: the run, its nodes so far and, if the segment is already recorded, what was. */
export interface RunState extends RunFacts {
  run: RunFacts['run'] & RunControl
  /** The nodes outside of any loop, and those of the open iterations. */
  nodes: RunNode[]
  /** The open loops, and their open iterations. */
  loops: RunLoop[]
  iterations: RunIteration[]
  /** Whether the organization stores as much as its plan allows. */
  storage_full?: boolean
  /** Bytes of data that the plan allows one run; null or absent: the limit of the service. */
  most_bytes?: number | null
  /** Why the run failed; null unless it has ended. */
  error: RunError | null
  /** The segment that was asked for, if it is recorded. */
  recorded: { answer: SegmentAnswer; happened: Happened[] } | null
  /** The last segment that the same Temporal run has recorded. */
  last: number | null
  /** The last one that the owner of the run has recorded. */
  owner_last: number | null
}

/** The nth object (from 0) that a node of a run created. `object` is the kind of the record, or `event`. */
export interface CreatedObject {
  path: string
  node_id: string
  n: number
  object: string
  object_id: string
  /** The result of the creation, if the object cannot be read again. */
  result?: unknown
}

/** How a child run has ended, for the node that waits for it. */
export interface ChildEnd {
  run_id: string
  workflow_id: string
  workflow_name: string
  status: RunStatus
  outputs: unknown
  error: RunError | null
}

/** The answer to a waiting node, or the expiry of its wait. */
export interface AnsweredNode extends Answer {
  path: string
  node_id: string
}

/** The columns of a run that control its execution. */
export interface RunControl {
  /** Whether a reset has taken it over: its nodes may find what they created before. */
  reopened: boolean
  engine: number
  resumes: number
  /** The number of runs that led to it, each started by the one before. */
  depth: number
  /** The run whose node started it. */
  parent_run_id: string | null
  /** The key of which it holds a slot, or waits for one; null or absent: none. */
  concurrency_key?: string | null
  /** The key that its start gave. */
  run_key?: string | null
  /** Whether its version names events that cancel it. */
  cancel_on?: boolean
  cancel_requested_at: string | null
  cancel_reason: string | null
  pause_requested_at: string | null
  watched_until: string | null
  /** Characters of the data that its segments have written. */
  data_bytes?: number
}

/** The facts that are the same for all segments of a run. */
export interface RunFacts {
  run: {
    id: string
    kind: 'run' | 'node_test'
    workflow_id: string | null
    workflow_version: number | null
    workflow_name: string
    status: RunStatus
    trigger: RunTrigger
    inputs: Record<string, unknown>
    node: TestedNode | null
    temporal_run_id: string | null
    created_at: string
    started_at: string | null
    /** In a retry: the first run, whose idempotency keys it keeps. */
    retry_of?: string | null
    /** The trace of the request that led to the run, a UUID. */
    trace_id?: string
    /** The total time of its pauses. */
    paused_ms?: number
    /** Its migrations to other versions; null: it has the version that it was started with. */
    migrations?: unknown[] | null
    /** After this time it is late; null: never. */
    expected_by?: string | null
    /** How it will end, while its cleanup nodes run; null before. */
    ending?: Ending | null
    /** In a retry: the runs whose idempotency keys nodes have, by node, where it is not that of the first run. */
    key_runs?: Record<string, string> | null
  }
  organization: { id: string; name: string; currency: string; timezone: string }
  /** The environment variables of the organization, by name. */
  env: Record<string, unknown>
  /** The worker pools that the organization may use. */
  pools?: string[]
  /** The longest timeout of a call that its plan allows, in seconds. */
  max_call_seconds?: number
}

/** The node of a node test. */
export interface TestedNode {
  node_type: string
  title: string
  /** Its config and inputs, sealed with SECRETS_KEY; absent when the test has ended. */
  sealed?: string
  /** The worker pool that tests it. */
  pool?: string
}

/** The decided outcome of a run that is cleaning up. */
export interface Ending {
  status: EndStatus
  outputs: unknown
  error: RunError | null
  /** The segment that decided it. */
  segment: number
  /** When, in ISO 8601. */
  at: string
  /** The time of the run's pauses before. */
  paused_ms: number
}

export interface RunError {
  code: string
  message: string
  node_id?: string
  details?: Record<string, unknown>
}

/** A row of `run_nodes`: one node of one run. Times are ISO 8601. */
export interface RunNode {
  /** The path of its frame: '' outside of any loop. */
  path: string
  node_id: string
  node_type: string
  title: string
  status: NodeStatus
  attempt: number
  /** Only for external nodes: the token of the attempt in progress. Segments never write it. */
  attempt_token?: string | null
  /** Only for external nodes: whether an attempt was lost after it had begun. Segments never write it. */
  may_have_called?: boolean
  /** Only for external nodes: the time of the attempt `attempt`, if the one before failed. Segments never write it. */
  next_attempt_at?: string | null
  input: unknown
  output: unknown
  handle: string | null
  error: RunError | null
  wait_until: string | null
  segment: number
  settled_segment: number | null
  position: number
  started_at: string
  ended_at: string | null
  /** Only of a cleanup node. */
  role?: CleanupRole | null
  /** Only of an `undo` node. */
  undoes?: string | null
}

/** A row of `run_loops`: the progress of a loop. Its items stay in the database. */
export interface RunLoop {
  /** Its key in the run: `each`, or `outer:1/inner` in the body of `outer`. */
  loop: string
  /** The number of items. */
  count: number
  /** The index of the next item to open. */
  next: number
  succeeded: number
  failed: number
  /** The bytes of the results so far as JSON. */
  bytes: number
  concurrency: number
  on_item_error: (typeof ON_ITEM_ERROR)[number]
  /** The segment that started it. */
  segment: number
}

/** In a retry: a loop with the results of the retried run. `met`: the condition of a repeat held after its last turn. */
export interface KeptLoop extends RunLoop {
  met: boolean
}

/** A row of `run_iterations`: one item of a loop, since it was opened. */
export interface RunIteration {
  loop: string
  /** From 0. */
  index: number
  status: (typeof ITERATION_STATUSES)[number]
  item: unknown
  output: unknown
  error: RunError | null
  segment: number
  settled_segment: number | null
  started_at: string
  ended_at: string | null
  /** Only of a turn: whether the condition `until` held after it. */
  met?: boolean
}

/**
 * The end of an item, as the output of its loop shows it; one that did not complete with the item itself, which says what
 * is left to do. Only the undo of a loop sees cancelled ones.
 */
export type ItemResult = Pick<RunIteration, 'index' | 'status' | 'output'> & {
  item?: unknown
  error?: RunError
}

/** An item to open. `nodes`: in a retry, the nodes of its body whose outputs are reused. */
export interface LoopItem {
  index: number
  item: unknown
  nodes?: RunNode[]
}
