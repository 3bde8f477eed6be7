import type { Knex } from 'knex'
import { type TakeOptions, takeUpToLimit } from '../access/limits.ts'
import { limitOf, type Subscription } from '../access/plans.ts'

/** The window of an organization's verified requests in a calendar month. */
export const incomingMonth = (organizationId: string) =>
  ({ organizationId, subject: 'incoming', period: 'month' }) as const

/**
 * Counts verified requests in the organization's month. @returns how many of them the plan allows, and its limit.
 * `isFlushedLater`: the commit of what a request writes, or of its log row, follows and makes the count durable too.
 */
export async function takeIncomingQuota(
  db: Knex,
  organizationId: string,
  subscription: Subscription,
  { requests = 1, ...options }: TakeOptions & { requests?: number } = {},
): Promise<{ granted: number; limit: number }> {
  const limit = limitOf(subscription, 'incoming_per_month')
  return {
    granted: await takeUpToLimit(db, { ...incomingMonth(organizationId), limit }, requests, options),
    limit,
  }
}
