/** Who may sign up: the first only, while the service has no organization; anybody; or nobody. */
export const SIGN_UP_RULES = ['first', 'open', 'closed'] as const
export type SignUpRule = (typeof SIGN_UP_RULES)[number]
