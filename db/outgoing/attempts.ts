import { insertEvents } from '../events/outbox.ts'
import type { Tenant } from '../postgres/tenancy.ts'
import { DELIVERY_BODY } from './body.ts'
import type { AttemptResult } from './moves/attempts.ts'
import { holdDeliveries } from './moves/holds.ts'
import type { DeliveryStatus } from './moves/statuses.ts'
import { HAS_SLOT } from './slots.ts'

/** A delivery with the data for one attempt. */
export interface DeliveryJob {
  status: DeliveryStatus
  releases: number
  test: boolean
  /** The number of attempts with a result: those before a crash or an abort may not have been sent. */
  answered: number
  next_attempt_at: Date | null
  /** Whether its slot of the endpoint is leased. */
  has_slot: boolean
  url: string
  webhook_id: string
  secrets_sealed: string[]
  headers_sealed: string | null
  retry_schedule: number[] | null
  timeout_ms: number
  /** The cap of attempts per minute. */
  rate_per_minute: number | null
  /** Whether the endpoint's last attempt failed. */
  failing: boolean
  trace_id: string
  event: { id: string; event: string; created_at: Date; data: unknown; previous: unknown }
}

/** Reads and locks a delivery; undefined if it, its event or its endpoint was deleted. */
export async function loadDelivery(tx: Tenant, id: string): Promise<DeliveryJob | undefined> {
  const { rows } = await tx.trx.raw<{ rows: DeliveryJob[] }>(
    `select d.status, d.releases, d.test, d.next_attempt_at, ${HAS_SLOT} as has_slot,
       w.url, w.headers_sealed, w.id as webhook_id, w.retry_schedule, w.timeout_ms, w.rate_per_minute,
       e.trace_id,
       case when d.attempts = 0 then 0 else (
         select count(*) from delivery_attempts a
         where a.organization_id = d.organization_id and a.delivery_id = d.id and a.status <> 'unknown')
       end::integer as answered,
       w.failing_since is not null as failing,
       array_remove(array[w.secret_sealed,
         case when w.previous_secret_expires_at > now() then w.previous_secret_sealed end], null) as secrets_sealed,
       ${DELIVERY_BODY} as event
     from deliveries d
     join events e on e.organization_id = d.organization_id and e.id = d.event_id
     join outgoing_webhooks w on w.organization_id = d.organization_id and w.id = d.webhook_id
     where d.organization_id = ? and d.id = ? for update of d`,
    [tx.organizationId, id],
  )
  return rows[0]
}

/** The data of the event webhook.disabled, from which the owner learns of it. */
interface DisabledEndpoint {
  id: string
  name: string
  url: string
  status: string
  status_reason: string
  failing_since: Date | null
}

/**
 * Makes the endpoint Inactive after a 410 or five days without a success, and then holds its deliveries and raises
 * webhook.disabled for other endpoints and for workflows.
 */
export async function noteEndpointHealth(
  tx: Tenant,
  webhookId: string,
  result: AttemptResult,
): Promise<void> {
  const { rows } = await tx.trx.raw<{ rows: DisabledEndpoint[] }>(
    `update outgoing_webhooks set
       failing_since = case when :succeeded then null else coalesce(failing_since, now()) end,
       status = case when :gone or (not :succeeded and failing_since < now() - interval '5 days')
         then 'Inactive' else status end,
       status_reason = case when :gone then 'the receiver answered 410 Gone'
         when not :succeeded and failing_since < now() - interval '5 days' then 'five days without a success'
         else status_reason end
     where organization_id = :organizationId and id = :webhookId and status = 'Active'
       and not (:succeeded and failing_since is null)
     returning id, name, url, status, status_reason, failing_since`,
    {
      organizationId: tx.organizationId,
      webhookId,
      succeeded: result.succeeded,
      gone: result.http_status === 410,
    },
  )
  const [endpoint] = rows
  if (endpoint?.status !== 'Inactive') return
  await holdDeliveries(tx, webhookId)
  await insertEvents(tx, [
    { name: 'webhook.disabled', data: { object: 'outgoing_webhook' as const, ...endpoint } },
  ])
}
