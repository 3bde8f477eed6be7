import { mailOwners } from '../access/account-mails.ts'
import { recorded } from '../access/audit-log.ts'
import { insertEvents } from '../events/outbox.ts'
import type { DeliveryStatus } from '../model/outgoing/statuses.ts'
import type { Tenant } from '../postgres/tenancy.ts'
import { DELIVERY_BODY } from './body.ts'
import type { AttemptResult } from './moves/attempts.ts'
import { holdDeliveries } from './moves/holds.ts'
import { FREE_FOR_RETRY, HAS_SLOT } from './slots.ts'

/** A delivery with the data for one attempt. */
export interface DeliveryJob {
  status: DeliveryStatus
  releases: number
  test: boolean
  /** Number of attempts with a result. Attempts before a crash or an abort may not have been sent. */
  answered: number
  next_attempt_at: Date | null
  /** Whether the delivery holds a lease on a slot of the endpoint. */
  has_slot: boolean
  /** Number of free slots if it is due and has none; null otherwise. */
  free: number | null
  url: string
  webhook_id: string
  secrets_sealed: string[]
  headers_sealed: string | null
  retry_schedule: number[] | null
  timeout_ms: number
  /** Maximum number of attempts per minute. */
  rate_per_minute: number | null
  /** The time since which every attempt of the endpoint has failed. */
  failing_since: Date | null
  /** Until then no delivery of the endpoint is started. */
  backoff_until: Date | null
  trace_id: string
  event: { id: string; event: string; created_at: Date; data: unknown; previous: unknown }
}

/** Reads a delivery; undefined if it, its event or its endpoint was deleted. */
export async function loadDelivery(tx: Tenant, deliveryId: string): Promise<DeliveryJob | undefined> {
  const { rows } = await tx.trx.raw<{ rows: DeliveryJob[] }>(
    `select d.status, d.releases, d.test, d.next_attempt_at, ${HAS_SLOT} as has_slot,
       case when not ${HAS_SLOT} and coalesce(d.next_attempt_at, now()) <= now() + interval '1 second' then ${FREE_FOR_RETRY} end as free,
       w.url, w.headers_sealed, w.id as webhook_id, w.retry_schedule, w.timeout_ms, w.rate_per_minute,
       e.trace_id,
       case when d.attempts = 0 then 0 else (
         select count(*) from delivery_attempts a
         where a.organization_id = d.organization_id and a.delivery_id = d.id and a.status <> 'unknown')
       end::integer as answered,
       w.failing_since, w.backoff_until,
       array_remove(array[w.secret_sealed,
         case when w.previous_secret_expires_at > now() then w.previous_secret_sealed end], null) as secrets_sealed,
       ${DELIVERY_BODY} as event
     from deliveries d
     join events e on e.organization_id = d.organization_id and e.id = d.event_id
     join outgoing_webhooks w on w.organization_id = d.organization_id and w.id = d.webhook_id
     where d.organization_id = :organizationId and d.id = :deliveryId`,
    { organizationId: tx.organizationId, deliveryId },
  )
  return rows[0]
}

/** The data of the event webhook.disabled. */
interface DisabledEndpoint {
  id: string
  name: string
  url: string
  status: string
  status_reason: string
  failing_since: Date | null
}

/** SQL: the time after which an endpoint is disabled if every attempt has failed. */
const LIMIT = "interval '5 days'"
/** The `status_reason` of an endpoint that failed for so long. */
export const FAILED_FOR_DAYS = 'five days without a success'
const NEARLY_MS = 4 * 86_400_000
/** An endpoint that fails only now and then does not back off. */
const FAILING_MS = 10_000

/**
 * Records whether the endpoint of `job` fails, has it back off if nobody answers, and disables it after a 410 or five
 * days without a success. What does not change writes nothing: concurrent attempts would wait for each other.
 * @returns whether it was disabled.
 */
export async function noteEndpointHealth(
  tx: Tenant,
  job: DeliveryJob,
  result: AttemptResult,
): Promise<boolean> {
  const { webhook_id, failing_since } = job
  const backoff = backoffAfter(job, result)
  const changes = !job.test && result.succeeded === (failing_since !== null)
  // Sent together with the next statement, because concurrent attempts of the endpoint wait for its row.
  if (changes || backoff !== 'same')
    tx.later({
      sql: `update outgoing_webhooks w set
          failing_since = case when r.test then w.failing_since when not r.succeeded then coalesce(w.failing_since, now()) end,
          backoff_until = case when r.backoff = 'begin' then now() + ${BACKOFF} when r.backoff = 'same' then w.backoff_until end
        from jsonb_to_recordset(?) as r(organization_id uuid, id uuid, succeeded boolean, test boolean, backoff text)
        where w.organization_id = r.organization_id and w.id = r.id and w.status = 'Active'
          and ((not r.test and r.succeeded = (w.failing_since is not null)) or (r.backoff = 'end' and w.backoff_until is not null)
            or (r.backoff = 'begin' and coalesce(w.backoff_until, now()) <= now()))`,
      rows: [
        JSON.stringify({
          organization_id: tx.organizationId,
          id: webhook_id,
          succeeded: result.succeeded,
          test: job.test,
          backoff,
        }),
      ],
      bindings: [],
    })
  if (job.test || result.succeeded) return false
  const mayDisable =
    result.http_status === 410 || (failing_since && failing_since.getTime() < Date.now() - NEARLY_MS)
  return mayDisable ? disableIfDue(tx, webhook_id, result) : false
}

/**
 * Deliveries of an endpoint that backs off wait in the queue, and one at a time is started when `backoff_until` has
 * passed: 4,000 events for 30 names that do not resolve made 120,000 workflows, which stalled all other work for minutes.
 * Only where nobody answers, so that no content of an event can be the cause: others would wait behind that event. A name
 * that does not resolve does so at once, what does not connect or answer in time after a while.
 */
function backoffAfter(job: DeliveryJob, result: AttemptResult): 'begin' | 'end' | 'same' {
  const now = Date.now()
  if (result.http_status !== null) return job.backoff_until ? 'end' : 'same'
  const fails = result.unresolved || (job.failing_since && job.failing_since.getTime() < now - FAILING_MS)
  const began = job.backoff_until && job.backoff_until.getTime() > now
  return fails && !job.test && !began ? 'begin' : 'same'
}

/** SQL: a quarter of the time for which the endpoint has failed, within bounds, and jitter. */
const BACKOFF = `(1 + random() * 0.2) * least(interval '5 minutes',
  greatest(interval '5 seconds', (now() - coalesce(w.failing_since, now())) / 4))`

/**
 * Makes the endpoint Inactive after a 410 or five days without a success. This holds its deliveries, notifies the
 * owners by mail, and raises webhook.disabled for other endpoints and for workflows.
 */
async function disableIfDue(tx: Tenant, webhookId: string, result: AttemptResult): Promise<boolean> {
  const { rows } = await tx.trx.raw<{ rows: DisabledEndpoint[] }>(
    `update outgoing_webhooks set
       failing_since = coalesce(failing_since, now()),
       status = case when :gone or failing_since < now() - ${LIMIT} then 'Inactive' else status end,
       status_reason = case when :gone then 'the receiver answered 410 Gone'
         when failing_since < now() - ${LIMIT} then '${FAILED_FOR_DAYS}'
         else status_reason end
     where organization_id = :organizationId and id = :webhookId and status = 'Active'
     returning id, name, url, status, status_reason, failing_since`,
    {
      organizationId: tx.organizationId,
      webhookId,
      gone: result.http_status === 410,
    },
  )
  const [endpoint] = rows
  if (endpoint?.status !== 'Inactive') return false
  await holdDeliveries(tx, webhookId)
  await recorded(tx, 'outgoing_webhook.deactivated', endpoint, { reason: endpoint.status_reason })
  await mailOwners(tx, 'webhook_disabled', { webhook_name: endpoint.name, reason: endpoint.status_reason })
  await insertEvents(tx, [
    { name: 'webhook.disabled', data: { object: 'outgoing_webhook' as const, ...endpoint } },
  ])
  return true
}
