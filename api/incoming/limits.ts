import { usedOfWindow, windowAt } from '../../db/access/limits.ts'
import { limitOf } from '../../db/access/plans.ts'
import { countAgainst, incomingMinute, type Receiver } from '../../db/incoming/receiving.ts'
import { exceededBy, getStorage } from '../../db/storage/usage.ts'
import { subnetOf } from '../http/client-ip.ts'
import { Refusal, secondsUntil } from './answer.ts'
import type { Call } from './call.ts'

const MINUTE = 60

/** Twenty wrong secrets from one address within a minute block it for five minutes. */
const WRONG_SECRETS = { counter: 'failures', times: 20, within: 60, blockFor: 300 } as const

export const countFailure = (call: Call): Promise<void> =>
  countAgainst(call.deps.db.system, sourceOf(call), WRONG_SECRETS)

/** Sets the rate-limit headers without counting the request. */
export const showRate = ({ ctx, webhook }: Call): void =>
  setHeaders(ctx, Math.min(webhook.rate_limit, perMinute(webhook)), webhook.used_of_minute)

/** Counts a request in the webhook's minute. Throws rate_limited, and counts the breach against the address. */
export async function takeRate(call: Call): Promise<void> {
  const { ctx, deps, webhook } = call
  const limit = await ceiling(call)
  const used = await deps.together.countInMinute(webhook)
  setHeaders(ctx, limit, used)
  if (used <= limit) return
  if (webhook.block)
    await countAgainst(deps.db.system, sourceOf(call), {
      counter: 'breaches',
      times: webhook.block.after,
      within: 3_600,
      blockFor: webhook.block.minutes * 60,
    })
  const retryAfter = secondsUntil(windowAt(MINUTE, Date.now()).end / 1000)
  throw new Refusal('rate_limited', `the webhook exceeds ${limit} requests per minute`, { retryAfter })
}

/** This many records of a batch count as one request of the minute. In the month each record counts. */
const RECORDS_PER_REQUEST = 100

/**
 * Counts a batch, whose request was counted already, by its records. It is accepted, also where it alone exceeds the
 * minute; the requests after it are not.
 */
export async function countRecords({ ctx, deps, webhook }: Call, records: number): Promise<void> {
  const more = Math.ceil(records / RECORDS_PER_REQUEST) - 1
  if (more === 0) return
  const used = await deps.together.countInMinute(webhook, more)
  setHeaders(ctx, Math.min(webhook.rate_limit, perMinute(webhook)), used)
}

/** Counts a request in the organization's month. Throws quota_exceeded. */
export async function takeQuota({ deps, webhook }: Call): Promise<void> {
  const { granted, limit } = await deps.together.takeFromMonth(webhook)
  if (granted) return
  const retryAfter = secondsUntil(windowAt('month', Date.now()).end / 1000)
  throw new Refusal('quota_exceeded', `the monthly quota of ${limit} requests is exceeded`, {
    retryAfter,
  })
}

/** The part of the storage limit up to which the log keeps whole payloads: then it would grow without end. */
const MOST_WITH_PAYLOADS = 1.25

/**
 * Throws quota_exceeded if the organization stores as much as its plan allows: the log keeps the request for a replay.
 */
export async function requireStorage(call: Call): Promise<void> {
  const { deps, webhook } = call
  if (!webhook.storage_full) return
  const actor = { type: 'webhook', id: webhook.id } as const
  const usage = await deps.db.tenant(webhook.organization_id, actor, getStorage)
  const { message, details } = exceededBy(usage)
  if (usage.used > MOST_WITH_PAYLOADS * (usage.limit ?? Infinity)) call.isLogBrief = true
  throw new Refusal('quota_exceeded', message, { retryAfter: details.retry_after! })
}

/** The limit of this minute: the rate limit, plus the part of the burst that the previous minute did not use. */
async function ceiling({ deps, webhook }: Call): Promise<number> {
  const { rate_limit, burst } = webhook
  if (burst === 0) return Math.min(rate_limit, perMinute(webhook))
  const before = await usedOfWindow(
    deps.db.system,
    incomingMinute(webhook.organization_id, webhook.id),
    Date.now() - MINUTE * 1000,
  )
  const overdrawn = Math.min(burst, Math.max(0, before - rate_limit))
  return Math.min(rate_limit + burst - overdrawn, perMinute(webhook))
}

/** The plan can have been downgraded since the webhook was saved: its limit applies too. */
const perMinute = (webhook: Receiver) => limitOf(webhook, 'incoming_per_minute')

const sourceOf = ({ webhook, sourceIp }: Call) => ({
  organizationId: webhook.organization_id,
  webhookId: webhook.id,
  // In an IPv6 /64 a client can choose any address.
  sourceIp: subnetOf(sourceIp),
})

function setHeaders(ctx: Call['ctx'], limit: number, used: number): void {
  ctx.set('X-RateLimit-Limit', String(limit))
  ctx.set('X-RateLimit-Remaining', String(Math.max(0, limit - used)))
  ctx.set('X-RateLimit-Reset', String(windowAt(MINUTE, Date.now()).end / 1000))
}
