import { createHash } from 'node:crypto'
import type Koa from 'koa'
import { LRUCache } from 'lru-cache'
import { NIL } from 'uuid'
import type { LimitWindows, Taken } from '../../db/access/limits.ts'
import { AppError } from '../../db/model/errors.ts'
import type { AppDeps } from '../deps.ts'
import { clientIp, subnetOf } from './client-ip.ts'
import { rateLimited, setLimitHeaders, WINDOW_SECONDS } from './rate-limit.ts'

/** Maximum number of requests per minute with a wrong key or session cookie from one address. */
export const MAX_FAILURES = 120
/** Maximum number of accepted credentials that this process remembers. */
const MAX_PROVEN = 10_000

/**
 * Limits the requests with wrong credentials from an address. Above the limit, requests from the address are refused
 * before their credential is looked up, unless this process has accepted the credential before: a neighbour behind the
 * same address cannot lock out other clients. Requests without credentials cost nothing and do not count.
 */
export class FailedCredentials {
  private readonly deps: AppDeps
  private readonly windows: LimitWindows
  /** Digests of credentials, so that no credential stays in memory. */
  private readonly proven = new LRUCache<string, true>({ max: MAX_PROVEN })

  constructor(deps: AppDeps, windows: LimitWindows) {
    this.deps = deps
    this.windows = windows
  }

  /** Runs `authenticate`, which throws unauthorized. Throws rate_limited above the limit. */
  async guard<T>(
    ctx: Koa.Context,
    credential: string | undefined,
    authenticate: () => Promise<T>,
  ): Promise<T> {
    if (!credential) return authenticate()
    const address = subnetOf(clientIp(ctx.req, this.deps.config.TRUSTED_PROXIES))
    const rule = {
      organizationId: NIL,
      subject: `failed ${address}`,
      limit: MAX_FAILURES,
      period: WINDOW_SECONDS,
    }
    const digest = createHash('sha256').update(credential).digest('base64')
    const exhausted = this.proven.has(digest) ? undefined : this.windows.exhausted(rule)
    if (exhausted) throw refusal(ctx, exhausted)
    try {
      const caller = await authenticate()
      this.proven.set(digest, true)
      return caller
    } catch (error) {
      if (!(error instanceof AppError) || error.type !== 'unauthorized') throw error
      this.proven.delete(digest)
      const taken = await this.windows.take(rule)
      throw taken.allowed ? error : refusal(ctx, taken)
    }
  }
}

function refusal(ctx: Koa.Context, taken: Taken): AppError {
  setLimitHeaders(ctx, taken, 'address')
  return rateLimited('too many requests with wrong credentials from this address', taken)
}
