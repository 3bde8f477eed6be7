import type { EffectClass } from '../language/definition.ts'
import type { NodeStatus } from '../shared/statuses.ts'
import type { RunError, RunTrigger } from './run-state.ts'

/** What stands in for the result of a node: an output, by the first handle unless another is named, or an error. */
export interface Stub {
  output?: unknown
  handle?: string | undefined
  error?: { code: string; message: string } | undefined
}

/** One test of a workflow. Nodes and stubs are named by the id, or in a loop by the path too: `each:0/send`. */
export interface TestCase {
  name: string
  inputs: Record<string, unknown>
  trigger: RunTrigger
  /** Whether the trigger starts a run: its `when` holds. */
  starts: boolean
  stubs: Record<string, Stub>
  expect: Expectation
}

/** Mappings have at least the given members; lists have exactly the given items. */
export interface Expectation {
  status?: TestStatus | undefined
  outputs?: Record<string, unknown> | undefined
  error?: Record<string, unknown> | undefined
  nodes?: Record<string, Record<string, unknown>> | undefined
  /** Each write and each call of the run, in any order. Reads can be among them. */
  effects?: Record<string, unknown>[] | undefined
}

/** `not_started`: the trigger's `when` does not hold; `waiting`: only an answer would continue the run. */
export const TEST_STATUSES = [
  'completed',
  'failed',
  'waiting',
  'not_started',
  'too_large',
  'timed_out',
] as const
export type TestStatus = (typeof TEST_STATUSES)[number]

/** A read, a write or a call that the run would make. */
export interface PlannedEffect {
  node_id: string
  path: string
  node_type: string
  effect: EffectClass
  /** The rendered config, with secrets masked. */
  input: unknown
  /** The calls up to the first one whose result the node needs. */
  calls: string[]
}

export interface TestedRunNode {
  node_id: string
  path: string
  node_type: string
  title: string
  status: NodeStatus
  handle: string | null
  input: unknown
  output: unknown
  error: RunError | null
  /** Whether a stub has given its result. */
  stubbed: boolean
}

/** A node without a stub whose result decides about others. */
export interface MissingStub {
  node_id: string
  /** The nodes that read its output; `outputs` for the outputs of the workflow. */
  read_by: string[]
  /** The handles among which its result decides; empty if there is one only. */
  handles: string[]
}

export interface Mismatch {
  /** The path of the expectation, such as `nodes.send.input.to`. */
  path: string
  message: string
  expected?: unknown
  actual?: unknown
}

export interface CaseResult {
  name: string
  /** Whether all expectations hold, and no stub is missing. */
  passed: boolean
  status: TestStatus
  outputs: unknown
  error: RunError | null
  nodes: TestedRunNode[]
  effects: PlannedEffect[]
  missing_stubs: MissingStub[]
  mismatches: Mismatch[]
  log: string[]
  /** Whether the values of the nodes and effects are left out: the answer would be too large. */
  shortened: boolean
}
