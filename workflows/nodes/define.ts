import type { z } from 'zod'
import { type EffectName, type Effects, ports } from '../effects/index.ts'
import type { EffectClass, RetrySpec } from '../language/definition.ts'
import type { Scope } from '../language/expressions/liquid.ts'
import type { Problem } from '../language/problems.ts'
import { typeOfSchema, type ValueType } from '../language/value-types.ts'
import type { Catalogue } from './catalogue.ts'
import type { Compute } from './computations.ts'
import type { Answer, WaitFor } from './wait-for.ts'

/** A node's config as written: any value may hold placeholders. */
export type Authored = Record<string, unknown>

/**
 * The definition of a node type, which the catalogue, validation, compilation, the interpreter, scopes and previews
 * read. To add one: a file in this folder and a line in `index.ts`.
 */
export interface NodeDefinition<Config, Output, Used extends EffectName> {
  /** The `type` of the spec, `node_type` on the wire. */
  type: string
  /**
   * The engine (see engine.ts) that introduced the type. A new type names one more than the greatest released engine,
   * so that older workers leave its runs to newer ones.
   */
  engine: number
  /** The uses of the type that a later engine introduced: default none. */
  laterUses?: readonly { engine: number; isUsed: (config: Authored) => boolean }[]
  /** The group in the catalogue. */
  category: 'records' | 'flow' | 'data' | 'integration' | 'time' | 'events'
  title: string
  /** What to use instead of a type that should not be used any more; validation warns of its nodes. */
  deprecated?: string
  /** The names of similar nodes in other products: hints lead from these to the type. */
  alsoCalled?: readonly string[]
  /** The handles that the author names: each must lead somewhere. Default none. */
  cases?: (config: Authored) => string[]
  /** Whether its values are only compared: a missing value is no problem. */
  compared?: true
  /** One or two sentences: what it does and when to use it. */
  description: string
  /**
   * `pure`, `read` and `write` nodes run in the transaction of a segment: their effects happen exactly once. `external`
   * nodes run as activities, at least once, with a stable idempotency key. A function if it depends on the config.
   */
  effect: EffectClass | ((config: Authored) => EffectClass)
  /** The effects in the context of `run`; each is present only in the effect classes that its port allows. */
  effects?: readonly Used[]
  /** The schema of the config. Strings with placeholders are checked only after rendering. */
  config: z.ZodType<Config>
  output: z.ZodType<Output>
  /**
   * Output handles by config, the default one first; `error` is added for every type but those with `fallible: false`.
   */
  handles: (config: Authored) => Handle[]
  /** Only for loops: the handle that leads to the body, which runs once for each item. */
  body?: string
  /** Only for loops: the body runs until a condition holds; it reads `previous` instead of `item`. */
  repeats?: true
  /**
   * The keys whose values are rendered for each item of a list, which they read as `item` and `index`. The interpreter
   * renders those of a loop in the scope of its body; other nodes get the text as written, and call `renderItems`.
   */
  perItem?: readonly string[] | ((config: Authored) => readonly string[])
  /** Whether it can fail at run time; default true. */
  fallible?: boolean
  /**
   * The /v1 scopes that a test of the node needs in addition to `workflows:run`. Required if a port of its effects is
   * `scoped`; default none.
   */
  scopes?: (config: Authored, catalogue: Catalogue) => string[]
  /** Checks that need the catalogue. The values of placeholders are not known yet. */
  check?: (config: Authored, catalogue: Catalogue) => ConfigProblem[]
  /** The schema of its `error.details`, if authors are meant to read them. */
  errorDetails?: z.ZodType
  /** The type of the output, if it depends on the config; default: that of `output`. */
  outputType?: (config: Authored, context: TypeContext) => ValueType
  /** The events that it raises, as far as they are known, and the names of the fields that it writes. */
  raises?: (config: Authored, catalogue: Pick<Catalogue, 'entities'>) => Raised
  /** The keys that name a field of the items in `items`. */
  itemFields?: (config: Authored) => { path: PropertyKey[]; field: string }[]
  /** The comparisons of values with others that the config names. */
  comparisons?: (config: Authored) => Comparison[]
  /** The schemas of values that depend on the config, such as the fields of a record, each with its path. */
  keySchemas?: (config: Authored, catalogue: Catalogue) => { path: PropertyKey[]; schema: z.ZodType }[]
  /** The key that names an event which it raises: any but those of the service. */
  emits?: string
  /** The paths of the config whose texts a path into the output reads, if it copies texts: default none. */
  copies?: (config: Authored, path: readonly string[]) => PropertyKey[][]
  /** The keys whose values are HTML. Default none. */
  html?: readonly string[]
  /** The keys whose values are email addresses, or lists of them. Default none. */
  addresses?: readonly string[]
  /** The list of the output that has only the first of what there is; undefined if the config says how many. */
  firstOnly?: (config: Authored) => FirstOnly | undefined
  /**
   * Whether the output is the only result: an unused output is then a likely mistake. Default: only for `read` nodes.
   * An external node with `outputOnly` sends nothing to other services, so it cannot read secrets.
   */
  outputOnly?: boolean
  /** The names of events that a config waits for, each with its path, those with placeholders too; default none. */
  awaits?: (config: Authored) => { event: unknown; path: PropertyKey[] }[]
  /** The workflows that a config names, each with the path to its name; default none. */
  workflows?: (config: Authored) => NamedWorkflow[]
  /** The custom fields that a config writes or finds records by; default none. */
  customFields?: (config: Authored) => UsedCustomField[]
  /** The defaults of an external node's `retry`. Without them: one attempt. */
  retry?: Omit<RetrySpec, 'max_interval'>
  /**
   * The keys whose values are rendered while the node waits, each with the root that only it can read. `run` gets the
   * text as written.
   */
  late?: Readonly<Record<string, string>>
  /** The type of the root that late values read; default: that of the output. */
  lateType?: (config: Authored, context: TypeContext) => ValueType
  /** Placeholders that it renders besides those of the config, under the keys that stand for them: default none. */
  reads?: (config: Authored) => Authored
  /** Whether it stores more data: default for `write` nodes, but those that only delete. */
  grows?: (config: Authored) => boolean
  /** The keys whose values are passed as written: `{{` in them is plain text. */
  verbatim?: readonly string[]
  /** Whether a path into the output leads to a value that the config masks; default: none does. */
  isMasked?: (config: Authored, path: readonly string[]) => boolean
  /** The end of a node that returned `wait_for`. */
  answered?: (answer: Answer) => { output: Output; handle: string }
  /** The environment variables of the service without which the node does less. */
  optionalVariables?: OptionalVariables
  /** Whether it answers the sender of the incoming webhook that started the run, which counts once. */
  responds?: true
  /** The outputs of a run that it ends, in place of those of the workflow; undefined if it leaves them. */
  endsWith?: (config: Authored) => unknown
  /** Whether it waits for a person: the search attribute `AgxState` in Temporal shows it. */
  asksPerson?: true
  example: NodeExample
  run: (config: Config, ctx: NodeContext<Used>) => Promise<NodeResult<Output>> | NodeResult<Output>
}

/** A node type with all defaults, for code outside of its file; the types of config and output are unknown. */
export interface NodeType
  extends Pick<
    NodeDefinition<unknown, unknown, never>,
    | 'type'
    | 'category'
    | 'title'
    | 'description'
    | 'config'
    | 'output'
    | 'example'
    | 'run'
    | 'answered'
    | 'asksPerson'
    | 'endsWith'
    | 'errorDetails'
    | 'responds'
    | 'deprecated'
    | 'emits'
    | 'optionalVariables'
    | 'repeats'
  > {
  alsoCalled: readonly string[]
  cases(config: Authored): string[]
  compared: boolean
  effectClass(config: Authored): EffectClass
  effects: readonly EffectName[]
  /** Every output handle, the default one first. */
  handles(config: Authored): Handle[]
  scopes(config: Authored, catalogue: Catalogue): string[]
  check(config: Authored, catalogue: Catalogue): ConfigProblem[]
  outputType(config: Authored, context: TypeContext): ValueType
  raises(config: Authored, catalogue: Pick<Catalogue, 'entities'>): Raised
  itemFields(config: Authored): { path: PropertyKey[]; field: string }[]
  comparisons(config: Authored): Comparison[]
  keySchemas(config: Authored, catalogue: Catalogue): { path: PropertyKey[]; schema: z.ZodType }[]
  copies(config: Authored, path: readonly string[]): PropertyKey[][]
  html: readonly string[]
  addresses: readonly string[]
  firstOnly(config: Authored): FirstOnly | undefined
  outputOnly(config: Authored): boolean
  /** Whether it sends something to other services, or changes something there. */
  reachesOutside(config: Authored): boolean
  /** Whether it stores more data. */
  grows(config: Authored): boolean
  verbatim: readonly string[]
  reads(config: Authored): Authored
  isMasked(config: Authored, path: readonly string[]): boolean
  /** The engine that this use of the type needs. */
  engine(config: Authored): number
  /** The engine of the type, then those of its later uses. */
  engines: readonly number[]
  awaits(config: Authored): { event: unknown; path: PropertyKey[] }[]
  workflows(config: Authored): NamedWorkflow[]
  /** The environment variables of the service without which it fails. */
  variables: readonly string[]
  customFields(config: Authored): UsedCustomField[]
  retry: Omit<RetrySpec, 'max_interval'>
  late: Readonly<Record<string, string>>
  lateType(config: Authored, context: TypeContext): ValueType
  body: string | undefined
  perItem(config: Authored): readonly string[]
}

/** What the type of an output can depend on. */
export interface TypeContext {
  catalogue: Catalogue
  /** The type of a value of the config, with its placeholders. */
  typeOf(value: unknown): ValueType
  /** The type of the result of an item of a loop. */
  result(): ValueType
}

/** A list of the output that ends after a number of items unless the config says otherwise. */
export interface FirstOnly {
  list: string
  most: number
  /** The fields of the output that say whether there are more. */
  others: readonly string[]
  /** The key that makes it longer. */
  all: string
}

export interface Raised {
  events: string[]
  fields: string[]
}

/** A comparison in a config. */
export interface Comparison {
  /** The value that is tested, or the field of an item. */
  of: { value: unknown } | { field: string }
  /** As a condition has it. */
  operator: string
  /** The values, each with its path; placeholders among them are ignored. */
  with: { value: unknown; path: PropertyKey[] }[]
}

/** A workflow that a config names, and the inputs that it gives to its runs. */
export interface NamedWorkflow {
  workflow: string
  path: PropertyKey[]
  /** Absent if a placeholder holds them. */
  inputs?: { values: Record<string, unknown>; path: PropertyKey[] }
}

export interface OptionalVariables {
  names: readonly string[]
  /** Whether this use of the node needs them. */
  isUsed(config: Authored): boolean
  /** The end of a sentence that begins with "these nodes". */
  without: string
}

export interface NodeExample {
  config: Authored
  inputs?: Record<string, unknown>
  /** Only for nodes that wait for an answer: the answer that leads to `output`. */
  answer?: Answer
  output: unknown
  handle?: string
}

export interface Handle {
  name: string
  description: string
}

export interface UsedCustomField {
  /** The plural name of a kind, as written. */
  entity: unknown
  name: string
  path: PropertyKey[]
  /** Whether it must be unique, because records are found by it. */
  unique: boolean
}

/** A problem with a config; `path` leads from the config to the value, or to the key with `atKey`. */
export interface ConfigProblem extends Pick<Problem, 'code' | 'message' | 'hint' | 'atKey'> {
  path: PropertyKey[]
}

/**
 * The result of `run`:
 * - `output`: the node ended, and leaves by `handle` (default: its first).
 * - `wait_until`: it succeeds with `output` at a time.
 * - `wait_for_run`: it waits for a child run, whose outputs are added to `output`.
 * - `wait_for`: it waits for an answer, from which `answered` makes its output.
 * - `end`: it ends the whole run, with its own outputs or those of the workflow.
 * - `loop`: its body runs for each item; it leaves by `handle` when all are done.
 * - `turns`: its body runs until `until` of its config holds.
 */
export type NodeResult<Output = unknown> =
  | { output: Output; handle?: string }
  | { wait_until: Date; output: Output }
  | { wait_for_run: string; output: Output }
  | { wait_for: WaitFor; output: Output }
  | { end: NodeEnd; output: Output }
  | { loop: NodeLoop; output: Output; handle: string }
  | { turns: NodeTurns; output: Output; handle: string }

export interface NodeEnd {
  status: 'completed' | 'failed'
  message?: string | undefined
  outputs?: Record<string, unknown> | undefined
}

export interface NodeLoop {
  items: unknown[]
  concurrency: number
  on_item_error: 'stop' | 'continue'
}

export interface NodeTurns {
  /** `previous` in the first turn. */
  initial: unknown
  max_turns: number
  on_limit: 'fail' | 'stop'
  pause_ms: number
}

/** The context of `run`: the facts of the run, and the effects that the node type declares. */
export type NodeContext<Used extends EffectName = never> = NodeFacts & Pick<Effects, Used>

export interface NodeFacts {
  /** The time of the segment: the same for all its nodes, and for all attempts of an external node. */
  now: Date
  run: { id: string; workflow_id: string | null; workflow_name: string }
  organization: { id: string; currency: string; timezone: string }
  node: { id: string; attempt: number }
  /** The same for every attempt of the node in one run and iteration; `external` nodes send it. */
  idempotencyKey: string
  /** Aborted on timeout and cancellation. */
  signal: AbortSignal
  /** Renders a text of `perItem` for each item. Throws NodeError. */
  renderItems(text: string, items: readonly unknown[]): Promise<string[]>
  /** Renders a late text, with its root among `values`. Throws NodeError. */
  renderWith(text: string, values: Scope): unknown
  /** Makes a computation that may take long. */
  compute: Compute
  progress: Progress
  /** Masks texts wherever the input, output and errors of the attempt have them. */
  hide(texts: readonly string[]): void
}

/** What an external node keeps for its next attempt, which may be made by another worker. */
export interface Progress {
  /** What the attempt before has kept; undefined in the first one, and in tests of nodes. */
  kept: unknown
  /**
   * Keeps a JSON value of at most `LIMITS.valueBytes` if the attempt fails. A failure after that is the first one of
   * what remains, so it has all attempts again.
   */
  keep(value: unknown): void
  /** Whether the attempt has taken its time, and shall leave the rest to the next one. Only after `keep`. */
  isDue(): boolean
}

const ERROR_HANDLE: Handle = { name: 'error', description: 'The node failed; see `nodes.<id>.error`.' }

/**
 * Infers the types of config, output and context for `run`, and sets the defaults. Throws if required scopes are
 * absent.
 */
export function defineNode<Config, Output, Used extends EffectName = never>(
  node: NodeDefinition<Config, Output, Used>,
): NodeType {
  const { engine, laterUses = [], effect, handles, fallible = true, outputOnly, perItem = [] } = node
  const effectClass = typeof effect === 'function' ? effect : () => effect
  const effects = node.effects ?? []
  if (!node.scopes && effects.some((name) => ports[name].scoped))
    throw new Error(`${node.type} must declare its scopes`)
  return {
    ...(node as unknown as NodeDefinition<unknown, unknown, never>),
    alsoCalled: node.alsoCalled ?? [],
    cases: node.cases ?? (() => []),
    compared: node.compared ?? false,
    effectClass,
    effects,
    handles: fallible ? (config) => [...handles(config), ERROR_HANDLE] : handles,
    scopes: node.scopes ?? (() => []),
    check: node.check ?? (() => []),
    outputType: node.outputType ?? (() => typeOfSchema(node.output)),
    raises: node.raises ?? (() => ({ events: [], fields: [] })),
    itemFields: node.itemFields ?? (() => []),
    comparisons: node.comparisons ?? (() => []),
    keySchemas: node.keySchemas ?? (() => []),
    copies: node.copies ?? (() => []),
    html: node.html ?? [],
    addresses: node.addresses ?? [],
    firstOnly: node.firstOnly ?? (() => undefined),
    outputOnly: outputOnly === undefined ? (config) => effectClass(config) === 'read' : () => outputOnly,
    reachesOutside: (config) => effectClass(config) === 'external' && outputOnly !== true,
    grows: node.grows ?? ((config) => effectClass(config) === 'write'),
    verbatim: node.verbatim ?? [],
    reads: node.reads ?? (() => ({})),
    isMasked: node.isMasked ?? (() => false),
    engine: (config) =>
      Math.max(engine, ...laterUses.filter(({ isUsed }) => isUsed(config)).map((use) => use.engine)),
    engines: [engine, ...laterUses.map((use) => use.engine)],
    awaits: node.awaits ?? (() => []),
    workflows: node.workflows ?? (() => []),
    customFields: node.customFields ?? (() => []),
    variables: effects.flatMap((name) => ports[name].variables ?? []),
    retry: node.retry ?? {},
    late: node.late ?? {},
    lateType: node.lateType ?? node.outputType ?? (() => typeOfSchema(node.output)),
    body: node.body,
    perItem: typeof perItem === 'function' ? perItem : () => perItem,
  }
}
