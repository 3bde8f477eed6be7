import type { FindingCode } from './finding-codes.ts'

/**
 * The stages of a workflow: a YAML authoring spec is parsed into a `Definition` (the "raw definition" on the wire), and
 * a definition is compiled into a `Program` (the compiled definition), which is all that a run needs.
 */

/** Names that end in `_ms` are milliseconds. */
export interface RetryPolicy {
  max_attempts: number
  initial_interval_ms: number
  backoff: number
  max_interval_ms: number
}

/** As authored: intervals are durations such as `5s`. Absent members have defaults. */
export interface RetrySpec {
  max_attempts?: number
  initial_interval?: string
  backoff?: number
  max_interval?: string
}

export type Trigger =
  | { type: 'manual' }
  | { type: 'event'; events: string[]; when?: string }
  | { type: 'webhook' }
  | ({ type: 'schedule' } & ScheduleSpec)

/** What happens at a time of a schedule while an earlier run of it is still open: the names of Temporal Schedules. */
export const OVERLAP_POLICIES = [
  'skip',
  'buffer_one',
  'buffer_all',
  'cancel_other',
  'terminate_other',
  'allow_all',
] as const
export type OverlapPolicy = (typeof OVERLAP_POLICIES)[number]

/** The times of a schedule, and what it does at them. Has either `cron` or `every`. Durations are texts such as `15m`. */
export interface ScheduleSpec {
  cron?: string
  /** The interval, counted from 1970 on. */
  every?: string
  /** Shifts the times of an interval. */
  offset?: string
  /** The time zone in which `cron` is read. */
  timezone: string
  /** Absent: runs may overlap, and of the times that an outage missed two are started at most. */
  overlap?: OverlapPolicy
  /** How long after its time a missed run is still started. */
  catchup_window?: string
  /** Each run starts up to so much after its time. */
  jitter?: string
}

/** The default of `catchup_window`. */
export const CATCHUP_WINDOW = '1d'

export interface InputSpec {
  type: 'string' | 'number' | 'boolean' | 'object' | 'array' | 'any'
  description?: string
  required?: boolean
  default?: unknown
  /** The allowed values of a text. */
  enum?: readonly string[]
}

export type OnError = 'fail' | 'continue' | 'end'

export interface NodeSpec {
  id: string
  type: string
  title?: string
  config: Record<string, unknown>
  /** Only `external` nodes have `retry` and `timeout`. */
  retry?: RetrySpec
  /** The time limit of one attempt: a duration such as `30s`, `5m`. */
  timeout?: string
  /** Only of `external` nodes: the attempts of the node in all runs of the workflow together. */
  rate?: NodeRate
  /** Only of `external` nodes: the worker pool that makes its calls; default: that of the settings. */
  pool?: string
  /**
   * Applies if `error` has no edge. `fail` (default): an error ends the run. `continue`: the node leaves by its
   * first handle. `end`: it leaves by `error`, and its branch ends there.
   */
  on_error?: OnError
  /** A placeholder; if it renders false, the node is skipped. */
  when?: string
  /** `all` (default): starts when all incoming edges are settled and one was taken. `any`: at the first one taken. */
  join?: 'all' | 'any'
  /** What compensates its effect if the run fails or is cancelled after it has completed. */
  undo?: CleanupNodes
  /** Only of a cleanup node, as `withCleanup` lists it beside the others. */
  role?: CleanupRole
  /** Only of an `undo` node: the node whose effect it compensates. */
  undoes?: string
}

/**
 * The nodes that run when the outcome of a run is decided, one after the other, before it ends: the `undo` nodes of a run
 * that failed or was cancelled, in the reverse order in which the nodes completed, then those of `on_cancel`, then those
 * of `finally`, which run after every outcome.
 */
export const CLEANUP_ROLES = ['undo', 'on_cancel', 'finally'] as const
export type CleanupRole = (typeof CLEANUP_ROLES)[number]

/** A cleanup node as written. `id` has a default. */
export type CleanupNode = Omit<NodeSpec, 'id' | 'join' | 'on_error' | 'undo' | 'role' | 'undoes'> & {
  id?: string
  on_error?: 'fail' | 'continue'
}

/** One node or several. */
export type CleanupNodes = CleanupNode | CleanupNode[]

/** The default of `cleanup_timeout`. */
export const CLEANUP_TIMEOUT = '1h'

export interface Edge {
  from: string
  handle: string
  to: string
}

export interface Definition {
  name: string
  description?: string
  trigger: Trigger
  inputs: Record<string, InputSpec>
  /** A run starts at the first node. */
  nodes: NodeSpec[]
  edges: Edge[]
  /** The outputs of the run; values are placeholders. */
  outputs: Record<string, unknown>
  /**
   * `error_workflow`: the name or id of the workflow that a failed run starts. `pool`: the worker pool of its external
   * nodes.
   */
  settings: {
    concurrency?: number | ConcurrencySpec
    debounce?: DebounceSpec
    rate?: RateSpec
    cancel_on?: CancelSpec | CancelSpec[]
    timeout?: string
    expected_within?: string
    error_workflow?: string
    pool?: string
    on_cancel?: CleanupNodes
    finally?: CleanupNodes
    /** The time limit of all cleanup nodes together. */
    cleanup_timeout?: string
  }
}

/** What one loop does after an item failed. */
export const ON_ITEM_ERROR = ['stop', 'continue'] as const

/** What happens to a run above the concurrency limit of its workflow. */
export const CONCURRENCY_POLICIES = ['queue', 'skip', 'cancel_running', 'allow'] as const

export interface ConcurrencySpec {
  policy: (typeof CONCURRENCY_POLICIES)[number]
  /** Default: 1. */
  limit?: number | undefined
  /** The limit counts the runs whose key renders to the same text. */
  key?: string | undefined
}

/** A start waits until its key has been quiet `for` so long; `at_most` (default 7d) bounds the whole wait. */
export interface DebounceSpec {
  key?: string | undefined
  for: string
  at_most?: string | undefined
}

/** At most `limit` attempts of a node begin within any `per`; the others wait, the first to come first. */
export interface NodeRate {
  limit: number
  per: string
}

/** What happens to a start above the rate. */
export const RATE_POLICIES = ['queue', 'skip'] as const

/** At most `limit` starts of a key within any `per`. */
export interface RateSpec {
  key?: string | undefined
  limit: number
  per: string
  policy: (typeof RATE_POLICIES)[number]
}

/** An event that cancels the open runs for which `when` holds; without `when` all of them. */
export interface CancelSpec {
  event: string | string[]
  when?: string | undefined
}

export const EFFECT_CLASSES = ['pure', 'read', 'write', 'external'] as const
export type EffectClass = (typeof EFFECT_CLASSES)[number]

/** A compiled node: all that is known about it before a run. */
export interface ProgramNode {
  id: string
  type: string
  title: string
  effect: EffectClass
  config: Record<string, unknown>
  when?: string
  join: 'all' | 'any'
  on_error: OnError
  retry: RetryPolicy
  /** The time limit of one attempt. */
  timeout_ms: number
  /** The attempts of the node in all runs of the workflow together; absent: any number. */
  rate?: { limit: number; per_ms: number }
  /** The worker pool that makes its calls; absent: the workers without a pool. */
  pool?: string
  /** The handles that have edges, with the nodes they lead to. */
  next: Record<string, string[]>
  /** The edges that lead here, as `from:handle`. */
  incoming: string[]
  /** The innermost loop whose body it is in; absent outside of any loop. */
  loop?: string
  /** For a loop: whether some placeholder reads the results of its items. */
  collects?: boolean
  /**
   * For a loop with an undo, which is in no other loop: the undo also runs for the items that completed before the loop
   * ended early. Absent from programs of before: their undo was written for a loop that completed.
   */
  undone_early?: true
  /** Only of a cleanup node, which no edge leads to. */
  role?: CleanupRole
  /** Only of an `undo` node: the node whose effect it compensates. */
  undoes?: string
}

/**
 * The engine that every program needs, whatever its node types. A change of the language that older workers cannot run
 * (a new join, a new filter) raises it to one more than the greatest released engine.
 */
export const LANGUAGE_ENGINE = 1

/** The engines of what the language has since then, which only programs that use it need. */
export const LATER_LANGUAGE = {
  pool: 7,
  expressions: 7,
  results: 7,
  omission: 9,
  admission: 9,
  cleanup: 10,
  rate: 12,
  to_fixed: 15,
  format_number: 16,
  input_enum: 16,
  /** The undo of a loop that ended early. */
  loop_undo: 17,
}

export interface Program {
  /** The least engine that can run it: that of the language, or the greatest of its nodes. See nodes/engine.ts. */
  engine: number
  start: string
  nodes: Record<string, ProgramNode>
  outputs: Record<string, unknown>
  inputs: Record<string, InputSpec>
  settings: {
    /** The limit of runs in progress. */
    concurrency?: number
    /** What happens to a run above the limit; absent: it waits. */
    on_limit?: 'skip' | 'cancel_running'
    timeout_ms?: number
    /** A run that is open for longer is late. */
    expected_ms?: number
    error_workflow?: string
    /** What a run passes before it is queued; absent: nothing. */
    admission?: Admission
    /** The events that cancel its open runs; absent: none. */
    cancel_on?: CancelRule[]
  }
  /** The cleanup nodes of each role, in the order of the definition; absent if there are none. */
  cleanup?: Record<CleanupRole, string[]> & { timeout_ms: number }
}

/**
 * The settings that hold a run back by a key. Without a key all runs of the workflow share one. A limit of concurrency
 * without a key is none of them: the claims of the relay keep it (`concurrency`).
 */
export interface Admission {
  concurrency?: { key: string; limit: number; policy: 'queue' | 'skip' | 'cancel_running' }
  debounce?: { key?: string; for_ms: number; at_most_ms: number }
  rate?: { key?: string; limit: number; per_ms: number; policy: (typeof RATE_POLICIES)[number] }
}

/** Events that cancel an open run if `when` holds. */
export interface CancelRule {
  events: string[]
  when?: string
  /** `when` holds only for an event about the record of the run's trigger: an index finds these runs. */
  same_record?: true
}

/** One finding of validation. Only findings in YAML have `line` and `column`, from 1. */
export interface Finding {
  code: FindingCode
  message: string
  /** JSON Pointer into the spec or definition. */
  path: string
  line?: number
  column?: number
  node_id?: string
  hint?: string
  source?: 'spec' | 'definition'
}

/** The name of an event that some workflow has to raise. */
export interface EventReference extends Pick<Finding, 'path' | 'line' | 'column' | 'node_id'> {
  event: string
}

/** A place that names another workflow, by its name or id. The database decides whether it exists. */
export interface WorkflowReference extends Pick<Finding, 'path' | 'line' | 'column' | 'node_id'> {
  workflow: string
  /** The inputs that a node gives to its runs; absent if they are not known. */
  inputs?: InputReference[]
}

/** An input that a node gives to the run of another workflow. */
export interface InputReference extends Pick<Finding, 'path' | 'line' | 'column' | 'node_id'> {
  name: string
  /** Absent if a placeholder holds it. */
  value?: unknown
}

/** A node that needs an environment variable of the service. */
export interface ServiceReference extends Pick<Finding, 'path' | 'line' | 'column' | 'node_id'> {
  variable: string
}

/** A place that reads `secrets.<name>` or `env.<name>`. */
export interface EnvReference extends Pick<Finding, 'path' | 'line' | 'column' | 'node_id'> {
  root: 'secrets' | 'env'
  name: string
}

/** A place that names a worker pool. The database decides whether the organization may use it. */
export interface PoolReference extends Pick<Finding, 'path' | 'line' | 'column' | 'node_id'> {
  pool: string
}

/** A node that sets its timeout, which the plan of the organization limits. */
export interface CallTimeout extends Pick<Finding, 'path' | 'line' | 'column' | 'node_id'> {
  timeout_ms: number
}

/** What a definition names that is checked in the database. */
export interface OutsideReferences {
  workflows: WorkflowReference[]
  env: EnvReference[]
  pools: PoolReference[]
  timeouts: CallTimeout[]
  services: ServiceReference[]
  /** The events that it waits for and that neither the service nor itself raises. */
  events: EventReference[]
  /** What samples can tell: whether incoming webhooks start it, and the ids of its nodes. */
  sampled: { name: string; byWebhooks: boolean; nodes: string[] }
}

export interface ValidationResult {
  valid: boolean
  errors: Finding[]
  warnings: Finding[]
}
