import { takeWhole, windowAt } from '../access/limits.ts'
import { limitOf, type PlanLimits, type Subscription } from '../access/plans.ts'
import type { System } from '../postgres/tenancy.ts'

/**
 * How many recipients an organization may mail, by its plan: all organizations share one sender, whose reputation one of
 * them could spend. A new organization that signed up may mail only a part, so that an account that is made to send
 * spam is found first.
 */
const FIRST = { days: 3, part: 5 } as const

const MINUTE = 60
const DAY = 86_400

export type Allowance =
  | { granted: true }
  | { granted: false; per: 'minute' | 'day'; limit: number; isNew: boolean; until: Date }

/**
 * Counts the recipients of a mail, all or none. `until` is when the window that is used up ends. `minute` is its length in
 * seconds, for tests.
 */
export async function takeRecipients(
  system: System,
  organizationId: string,
  recipients: number,
  { minute: period = MINUTE, now = Date.now() }: { minute?: number | undefined; now?: number } = {},
): Promise<Allowance> {
  const organization = await system('organizations')
    .where({ id: organizationId })
    .first<(Subscription & { signed_up: boolean; created_at: Date }) | undefined>(
      'plan',
      'limits',
      'signed_up',
      'created_at',
    )
  if (!organization) return { granted: true }
  const { signed_up, created_at } = organization
  const isNew = signed_up && now - created_at.getTime() < FIRST.days * DAY * 1_000
  const limitFor = (name: keyof PlanLimits) =>
    Math.floor(limitOf(organization, name) / (isNew ? FIRST.part : 1))
  const minute = limitFor('mail_recipients_per_minute')
  // A mail to more than a minute allows takes a whole minute: it could never be sent otherwise.
  const part = Math.min(recipients, Math.max(1, minute))
  const windows = [
    { per: 'minute', period, limit: minute, amount: part },
    { per: 'day', period: DAY, limit: limitFor('mail_recipients_per_day'), amount: recipients },
  ] as const
  for (const { per, period, limit, amount } of windows) {
    const rule = { organizationId, subject: `mail:${per}`, limit, period }
    if (!(await takeWhole(system, rule, amount, {}, now)))
      return { granted: false, per, limit, isNew, until: new Date(windowAt(period, now).end) }
  }
  return { granted: true }
}

/** Says which limit a mail exceeds. */
export const describeLimit = ({ per, limit, isNew }: Extract<Allowance, { granted: false }>): string =>
  `the plan allows mails to ${limit} recipients per ${per}${isNew ? ` in the first ${FIRST.days} days of an organization` : ''}`
