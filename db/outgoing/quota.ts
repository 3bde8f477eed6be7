import type { Knex } from 'knex'
import { takeFromWindow, usedOfWindow } from '../access/limits.ts'
import type { Plan } from '../incoming/plans.ts'
import { OUTGOING_LIMITS } from './plans.ts'

/**
 * Charges up to `wanted` deliveries to the organization's month, in the caller's transaction.
 * @returns how many of them it may send; the others are held, never dropped.
 */
export async function chargeDeliveries(trx: Knex, organizationId: string, wanted: number): Promise<number> {
  if (wanted === 0) return 0
  const { plan, limits } = await trx('organizations')
    .where({ id: organizationId })
    .first<{ plan: Plan; limits: { outgoing_per_month?: number } }>('plan', 'limits')
  const limit = limits.outgoing_per_month ?? OUTGOING_LIMITS[plan].perMonth
  if (!Number.isFinite(limit)) return wanted
  const rule = { organizationId, subject: 'outgoing', limit, period: 'month' } as const
  // Only what is left is asked for, for the window also counts what it refuses, and the plan may grow within the month.
  const left = Math.max(0, limit - (await usedOfWindow(trx, rule)))
  const asked = Math.min(wanted, left)
  if (asked === 0) return 0
  const { granted } = await takeFromWindow(trx, rule, asked)
  // Somebody took meanwhile: what was refused is given back, or it would be missing when the plan grows.
  if (granted < asked) await takeFromWindow(trx, rule, granted - asked)
  return granted
}

const BATCH = 10_000

/** Queues deliveries that waited for quota, the oldest first, as far as plan and month now allow. */
export async function releaseForQuota(system: Knex): Promise<void> {
  const { rows } = await system.raw<{ rows: { organization_id: string }[] }>(
    `select distinct d.organization_id from deliveries d
     join outgoing_webhooks w on w.organization_id = d.organization_id and w.id = d.webhook_id
     where d.status = 'held' and d.held_for = 'quota' and w.status = 'Active'`,
  )
  for (const { organization_id } of rows)
    await system.transaction((trx) => releaseWaiting(trx, organization_id))
}

/** Only what is locked is charged: what is cancelled or released by others meanwhile is not paid for twice. */
async function releaseWaiting(trx: Knex, organizationId: string): Promise<void> {
  const { rows } = await trx.raw<{ rows: { id: string }[] }>(
    `select d.id from deliveries d
     join outgoing_webhooks w on w.organization_id = d.organization_id and w.id = d.webhook_id
     where d.organization_id = ? and d.status = 'held' and d.held_for = 'quota' and w.status = 'Active'
     order by d.id limit ? for update of d skip locked`,
    [organizationId, BATCH],
  )
  const granted = await chargeDeliveries(trx, organizationId, rows.length)
  if (granted === 0) return
  await trx.raw(
    `update deliveries set status = 'queued', held_for = null, charged = true, lease_until = null,
       releases = releases + 1
     where organization_id = ? and id = any(?)`,
    [organizationId, rows.slice(0, granted).map(({ id }) => id)],
  )
}
