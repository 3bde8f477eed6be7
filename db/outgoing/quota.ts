import type { Knex } from 'knex'
import { takeFromWindow, usedOfWindow } from '../access/limits.ts'
import { limitOf, type Subscription } from '../access/plans.ts'

/**
 * Charges up to `wanted` deliveries to the organization's monthly quota, in the caller's transaction.
 * @returns the number of granted deliveries; the caller holds the others.
 */
export async function chargeDeliveries(trx: Knex, organizationId: string, wanted: number): Promise<number> {
  if (wanted === 0) return 0
  const { rule, remaining } = await quotaOf(trx, organizationId)
  if (!Number.isFinite(remaining)) return wanted
  const requested = Math.min(wanted, remaining)
  if (requested === 0) return 0
  const { granted } = await takeFromWindow(trx, rule, requested)
  // A concurrent charge took a part: returns the refused amount, which the window has counted too.
  if (granted < requested) await takeFromWindow(trx, rule, granted - requested)
  return granted
}

/** The rest of the organization's quota of this month; infinite if the plan has none. */
export const remainingQuota = async (trx: Knex, organizationId: string): Promise<number> =>
  (await quotaOf(trx, organizationId)).remaining

async function quotaOf(trx: Knex, organizationId: string) {
  const subscription = await trx('organizations')
    .where({ id: organizationId })
    .first<Subscription>('plan', 'limits')
  const limit = limitOf(subscription, 'outgoing_per_month')
  const rule = { organizationId, subject: 'outgoing', limit, period: 'month' } as const
  if (!Number.isFinite(limit)) return { rule, remaining: limit }
  // The window also counts refused amounts, and the plan may be upgraded within the month.
  return { rule, remaining: Math.max(0, limit - (await usedOfWindow(trx, rule))) }
}
