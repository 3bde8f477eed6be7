/**
 * Which organizations' owners may change the plan: `first`, the first organization's, which is the operator's; `open`,
 * every one's; `closed`, none's.
 */
export const PLAN_CHANGE_RULES = ['first', 'open', 'closed'] as const
export type PlanChangeRule = (typeof PLAN_CHANGE_RULES)[number]
