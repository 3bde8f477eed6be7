import type { Tenant } from '../postgres/tenancy.ts'
import { spanIdOf } from './spans.ts'

/**
 * Records that events were raised: deliveries and the runs that they start are below these spans. An event of a run has
 * the trace of the run: it is left out where the transaction belongs to another, as that of a request which answers an
 * approval.
 */
export function traceEvents(
  tx: Tenant,
  events: { id: string; name: string; cause: string | null; span?: string | undefined }[],
): void {
  const { spans } = tx
  if (!spans?.parent) return
  const now = Date.now()
  for (const { id, name, cause, span } of events)
    if (cause === spans.runId)
      spans.add(
        {
          ...{ name, kind: 'producer', id: spanIdOf(id), start: now, end: now },
          attributes: { 'agx.organization_id': tx.organizationId, 'agx.event_id': id },
        },
        span === undefined ? spans.parent : { ...spans.parent, parent: span },
      )
}
