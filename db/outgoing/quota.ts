import type { Knex } from 'knex'
import { takeFromWindow, usedOfWindow } from '../access/limits.ts'
import { limitOf, type Subscription } from '../access/plans.ts'

/**
 * Charges up to `wanted` deliveries to the organization's month, in the caller's transaction.
 * @returns how many of them it may send; the others are held, never dropped.
 */
export async function chargeDeliveries(trx: Knex, organizationId: string, wanted: number): Promise<number> {
  if (wanted === 0) return 0
  const subscription = await trx('organizations')
    .where({ id: organizationId })
    .first<Subscription>('plan', 'limits')
  const limit = limitOf(subscription, 'outgoing_per_month')
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
