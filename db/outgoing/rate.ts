import { takeFromWindow, windowAt } from '../access/limits.ts'
import type { Tenant } from '../postgres/tenancy.ts'
import type { DeliveryJob } from './attempts.ts'

/** The rate limit of an endpoint: attempts per minute (UTC), including retries. Its window in seconds. */

const MINUTE = 60
const SUBJECT = 'outgoing-webhook:'

/** SQL: the remaining attempts of the endpoint `w` in this minute; null without a limit. */
export const LEFT_OF_RATE = `(w.rate_per_minute - coalesce((
  select l.used from limit_windows l where l.organization_id = w.organization_id
    and l.subject = '${SUBJECT}' || w.id and l.window_start = date_trunc('minute', now())), 0))`

/** Jitter after the end of a minute, so that the waiting deliveries do not all start at once. */
const SPREAD_MS = 2_000

/**
 * Takes an attempt of this minute, if one is left. Otherwise the delivery becomes due in the next minute, unless it has
 * begun another attempt or release since it was read.
 * @returns the time at which it is due; undefined if the attempt may start.
 */
export async function takeRate(
  tx: Tenant,
  deliveryId: string,
  job: Pick<DeliveryJob, 'webhook_id' | 'rate_per_minute' | 'releases' | 'next_attempt_at'>,
): Promise<Date | undefined> {
  const { webhook_id, rate_per_minute, releases, next_attempt_at } = job
  if (rate_per_minute === null) return undefined
  const now = Date.now()
  const subject = SUBJECT + webhook_id
  const rule = { organizationId: tx.organizationId, subject, limit: rate_per_minute, period: MINUTE }
  const { granted } = await takeFromWindow(tx.trx, rule, 1, now)
  if (granted === 1) return undefined
  const due = new Date(windowAt(MINUTE, now).end + Math.random() * SPREAD_MS)
  await tx
    .trx('deliveries')
    .where({ organization_id: tx.organizationId, id: deliveryId, releases })
    .whereRaw('next_attempt_at is not distinct from cast(? as timestamptz)', [next_attempt_at as never])
    .update({ next_attempt_at: due, slot_wanted_at: null })
  return due
}
