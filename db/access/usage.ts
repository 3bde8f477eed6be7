import { incomingMonth } from '../incoming/quota.ts'
import { MINUTE_SUBJECT } from '../incoming/receiving.ts'
import type { Tenant } from '../postgres/tenancy.ts'
import { ACTIVE_RUNS } from '../runs/admission.ts'
import { getStorage, type StorageUsage } from '../storage/usage.ts'
import { fileBytes } from '../stored-files/files.ts'
import { usedOfWindow, windowAt } from './limits.ts'
import { getSubscription, limitOf, type Plan, type PlanLimits } from './plans.ts'

/** The limits of a plan: monthly ones, limits of existing objects, and of each incoming webhook and file. */
export const COUNTED_LIMITS = [
  'incoming_per_month',
  'outgoing_per_month',
  'incoming_webhooks',
  'outgoing_webhooks',
  'max_running',
  'incoming_per_minute',
  'requests_per_minute',
  'file_bytes',
  'largest_file',
] as const satisfies (keyof PlanLimits)[]
export type CountedLimit = (typeof COUNTED_LIMITS)[number]

export interface Usage {
  plan: Plan
  /** The calendar month (UTC) that the monthly limits count. */
  month: { from: Date; to: Date }
  /** `limit` is null if the plan sets none. Deliveries are then not counted (`used` is null). */
  limits: Record<CountedLimit, { used: number | null; limit: number | null }>
  /** Number of deliveries that are held until the month or the plan changes. */
  held_for_quota: number
  storage: StorageUsage
}

/** The organization's usage of its plan. */
export async function getUsage(tx: Tenant): Promise<Usage> {
  const { organizationId } = tx
  const organization = await getSubscription(tx)
  const { rows } = await tx.trx.raw<{ rows: (Record<CountedLimit, number> & { held: number })[] }>(
    `select ${ACTIVE_RUNS}::integer as max_running,
       (select count(*) from incoming_webhooks w where w.organization_id = o.id)::integer as incoming_webhooks,
       (select count(*) from outgoing_webhooks w where w.organization_id = o.id)::integer as outgoing_webhooks,
       (select count(*) from deliveries d where d.organization_id = o.id and d.status = 'held'
          and d.held_for = 'quota')::integer as held
     from organizations o where o.id = ?`,
    [organizationId],
  )
  const counts = rows[0]!
  const now = Date.now()
  const outgoing = async () => {
    const limit = limitOf(organization, 'outgoing_per_month')
    if (!Number.isFinite(limit)) return null
    // The window also counts held deliveries.
    return Math.min(
      await usedOfWindow(tx.trx, { organizationId, subject: 'outgoing', period: 'month' }, now),
      limit,
    )
  }
  const used: Record<CountedLimit, number | null> = {
    ...counts,
    incoming_per_month: await usedOfWindow(tx.trx, incomingMonth(organizationId), now),
    outgoing_per_month: await outgoing(),
    incoming_per_minute: await busiestMinute(tx, now),
    requests_per_minute: await usedOfWindow(
      tx.trx,
      { organizationId, subject: 'organization', period: 60 },
      now,
    ),
    file_bytes: await fileBytes(tx),
    largest_file: null,
  }
  const { start, end } = windowAt('month', now)
  const limits = COUNTED_LIMITS.map((name) => {
    const limit = limitOf(organization, name)
    return [name, { used: used[name], limit: Number.isFinite(limit) ? limit : null }]
  })
  return {
    plan: organization.plan,
    month: { from: new Date(start), to: new Date(end) },
    limits: Object.fromEntries(limits),
    held_for_quota: counts.held,
    storage: await getStorage(tx),
  }
}

/** The requests of this minute to the incoming webhook that has most. */
async function busiestMinute(tx: Tenant, now: number): Promise<number> {
  const { start } = windowAt(60, now)
  const { rows } = await tx.trx.raw<{ rows: { used: number }[] }>(
    `select coalesce(max(m.used), 0) as used from incoming_webhooks w
     join limit_windows m on m.organization_id = w.organization_id and m.subject = ? || w.id and m.window_start = ?
     where w.organization_id = ?`,
    [MINUTE_SUBJECT, new Date(start), tx.organizationId],
  )
  return rows[0]!.used
}
