import { NIL } from 'uuid'
import { z } from 'zod'
import { takeFromWindow, windowAt } from '../../db/access/limits.ts'
import { MEMBER_ROLES } from '../../db/access/roles.ts'
import { findSession, type Session, signIn, signOut } from '../../db/access/users.ts'
import { AppError } from '../../db/errors.ts'
import { isHttps } from '../config.ts'
import type { AppDeps } from '../deps.ts'
import { subnetOf } from '../http/client-ip.ts'
import { type AppRoute, appRoute } from '../http/route.ts'
import { sessionCookie } from './cookie.ts'
import { sessionOf } from './session-caller.ts'

const sessionSchema = z
  .object({
    object: z.literal('session'),
    id: z.uuid(),
    expires_at: z.iso.datetime(),
    csrf_token: z.string().meta({ description: 'Sent as `X-CSRF-Token` with every write.' }),
    role: z.enum(MEMBER_ROLES),
    user: z.object({ id: z.uuid(), name: z.string(), email: z.string() }).meta({ id: 'SessionUser' }),
    organization: z
      .object({ id: z.uuid(), name: z.string(), plan: z.string() })
      .meta({ id: 'SessionOrganization' }),
  })
  .meta({ id: 'Session' })

export const sessionRoutes: AppRoute[] = [
  appRoute({
    method: 'POST',
    path: '/session',
    role: 'public',
    id: 'signIn',
    tag: 'Session',
    summary: 'Sign in',
    description: 'Sets the session cookie. Attempts are limited per IP address and per email.',
    idempotent: false,
    body: z
      .strictObject({ email: z.string().min(3).max(254), password: z.string().min(1).max(1_000) })
      .meta({ id: 'SessionCreate' }),
    example: { email: 'ada@example.com', password: 'correct horse battery staple' },
    response: { status: 201, schema: sessionSchema },
    async handler(request) {
      const { body, deps } = request
      const address = subnetOf(request.clientIp)
      const email = body.email.toLowerCase()
      await limitAttempts(deps, `address ${address}`, 30)
      await limitAttempts(deps, `email ${email} from ${address}`, 10)
      // The limit over all addresses is high, so that only a botnet can lock the owner out.
      await limitAttempts(deps, `email ${email}`, 300)
      const signedIn = await signIn(deps.db.system, body.email, body.password)
      const session = signedIn && (await findSession(deps.db.system, signedIn.token))
      if (!session) throw new AppError('unauthorized', 'wrong email or password')
      request.setHeader('Set-Cookie', sessionCookie(signedIn.token, session.expires_at, isHttps(deps.config)))
      return present(session)
    },
  }),
  appRoute({
    method: 'GET',
    path: '/session',
    role: 'member',
    id: 'getSession',
    tag: 'Session',
    summary: 'Retrieve the session',
    response: { status: 200, schema: sessionSchema },
    handler: async ({ caller }) => present(sessionOf(caller)),
  }),
  appRoute({
    method: 'DELETE',
    path: '/session',
    role: 'member',
    id: 'signOut',
    tag: 'Session',
    summary: 'Sign out',
    idempotent: false,
    response: {
      status: 200,
      schema: z
        .object({ object: z.literal('session'), id: z.uuid(), deleted: z.literal(true) })
        .meta({ id: 'DeletedSession' }),
    },
    async handler(request) {
      const { deps, caller } = request
      const { id } = sessionOf(caller)
      await signOut(deps.db.system, caller.organization.id, id)
      request.setHeader('Set-Cookie', sessionCookie('', new Date(0), isHttps(deps.config)))
      return { object: 'session', id, deleted: true }
    },
  }),
]

const present = (session: Session) => ({
  object: 'session',
  id: session.id,
  expires_at: session.expires_at,
  csrf_token: session.csrf_token,
  role: session.role,
  user: { id: session.user_id, name: session.user_name, email: session.email },
  organization: { id: session.organization_id, name: session.organization_name, plan: session.plan },
})

const FIVE_MINUTES = 300

/** Counts an attempt before the password check, which is expensive. Throws rate_limited. */
async function limitAttempts(deps: AppDeps, by: string, limit: number): Promise<void> {
  // Before sign-in the organization is unknown.
  const rule = { organizationId: NIL, subject: `sign-in ${by}`, limit, period: FIVE_MINUTES }
  const { granted } = await takeFromWindow(deps.db.system, rule)
  if (granted > 0) return
  const { end } = windowAt(FIVE_MINUTES, Date.now())
  throw new AppError('rate_limited', 'too many sign-in attempts', {
    retry_after: Math.max(1, Math.ceil((end - Date.now()) / 1000)),
  })
}
