import type { Tenant } from '../postgres/tenancy.ts'
import { holdDeliveries } from './hold.ts'

/** The row is the truth: a workflow that finds it held, ended or released again without it ends. */
export type DeliveryStatus = 'held' | 'queued' | 'delivering' | 'succeeded' | 'failed' | 'cancelled'

/** A delivery with what one attempt of it needs. */
export interface DeliveryJob {
  status: DeliveryStatus
  releases: number
  test: boolean
  attempts: number
  next_attempt_at: Date | null
  url: string
  webhook_id: string
  secrets_sealed: string[]
  headers_sealed: string | null
  retry_schedule: number[] | null
  timeout_ms: number
  /** The endpoint's last attempt had failed. */
  failing: boolean
  event: { id: string; event: string; created_at: Date; data: unknown; previous: unknown }
}

/** What came of an attempt. */
export interface AttemptResult {
  succeeded: boolean
  http_status: number | null
  duration_ms: number
  response_headers: Record<string, string> | null
  response_body: string | null
  error: string | null
}

/** Reads and locks a delivery; undefined once it, its event or its endpoint is gone. */
export async function loadDelivery(tx: Tenant, id: string): Promise<DeliveryJob | undefined> {
  const { rows } = await tx.trx.raw<{ rows: DeliveryJob[] }>(
    `select d.status, d.releases, d.test, d.attempts, d.next_attempt_at, w.url, w.headers_sealed, w.id as webhook_id, w.retry_schedule, w.timeout_ms,
       w.failing_since is not null as failing,
       array_remove(array[w.secret_sealed,
         case when w.previous_secret_expires_at > now() then w.previous_secret_sealed end], null) as secrets_sealed,
       json_build_object('id', e.id, 'event', e.name, 'data', e.data, 'previous', e.previous,
         'created_at', to_char(e.created_at at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"')) as event
     from deliveries d
     join events e on e.organization_id = d.organization_id and e.id = d.event_id
     join outgoing_webhooks w on w.organization_id = d.organization_id and w.id = d.webhook_id
     where d.organization_id = ? and d.id = ? for update of d`,
    [tx.organizationId, id],
  )
  return rows[0]
}

/** Logs an attempt before it is sent. @returns its number, from 1. */
export async function beginAttempt(tx: Tenant, id: string): Promise<number> {
  const { rows } = await tx.trx.raw<{ rows: { attempt: number }[] }>(
    `with d as (
       update deliveries set attempts = attempts + 1, status = 'delivering', next_attempt_at = null,
         -- the relay's, which has not noted the start yet
         lease_until = case when status <> 'queued' then lease_until end,
         started_at = coalesce(started_at, now())
       where organization_id = :organizationId and id = :id returning attempts)
     insert into delivery_attempts (organization_id, delivery_id, attempt)
     select :organizationId, :id, attempts from d returning attempt`,
    { organizationId: tx.organizationId, id },
  )
  return rows[0]!.attempt
}

/**
 * Completes the log of an attempt; `next` is when the delivery is tried again, null where this was the end. What was
 * held or cancelled during the attempt stays so, unless the attempt succeeded: it has arrived.
 * @returns the delivery's status now, undefined once it is gone; and whether other retries of the endpoint are due.
 */
export async function endAttempt(
  tx: Tenant,
  { id, webhookId }: { id: string; webhookId: string },
  attempt: number,
  result: AttemptResult,
  next: Date | null,
): Promise<{ status: DeliveryStatus | undefined; due: boolean }> {
  const { succeeded, response_headers } = result
  const ended = succeeded ? 'succeeded' : next ? null : 'failed'
  const { rows } = await tx.trx.raw<{ rows: EndedAttempt[] }>(
    `with attempt as (
       update delivery_attempts set status = :outcome, http_status = :httpStatus, duration_ms = :duration,
         response_headers = :headers, response_body = :body, error = :error
       where organization_id = :organizationId and delivery_id = :id and attempt = :attempt
     ), delivery as (
       update deliveries set
         status = coalesce(:ended, status), error = cast(:failure as text), next_attempt_at = :next,
         held_for = case when cast(:ended as text) is null then held_for end,
         ended_at = case when cast(:ended as text) is not null then now() end
       where organization_id = :organizationId and id = :id and status = any(:from) returning status)
     select coalesce((select status from delivery), (
         select status from deliveries where organization_id = :organizationId and id = :id)) as status,
       exists (
         select from deliveries other where other.organization_id = :organizationId and other.webhook_id = :webhookId
           and other.status = 'queued' and (other.lease_until is null or other.lease_until < now())) as others_wait,
       exists (
         select from deliveries other where other.organization_id = :organizationId and other.webhook_id = :webhookId
           and other.status = 'delivering' and other.next_attempt_at <= now()) as due`,
    {
      organizationId: tx.organizationId,
      id,
      webhookId,
      attempt,
      outcome: succeeded ? 'succeeded' : 'failed',
      httpStatus: result.http_status,
      duration: result.duration_ms,
      headers: JSON.stringify(response_headers),
      body: result.response_body,
      error: result.error,
      ended,
      failure: succeeded ? null : result.error,
      next,
      from: ended ? endsFrom(ended) : ['delivering'],
    } as never,
  )
  // For its slot is free.
  const { status, others_wait, due } = rows[0]!
  if (others_wait) tx.wake('agx_deliveries')
  return { status: status ?? undefined, due }
}

interface EndedAttempt {
  status: DeliveryStatus | null
  others_wait: boolean
  due: boolean
}

/** What a delivery can end from. One that has arrived has succeeded, whatever it was taken for. */
const endsFrom = (status: 'succeeded' | 'failed' | 'cancelled'): DeliveryStatus[] => [
  ...(['held', 'queued', 'delivering'] as const),
  ...(status === 'succeeded' ? (['failed', 'cancelled'] as const) : []),
]

/** Frees the slot of the endpoint, and wakes the relay for the next. A failure changes nothing of what has ended. */
export async function endDelivery(
  tx: Tenant,
  id: string,
  status: 'succeeded' | 'failed' | 'cancelled',
  error: string | null,
): Promise<void> {
  await tx
    .trx('deliveries')
    .where({ organization_id: tx.organizationId, id })
    .whereIn('status', endsFrom(status))
    .update({ status, error, held_for: null, next_attempt_at: null, ended_at: tx.trx.fn.now() })
  tx.wake('agx_deliveries')
}

/** Turns the endpoint off after 410, or after five days of nothing but failure; what is on its way then waits. */
export async function noteEndpointHealth(
  tx: Tenant,
  webhookId: string,
  result: AttemptResult,
): Promise<void> {
  const { rows } = await tx.trx.raw<{ rows: { status: string }[] }>(
    `update outgoing_webhooks set
       failing_since = case when :succeeded then null else coalesce(failing_since, now()) end,
       status = case when :gone or (not :succeeded and failing_since < now() - interval '5 days')
         then 'Inactive' else status end,
       status_reason = case when :gone then 'the receiver answered 410 Gone'
         when not :succeeded and failing_since < now() - interval '5 days' then 'five days of nothing but failure'
         else status_reason end
     where organization_id = :organizationId and id = :webhookId and status = 'Active'
       and not (:succeeded and failing_since is null)
     returning status`,
    {
      organizationId: tx.organizationId,
      webhookId,
      succeeded: result.succeeded,
      gone: result.http_status === 410,
    },
  )
  if (rows[0]?.status === 'Inactive') await holdDeliveries(tx, webhookId)
}
