import type Koa from 'koa'
import { usedOfWindow, windowAt } from '../../db/access/limits.ts'
import { limitOf } from '../../db/access/plans.ts'
import { countAgainst, incomingMinute, type Receiver } from '../../db/incoming/receiving.ts'
import type { System } from '../../db/postgres/tenancy.ts'
import { subnetOf } from '../http/client-ip.ts'
import { Refusal, secondsUntil } from './answer.ts'
import type { IncomingDeps } from './together.ts'

const MINUTE = 60

/** Twenty wrong secrets from one address within a minute block it for five minutes. */
const WRONG_SECRETS = { counter: 'failures', times: 20, within: 60, blockFor: 300 } as const

export const countFailure = (system: System, webhook: Receiver, sourceIp: string) =>
  countAgainst(system, source(webhook, sourceIp), WRONG_SECRETS)

/** Sets the rate-limit headers without counting the request. */
export const showRate = (ctx: Koa.Context, webhook: Receiver): void =>
  setHeaders(ctx, Math.min(webhook.rate_limit, perMinute(webhook)), webhook.used_of_minute)

/** Counts a request in the webhook's minute. Throws rate_limited, and counts the breach against the address. */
export async function takeRate(
  ctx: Koa.Context,
  { db: { system }, together }: IncomingDeps,
  webhook: Receiver,
  sourceIp: string,
): Promise<void> {
  const limit = await ceiling(system, webhook)
  const used = await together.minutes.add(webhook.id, webhook)
  setHeaders(ctx, limit, used)
  if (used <= limit) return
  if (webhook.block)
    await countAgainst(system, source(webhook, sourceIp), {
      counter: 'breaches',
      times: webhook.block.after,
      within: 3_600,
      blockFor: webhook.block.minutes * 60,
    })
  const retryAfter = secondsUntil(windowAt(MINUTE, Date.now()).end / 1000)
  throw new Refusal('rate_limited', `the webhook exceeds ${limit} requests per minute`, { retryAfter })
}

/** Counts a request in the organization's month. Throws quota_exceeded. */
export async function takeQuota({ together }: IncomingDeps, webhook: Receiver): Promise<void> {
  const { granted, limit } = await together.months.add(webhook.organization_id, webhook)
  if (granted) return
  const retryAfter = secondsUntil(windowAt('month', Date.now()).end / 1000)
  throw new Refusal('quota_exceeded', `the monthly quota of ${limit} requests is exceeded`, {
    retryAfter,
  })
}

/** The limit of this minute: the rate limit, plus the part of the burst that the previous minute did not use. */
async function ceiling(system: System, webhook: Receiver): Promise<number> {
  const { rate_limit, burst } = webhook
  if (burst === 0) return Math.min(rate_limit, perMinute(webhook))
  const before = await usedOfWindow(
    system,
    incomingMinute(webhook.organization_id, webhook.id),
    Date.now() - MINUTE * 1000,
  )
  const overdrawn = Math.min(burst, Math.max(0, before - rate_limit))
  return Math.min(rate_limit + burst - overdrawn, perMinute(webhook))
}

/** The plan can have been downgraded since the webhook was saved: its limit applies too. */
const perMinute = (webhook: Receiver) => limitOf(webhook, 'incoming_per_minute')

const source = (webhook: Receiver, sourceIp: string) => ({
  organizationId: webhook.organization_id,
  webhookId: webhook.id,
  // In an IPv6 /64 a client can choose any address.
  sourceIp: subnetOf(sourceIp),
})

function setHeaders(ctx: Koa.Context, limit: number, used: number): void {
  ctx.set('X-RateLimit-Limit', String(limit))
  ctx.set('X-RateLimit-Remaining', String(Math.max(0, limit - used)))
  ctx.set('X-RateLimit-Reset', String(windowAt(MINUTE, Date.now()).end / 1000))
}
