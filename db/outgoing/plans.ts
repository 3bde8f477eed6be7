import type { Plan } from '../incoming/plans.ts'

/** What each plan has of outgoing webhooks. */
export const OUTGOING_LIMITS: Record<Plan, { webhooks: number; perMonth: number }> = {
  free: { webhooks: 5, perMonth: 1_000 },
  professional: { webhooks: 25, perMonth: 10_000 },
  enterprise: { webhooks: Number.POSITIVE_INFINITY, perMonth: Number.POSITIVE_INFINITY },
}
