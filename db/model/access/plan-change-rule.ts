/** Whose owner may change the plan: of the first organization, which is the operator's; of every one; or of none. */
export const PLAN_CHANGE_RULES = ['first', 'open', 'closed'] as const
export type PlanChangeRule = (typeof PLAN_CHANGE_RULES)[number]
