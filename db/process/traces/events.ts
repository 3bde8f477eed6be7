import { spanIdOf, spanParent } from '../../model/spans.ts'
import type { TraceContext } from '../../model/trace-context.ts'
import type { Tenant } from '../../postgres/tenancy.ts'

/**
 * Records that events were raised: deliveries and the runs that they start are below these spans. An event of a run has
 * the trace of the run: it is left out where the transaction belongs to another, as that of a request which answers an
 * approval.
 */
export function traceEvents(
  tx: Tenant,
  events: {
    id: string
    name: string
    cause: string | null
    span?: string | undefined
    /** The request, where it is not that of the transaction. */
    trace?: TraceContext | undefined
  }[],
): void {
  const { spans } = tx
  if (!spans) return
  const now = Date.now()
  for (const { id, name, cause, span, trace } of events) {
    const parent = spanParent(spans, trace)
    if (parent && cause === spans.runId)
      spans.add(
        {
          name,
          kind: 'producer',
          id: spanIdOf(id),
          start: now,
          end: now,
          attributes: { 'agx.organization_id': tx.organizationId, 'agx.event_id': id },
        },
        span === undefined ? parent : { ...parent, parent: span },
      )
  }
}
