import type { Knex } from 'knex'
import { takeUpToLimit } from '../access/limits.ts'
import { limitOf, type Subscription } from '../access/plans.ts'

/** The window of an organization's verified requests in a calendar month. */
export const incomingMonth = (organizationId: string) =>
  ({ organizationId, subject: 'incoming', period: 'month' }) as const

/** Counts a verified request in the organization's month. @returns whether the plan allows it, and its limit. */
export async function takeIncomingQuota(
  db: Knex,
  organizationId: string,
  subscription: Subscription,
): Promise<{ granted: boolean; limit: number }> {
  const limit = limitOf(subscription, 'incoming_per_month')
  return { granted: await takeUpToLimit(db, { ...incomingMonth(organizationId), limit }), limit }
}
