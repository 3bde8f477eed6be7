import type { Tenant } from '../postgres/tenancy.ts'

/** Seconds before each retry of an endpoint without its own schedule, as in Standard Webhooks. */
const STANDARD = [5, 300, 1_800, 7_200, 18_000, 36_000, 50_400, 72_000, 86_400]

/** Seconds before each retry; null is the standard schedule. */
export type RetrySchedule = number[] | null

export const delaysOf = (schedule: RetrySchedule): number[] => schedule ?? STANDARD

/**
 * Jitter: up to this fraction of a delay is added to it, so that a recovered receiver does not get all deliveries at
 * once.
 */
const JITTER = 0.2

export const jittered = (seconds: number) => seconds * (1 + Math.random() * JITTER)

/** Maximum difference between the clock of a worker, which sets the time of a retry, and that of the database. */
const CLOCKS = `interval '5 seconds'`

/**
 * Moves the next attempts of the endpoint's waiting deliveries from its old retry schedule to the new one. Deliveries
 * without a further attempt become due, so that their workflows end them. A time set by a user or by the receiver's
 * Retry-After stays. The caller has locked the endpoint's row.
 */
export async function followSchedule(
  tx: Tenant,
  webhookId: string,
  change: { from: RetrySchedule; to: RetrySchedule },
): Promise<void> {
  const { rowCount } = await tx.trx.raw<{ rowCount: number }>(
    `with waiting as (
       select d.id, d.next_attempt_at, last.*
       from deliveries d cross join lateral (
         select count(*)::integer as retry, max(a.started_at + a.duration_ms * interval '1 millisecond') as ended
         from delivery_attempts a
         where a.organization_id = d.organization_id and a.delivery_id = d.id and a.status <> 'unknown') last
       where d.organization_id = :organizationId and d.webhook_id = :webhookId and not d.test
         and d.next_attempt_at > now() and (d.status = 'delivering' or (d.status = 'held' and d.held_for = 'paused'))
       for update of d
     ), delays as (
       select w.*, (cast(:from as integer[]))[w.retry] * interval '1 second' as before,
         (cast(:to as integer[]))[w.retry] * interval '1 second' as after
       from waiting w
     ), moved as (
       select id, next_attempt_at as previous, coalesce(ended + after * (1 + random() * ${JITTER}), now()) as next
       from delays
       where before is distinct from after
         and next_attempt_at between ended + before - ${CLOCKS} and ended + before * ${1 + JITTER} + ${CLOCKS})
     update deliveries d set next_attempt_at = m.next,
       changes = d.changes + case when d.status = 'delivering' and m.next < m.previous then 1 else 0 end
     from moved m where d.organization_id = :organizationId and d.id = m.id`,
    {
      organizationId: tx.organizationId,
      webhookId,
      from: delaysOf(change.from),
      to: delaysOf(change.to),
    },
  )
  if (rowCount > 0) tx.wake('agx_delivery_changes')
}
