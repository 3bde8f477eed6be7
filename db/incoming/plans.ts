import { AppError } from '../errors.ts'

export type Plan = 'free' | 'professional' | 'enterprise'

/** What each plan has of incoming webhooks. */
export const PLAN_LIMITS: Record<Plan, { webhooks: number; perMonth: number; perMinute: number }> = {
  free: { webhooks: 3, perMonth: 500, perMinute: 60 },
  professional: { webhooks: 10, perMonth: 5_000, perMinute: 120 },
  enterprise: {
    webhooks: Number.POSITIVE_INFINITY,
    perMonth: Number.POSITIVE_INFINITY,
    perMinute: Number.POSITIVE_INFINITY,
  },
}

/** Throws plan_limit where a minute could see more requests than the plan has. */
export function assertPlanAllows(plan: Plan, webhook: { rate_limit: number; burst: number }): void {
  const { perMinute } = PLAN_LIMITS[plan]
  if (webhook.rate_limit + webhook.burst > perMinute)
    throw new AppError('plan_limit', `the plan allows ${perMinute} requests a minute, the burst included`, {
      param: webhook.rate_limit > perMinute ? 'rate_limit' : 'burst',
    })
}
