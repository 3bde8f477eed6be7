/**
 * Who may sign up: `first`, only the first person, while the service has no organization; `open`, anybody; `closed`,
 * nobody.
 */
export const SIGN_UP_RULES = ['first', 'open', 'closed'] as const
export type SignUpRule = (typeof SIGN_UP_RULES)[number]
