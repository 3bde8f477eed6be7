import { spanIdOf, spanParent } from '../../model/spans.ts'
import type { TraceContext } from '../../model/trace-context.ts'
import type { Tenant } from '../../postgres/tenancy.ts'

/**
 * Records that events were raised. The spans of their deliveries and runs are children of these spans. An event of a
 * run has the trace of the run: it is omitted if the transaction belongs to another trace, such as that of a request
 * that answers an approval.
 */
export function traceEvents(
  tx: Tenant,
  events: {
    id: string
    name: string
    cause: string | null
    span?: string | undefined
    /** The trace of the request, if it is not that of the transaction. */
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
