import { takeWhole, usedOfWindow, type WindowRule, windowAt } from '../access/limits.ts'
import { limitOf, type PlanLimits, type Subscription } from '../access/plans.ts'
import type { System } from '../postgres/tenancy.ts'
import { takeTurn, useTurn } from './turns.ts'

/**
 * How many recipients an organization may mail, by its plan: all organizations share one sender, whose reputation one of
 * them could spend. A new organization that signed up may mail only a part, so that an account that is made to send
 * spam is found first.
 */
const FIRST = { days: 3, part: 5 } as const

const MINUTE = 60
const DAY = 86_400

/** `until`: when the mail may ask again, or, per minute, when its turn comes. */
export type Allowance =
  | { granted: true }
  | { granted: false; per: 'minute' | 'day'; limit: number; isNew: boolean; until: Date }

/**
 * Counts the recipients of a mail, all or none. A mail that finds its minute used up takes a turn in the next minute with
 * room, which later mails cannot take from it: so none starves, and the turns of a minute are spread over it.
 * @param mail.key the same for each attempt to send the mail.
 * @param options.minute its length in seconds, for tests.
 */
export async function takeRecipients(
  system: System,
  { organizationId, key, recipients }: { organizationId: string; key: string; recipients: number },
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
  const refused = (per: 'minute' | 'day', limit: number, until: number): Allowance => ({
    granted: false,
    per,
    limit,
    isNew,
    until: new Date(until),
  })
  const day = { organizationId, subject: 'mail:day', limit: limitFor('mail_recipients_per_day'), period: DAY }
  const minute = {
    organizationId,
    subject: 'mail:minute',
    limit: limitFor('mail_recipients_per_minute'),
    period,
  }
  // Before a turn is taken, too: a mail that the day refuses must not wait for it.
  const isOver = async () => (await usedOfWindow(system, day, now)) + recipients > day.limit
  const due = await turnAt(system, minute, { key, recipients }, now, isOver)
  if (due === undefined) return refused('day', day.limit, windowAt(DAY, now).end)
  if (due > now) return refused('minute', minute.limit, due)
  if (await takeWhole(system, day, recipients, {}, now)) return { granted: true }
  return refused('day', day.limit, windowAt(DAY, now).end)
}

/** When the mail may be sent: now, or at its turn. Undefined if it may not take one. */
async function turnAt(
  system: System,
  minute: WindowRule & { period: number },
  { key, recipients }: { key: string; recipients: number },
  now: number,
  isOver: () => Promise<boolean>,
): Promise<number | undefined> {
  if (minute.limit === Infinity) return now
  const own = await useTurn(system, minute.organizationId, key, now)
  if (own !== undefined) return own
  if (await isOver()) return undefined
  // A mail to more than a minute allows takes a whole minute: it could never be sent otherwise.
  const amount = Math.min(recipients, Math.max(1, minute.limit))
  if (await takeWhole(system, minute, amount, {}, now)) return now
  if (minute.limit < 1) return windowAt(minute.period, now).end
  return takeTurn(system, minute, { key, amount }, now)
}

/** Says which limit a mail exceeds. */
export const describeLimit = ({ per, limit, isNew }: Extract<Allowance, { granted: false }>): string =>
  `the plan allows mails to ${limit} recipients per ${per}${isNew ? ` in the first ${FIRST.days} days of an organization` : ''}`
