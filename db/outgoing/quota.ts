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
