import type { RunFacts, RunNode, RunTrigger } from '../../../workflows/interpret/run-state.ts'
import type { EndStatus } from '../../../workflows/shared/statuses.ts'
import { nodeSpanId, queuedSpanId, spanIdOf, spanParent } from '../../model/spans.ts'
import type { TraceContext } from '../../model/trace-context.ts'
import { since, type WorkEnd } from '../../model/work-end.ts'
import type { Tenant } from '../../postgres/tenancy.ts'

/** The spans of a run: one for the run, from its start to its end, and one for each attempt of a node. */

type Run = Pick<
  RunFacts['run'],
  'id' | 'workflow_id' | 'workflow_name' | 'trigger' | 'retry_of' | 'trace_id'
> & {
  created_at: string
  started_at: string | null
}

/** The transaction with the run as the parent of its spans. */
export const belowRun = (tx: Tenant, run: Pick<Run, 'id' | 'trace_id'>): Tenant =>
  below(tx, run, spanIdOf(run.id))

/** The transaction with an attempt of a node of the run as the parent of its spans. */
export const belowNode = (
  tx: Tenant,
  run: Pick<Run, 'id' | 'trace_id'>,
  { path, node_id, attempt }: Pick<RunNode, 'path' | 'node_id' | 'attempt'>,
): Tenant => (tx.spans ? below(tx, run, nodeSpanId(run.id, path, node_id, attempt)) : tx)

const below = (tx: Tenant, { id, trace_id }: Pick<Run, 'id' | 'trace_id'>, parent: string): Tenant =>
  tx.spans && trace_id ? { ...tx, spans: tx.spans.below(id, { traceId: trace_id, parent }) } : tx

/** Reports a run that ends in this transaction: for the log, the metric `agx_runs_ended_total`, and its span. */
export function reportRunEnd(tx: Tenant, run: Run, status: EndStatus): void {
  if (run.trigger.type !== 'node_test')
    tx.ends.push(
      runEnd(tx.organizationId, run, run.trigger.type, status, since(run.started_at ?? run.created_at)),
    )
  if (!tx.spans || !run.trace_id || run.trigger.type === 'node_test') return
  tx.spans.add(
    {
      name: 'run',
      kind: 'internal',
      id: spanIdOf(run.id),
      failed: status === 'failed',
      start: Date.parse(run.started_at ?? run.created_at),
      end: Date.now(),
      attributes: {
        'agx.organization_id': tx.organizationId,
        'agx.run_id': run.id,
        'agx.workflow_id': run.workflow_id,
        'agx.workflow_name': run.workflow_name,
        'agx.trigger': run.trigger.type,
        'agx.status': status,
      },
    },
    { traceId: run.trace_id, parent: parentOf(run) },
  )
}

/** The end of a run, for the log and the metrics. `ms`: how long it took. */
export const runEnd = (
  organization_id: string,
  { id, workflow_id, trace_id }: Pick<Run, 'id' | 'workflow_id' | 'trace_id'>,
  trigger: RunTrigger['type'],
  status: EndStatus,
  ms: number,
): WorkEnd => ({
  work: 'run',
  status,
  organization_id,
  trace_id,
  ms,
  of: { run_id: id, workflow_id, trigger },
})

/** The span of the event that started the run, else the span in which it was queued. A scheduled run has no parent. */
function parentOf({ id, trigger, retry_of }: Run): string | undefined {
  if (retry_of) return queuedSpanId(id)
  if (trigger.type === 'schedule') return undefined
  return trigger.type === 'event' ? spanIdOf((trigger.event as { id: string }).id) : queuedSpanId(id)
}

/** Records the span of a node's attempt, as a child of its run. Times are milliseconds since 1970. */
export function traceNode(
  tx: Tenant,
  run: Pick<Run, 'id' | 'trace_id'>,
  node: Pick<RunNode, 'path' | 'node_id' | 'node_type' | 'attempt'>,
  { start, end, failed, calls }: { start: number; end: number; failed: boolean; calls: boolean },
): void {
  belowRun(tx, run).spans?.add({
    name: `node ${node.node_type}`,
    kind: calls ? 'client' : 'internal',
    start,
    end,
    failed,
    id: nodeSpanId(run.id, node.path, node.node_id, node.attempt),
    attributes: {
      'agx.organization_id': tx.organizationId,
      'agx.run_id': run.id,
      'agx.node_id': node.node_id,
      'agx.path': node.path || undefined,
      'agx.attempt': node.attempt,
    },
  })
}

/**
 * Records that a run was queued. This span is the parent of the run's span, even if another process ends the run.
 * `trace`: the trace of the request, if it is not that of the transaction.
 */
export function traceQueued(tx: Tenant, runId: string, traceId: string, trace?: TraceContext): void {
  const { spans } = tx
  const parent = spans && spanParent(spans, trace)
  if (!parent) return
  const now = Date.now()
  spans.add(
    {
      name: 'queue run',
      kind: 'producer',
      id: queuedSpanId(runId),
      start: now,
      end: now,
      attributes: { 'agx.organization_id': tx.organizationId, 'agx.run_id': runId },
    },
    // A retry has the trace of the first run's cause.
    parent.traceId === traceId ? parent : { traceId },
  )
}
