import type { Tenant } from '../db/postgres/tenancy.ts'
import type { Scope } from '../workflows/expressions/liquid.ts'
import type { RunNode, RunState } from '../workflows/interpret/run-state.ts'
import type { HttpRequest, HttpResponse, NodeContext, RecordEffects } from '../workflows/nodes/define.ts'
import { NodeError } from '../workflows/nodes/define.ts'

/** Calls a URL through the egress guard; refuses with NodeError. */
export type Http = (
  request: HttpRequest,
  options: { signal: AbortSignal; timeoutMs: number },
) => Promise<HttpResponse>

/** The organization's records, in the transaction that is given. */
export type RecordsOf = (tx: Tenant) => RecordEffects

/** What placeholders of a run can read. */
export function scopeOf(state: RunState, nodes: Iterable<RunNode>): Scope {
  const { run, organization } = state
  return {
    trigger: run.trigger,
    inputs: run.inputs,
    nodes: Object.fromEntries(
      [...nodes]
        .filter((node) => node.ended_at !== null)
        .map((node) => [
          node.node_id,
          { output: node.output, status: node.status, handle: node.handle, error: node.error },
        ]),
    ),
    run: {
      id: run.id,
      workflow_id: run.workflow_id,
      workflow_name: run.workflow_name,
      started_at: run.started_at ?? run.created_at,
    },
    org: organization,
    env: {},
  }
}

export interface ContextOptions {
  now: Date
  node: { id: string; attempt: number }
  signal: AbortSignal
  effects: Partial<Pick<NodeContext, 'records' | 'emit' | 'http'>>
}

/** A node's view of its run. Effects that its class does not have throw. */
export function contextOf(state: RunState, options: ContextOptions): NodeContext {
  const { run, organization } = state
  const none = async () => {
    throw new NodeError('effect_not_allowed', 'A node of this effect class cannot do that.')
  }
  return {
    now: options.now,
    run: { id: run.id, workflow_id: run.workflow_id, workflow_name: run.workflow_name },
    organization: { id: organization.id, currency: organization.currency, timezone: organization.timezone },
    node: options.node,
    records: options.effects.records ?? noRecords(none),
    emit: options.effects.emit ?? none,
    http: options.effects.http ?? none,
    idempotencyKey: `${run.id}:${options.node.id}`,
    signal: options.signal,
  }
}

function noRecords(none: () => Promise<never>): RecordEffects {
  return {
    create: none,
    get: none,
    search: none,
    update: none,
    upsert: none,
    delete: none,
    link: none,
    unlink: none,
    listRelated: none,
  }
}
