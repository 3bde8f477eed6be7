import { createHash } from 'node:crypto'
import type Koa from 'koa'
import { NIL } from 'uuid'
import type { LimitWindows, Taken } from '../../db/access/limits.ts'
import { AppError } from '../../db/errors.ts'
import type { AppDeps } from '../deps.ts'
import { clientIp, subnetOf } from './client-ip.ts'
import { rateLimited, setLimitHeaders, WINDOW_SECONDS } from './rate-limit.ts'

/** Requests per minute with a wrong key or session cookie, from one address. */
export const MAX_FAILURES = 120
/** Credentials that this process has accepted; the oldest are forgotten first. */
const MAX_ACCEPTED = 10_000

/**
 * Limits the requests with wrong credentials from an address. Above the limit, requests from it are refused before the
 * look-up of their credential, except those whose credential this process has accepted before: clients behind the same
 * address are not locked out by a neighbour. Requests without credentials cost nothing and do not count.
 */
export class FailedCredentials<Found> {
  private readonly deps: AppDeps
  private readonly windows: LimitWindows
  /** What look-ups found, by digests of the credentials, so that no credential stays in memory. */
  private readonly accepted = new Map<string, Found>()

  constructor(deps: AppDeps, windows: LimitWindows) {
    this.deps = deps
    this.windows = windows
  }

  /** What the last look-up of a credential found. It may have changed since. */
  lastFound(credential: string | undefined): Found | undefined {
    return credential ? this.accepted.get(digestOf(credential)) : undefined
  }

  /** Runs `authenticate`, which throws unauthorized. Throws rate_limited above the limit. */
  async guard(
    ctx: Koa.Context,
    credential: string | undefined,
    authenticate: () => Promise<Found>,
  ): Promise<Found> {
    if (!credential) return authenticate()
    const address = subnetOf(clientIp(ctx.req, this.deps.config.TRUSTED_PROXIES))
    const rule = {
      organizationId: NIL,
      subject: `failed ${address}`,
      limit: MAX_FAILURES,
      period: WINDOW_SECONDS,
    }
    const digest = digestOf(credential)
    const exhausted = this.accepted.has(digest) ? undefined : this.windows.exhausted(rule)
    if (exhausted) throw refusal(ctx, exhausted)
    try {
      const found = await authenticate()
      this.remember(digest, found)
      return found
    } catch (error) {
      if (!(error instanceof AppError) || error.type !== 'unauthorized') throw error
      this.accepted.delete(digest)
      const taken = await this.windows.take(rule)
      throw taken.allowed ? error : refusal(ctx, taken)
    }
  }

  private remember(digest: string, found: Found): void {
    if (!this.accepted.has(digest) && this.accepted.size >= MAX_ACCEPTED)
      this.accepted.delete(this.accepted.keys().next().value!)
    this.accepted.set(digest, found)
  }
}

const digestOf = (credential: string) => createHash('sha256').update(credential).digest('base64')

function refusal(ctx: Koa.Context, taken: Taken): AppError {
  setLimitHeaders(ctx, taken, 'address')
  return rateLimited('too many requests with wrong credentials from this address', taken)
}
