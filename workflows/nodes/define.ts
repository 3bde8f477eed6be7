import type { z } from 'zod'
import type { EffectClass } from '../definition/types.ts'

/**
 * A node type: its one definition, from which the catalogue, validation, JSON Schema, the guide, MCP and both
 * activities that run nodes read. To add one: a file in this folder and a line in `index.ts`.
 */
export interface NodeType<Config = unknown, Output = unknown> {
  /** The `type` of the spec, `node_type` on the wire. */
  type: string
  category: 'records' | 'flow' | 'data' | 'integration' | 'time' | 'events'
  title: string
  /** One or two sentences: what it does and when to use it. */
  description: string
  /**
   * `pure`, `read` and `write` nodes run inside a segment's transaction (their effects happen exactly once);
   * `external` ones as an activity of their own, at least once, with a stable idempotency key. A function where it
   * depends on the config (crm_manager reads or writes).
   */
  effect: EffectClass | ((config: Record<string, unknown>) => EffectClass)
  /** Config as authored; every string in it may hold placeholders. Parsed again after rendering. */
  config: z.ZodType<Config>
  output: z.ZodType<Output>
  /** Output handles by config, the default one first; `error` is added for every type but those with `fallible: false`. */
  handles: (config: Record<string, unknown>) => Handle[]
  /** Whether it can fail at run time; default true. */
  fallible?: boolean
  example: {
    config: Record<string, unknown>
    inputs?: Record<string, unknown>
    output: unknown
    handle?: string
  }
  run: (config: Config, ctx: NodeContext) => Promise<NodeResult<Output>> | NodeResult<Output>
}

export interface Handle {
  name: string
  description: string
}

/**
 * How a node ended: with its output, leaving by `handle` (default: its first); or it must wait until a time, after
 * which it succeeds with `output`; or it ends the whole run.
 */
export type NodeResult<Output = unknown> =
  | { output: Output; handle?: string }
  | { wait_until: Date; output: Output }
  | { end: { status: 'completed' | 'failed'; message?: string }; output: Output }

/** What a node may use. The activities implement it; members that do not fit the node's effect class throw. */
export interface NodeContext {
  /** The time of the segment, not of the call: the same for all nodes of it. */
  now: Date
  run: { id: string; workflow_id: string | null; workflow_name: string }
  organization: { id: string; currency: string; timezone: string }
  node: { id: string; attempt: number }
  /** The organization's own records: `read` and `write` nodes. */
  records: RecordEffects
  /** Writes an event into the outbox: `write` nodes. @returns the event's id. */
  emit(name: string, data: Record<string, unknown>): Promise<string>
  /** Calls a URL through the egress guard: `external` nodes. */
  http(request: HttpRequest): Promise<HttpResponse>
  /** Equal for every attempt of this node in this run: `external` nodes send it along. */
  idempotencyKey: string
  /** Aborted on timeout and cancellation. */
  signal: AbortSignal
}

export type RecordFields = Record<string, unknown>

/** Entities are plural kinds (`contacts`), ids are UUIDs; everything throws NodeError with the store's reason. */
export interface RecordEffects {
  create(entity: string, fields: RecordFields): Promise<RecordFields>
  get(entity: string, id: string): Promise<RecordFields>
  search(
    entity: string,
    query: {
      filters?: Record<string, unknown>
      match?: 'all' | 'any'
      q?: string
      sort?: string
      order?: 'asc' | 'desc'
      limit?: number
    },
  ): Promise<{ data: RecordFields[]; has_more: boolean }>
  update(entity: string, id: string, fields: RecordFields): Promise<RecordFields>
  /** `by` is `email` (contacts), `domain` (companies) or `external_id`. */
  upsert(
    entity: string,
    by: string,
    fields: RecordFields,
  ): Promise<{ record: RecordFields; created: boolean }>
  delete(entity: string, id: string): Promise<{ id: string; deleted: true }>
  link(
    entity: string,
    id: string,
    target: string,
    targetId: string,
    properties?: RecordFields,
  ): Promise<RecordFields>
  unlink(entity: string, id: string, target: string, targetId: string): Promise<RecordFields>
  listRelated(
    entity: string,
    id: string,
    target: string,
    limit?: number,
  ): Promise<{ data: RecordFields[]; has_more: boolean }>
}

export interface HttpRequest {
  method: string
  url: string
  headers?: Record<string, string>
  query?: Record<string, string>
  body?: string | Record<string, unknown> | unknown[]
  /** Follow redirects, each hop checked again; at most 5. Default true. */
  follow_redirects?: boolean
}

export interface HttpResponse {
  status: number
  headers: Record<string, string>
  /** Parsed where the answer says JSON, else text; at most 1 MiB. */
  body: unknown
  duration_ms: number
}

/** A failure that the author of a workflow can act on. `retryable: false` ends the attempts at once. */
export class NodeError extends Error {
  readonly code: string
  readonly retryable: boolean
  readonly details: Record<string, unknown>

  constructor(
    code: string,
    message: string,
    options: { retryable?: boolean; details?: Record<string, unknown> } = {},
  ) {
    super(message)
    this.name = 'NodeError'
    this.code = code
    this.retryable = options.retryable ?? false
    this.details = options.details ?? {}
  }
}

/** Gives `run` the types of the config and output schemas; the catalogue holds them all as `NodeType`. */
export function defineNode<Config, Output>(node: NodeType<Config, Output>): NodeType {
  return node as unknown as NodeType
}
