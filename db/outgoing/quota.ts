import type { Knex } from 'knex'
import { takeFromWindow, usedOfWindow } from '../access/limits.ts'
import { limitOf, type Subscription } from '../access/plans.ts'

/**
 * Charges up to `wanted` deliveries to the organization's monthly quota, in the caller's transaction.
 * @returns the number of granted deliveries; the caller holds the others.
 */
export async function chargeDeliveries(trx: Knex, organizationId: string, wanted: number): Promise<number> {
  if (wanted === 0) return 0
  const subscription = await trx('organizations')
    .where({ id: organizationId })
    .first<Subscription>('plan', 'limits')
  const limit = limitOf(subscription, 'outgoing_per_month')
  if (!Number.isFinite(limit)) return wanted
  const rule = { organizationId, subject: 'outgoing', limit, period: 'month' } as const
  // Requests only the remainder: the window also counts refused amounts, and the plan may be upgraded within the month.
  const remaining = Math.max(0, limit - (await usedOfWindow(trx, rule)))
  const requested = Math.min(wanted, remaining)
  if (requested === 0) return 0
  const { granted } = await takeFromWindow(trx, rule, requested)
  // After a concurrent charge: returns the refused amount, which would be missing after an upgrade.
  if (granted < requested) await takeFromWindow(trx, rule, granted - requested)
  return granted
}
