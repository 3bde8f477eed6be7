import { timingSafeEqual } from 'node:crypto'
import type Koa from 'koa'
import { LimitWindows } from '../../db/access/limits.ts'
import { findSession, type Session } from '../../db/access/sessions.ts'
import { AppError } from '../../db/model/errors.ts'
import { isHttps } from '../config.ts'
import type { AppDeps } from '../deps.ts'
import { FailedCredentials } from '../http/failed-credentials.ts'
import { sessionToken } from './cookie.ts'
import { type SessionCaller, toCaller } from './session-caller.ts'

/** Authenticates by session. Shared by the realms of /app and /app/v1. */
export interface SessionGate {
  windows: LimitWindows
  /** The caller with the session of the cookie, looked up for each request. Throws unauthorized, rate_limited. */
  authenticate(ctx: Koa.Context): Promise<SessionCaller>
}

export function createSessionGate(deps: AppDeps): SessionGate {
  const windows = new LimitWindows(deps.db.system)
  const failures = new FailedCredentials(deps, windows)
  return {
    windows,
    authenticate(ctx) {
      const { authorization, cookie } = ctx.req.headers
      const token = sessionToken(cookie, isHttps(deps.config))
      return failures.guard(ctx, token, async () => {
        // A request with a key is refused, even with a valid session.
        const session = token && !authorization ? await findSession(deps.db.system, token) : undefined
        if (!session) throw new AppError('unauthorized', 'sign in first')
        return toCaller(session)
      })
    },
  }
}

/** Throws csrf_token_invalid for a write without the token of its session. */
export function requireCsrfToken(ctx: Koa.Context, { method }: { method: string }, session: Session): void {
  if (method === 'GET') return
  const sent = Buffer.from(ctx.get('X-CSRF-Token'))
  const expected = Buffer.from(session.csrf_token)
  if (sent.length === expected.length && timingSafeEqual(sent, expected)) return
  const wrong = sent.length === 0 ? 'is missing' : 'does not match the session'
  throw new AppError('csrf_token_invalid', `the X-CSRF-Token header ${wrong}`, {
    param: 'X-CSRF-Token',
    hint: 'send the csrf_token of GET /app/session',
  })
}
