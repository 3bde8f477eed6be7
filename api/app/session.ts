import { z } from 'zod'
import {
  endSession,
  findSession,
  type OwnOrganization,
  organizationsOf,
  type Session,
  type SignedIn,
  switchOrganization,
} from '../../db/access/sessions.ts'
import { signIn } from '../../db/access/users.ts'
import { MEMBER_ROLES } from '../../db/model/access/roles.ts'
import { AppError } from '../../db/model/errors.ts'
import { isHttps } from '../config.ts'
import { deletion } from '../http/deletion.ts'
import { type AppRoute, appRoute, type RouteRequest } from '../http/route.ts'
import { sessionCookie, sessionToken } from './cookie.ts'
import { limitAttempts } from './limit-attempts.ts'
import { sessionOf } from './session-caller.ts'

export const sessionSchema = z
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
    organizations: z
      .array(
        z
          .object({ id: z.uuid(), name: z.string(), role: z.enum(MEMBER_ROLES) })
          .meta({ id: 'OwnOrganization' }),
      )
      .meta({ description: 'All organizations of the user.' }),
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
    description:
      'Sets the session cookie. Ends the session of a cookie in the request. Attempts are limited per IP address and per email.',
    idempotent: false,
    body: z
      .strictObject({ email: z.string().min(3).max(254), password: z.string().min(1).max(1_000) })
      .meta({ id: 'SessionCreate' }),
    example: { email: 'ada@example.com', password: 'correct horse battery staple' },
    response: { status: 201, schema: sessionSchema },
    async handler(request) {
      const { body, deps } = request
      await limitAttempts(deps, request.clientIp, body.email)
      const signedIn = await signIn(deps.db.system, body, clientOf(request), replacedSession(request))
      if (!signedIn) throw new AppError('unauthorized', 'wrong email or password')
      return answerSession(request, signedIn)
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
    async handler({ caller, deps }) {
      const session = sessionOf(caller)
      return present(session, await organizationsOf(deps.db.system, session.user_id))
    },
  }),
  appRoute({
    method: 'DELETE',
    path: '/session',
    role: 'member',
    id: 'signOut',
    tag: 'Session',
    summary: 'Sign out',
    idempotent: false,
    response: deletion('session'),
    async handler(request) {
      const { deps, caller } = request
      const { id, user_id } = sessionOf(caller)
      await endSession(deps.db.system, user_id, id)
      request.setHeader('Set-Cookie', sessionCookie('', new Date(0), isHttps(deps.config)))
      return { object: 'session', id, deleted: true }
    },
  }),
  appRoute({
    method: 'PUT',
    path: '/session/organization',
    role: 'member',
    id: 'switchOrganization',
    tag: 'Session',
    summary: 'Switch to another organization',
    description:
      'Continues the session in another organization of the user, with a new cookie and a new CSRF token.',
    idempotent: false,
    body: z.strictObject({ organization_id: z.uuid() }).meta({ id: 'OrganizationSwitch' }),
    example: { organization_id: '01890a5d-ac96-774b-bcce-b302099a8057' },
    response: { status: 200, schema: sessionSchema },
    async handler(request) {
      const { body, deps, caller } = request
      const session = sessionOf(caller)
      return answerSession(request, await switchOrganization(deps.db.system, session, body.organization_id))
    },
  }),
]

/** Sets the cookie of a new session and responds with the session. */
export async function answerSession(request: RouteRequest, { token, expires_at }: SignedIn) {
  const { deps } = request
  const session = await findSession(deps.db.system, token)
  if (!session) throw new AppError('unauthorized', 'the session has ended')
  request.setHeader('Set-Cookie', sessionCookie(token, expires_at, isHttps(deps.config)))
  return present(session, await organizationsOf(deps.db.system, session.user_id))
}

/** The browser data that a session records. */
export const clientOf = ({ clientIp, headers }: RouteRequest) => ({
  ip: clientIp,
  userAgent: headers['user-agent'] ?? null,
})

/** The token of the session that a sign-in replaces. */
export const replacedSession = ({ headers, deps }: RouteRequest) =>
  sessionToken(headers.cookie, isHttps(deps.config))

const present = (session: Session, organizations: OwnOrganization[]) => ({
  object: 'session',
  id: session.id,
  expires_at: session.expires_at,
  csrf_token: session.csrf_token,
  role: session.role,
  user: { id: session.user_id, name: session.user_name, email: session.email },
  organization: { id: session.organization_id, name: session.organization_name, plan: session.plan },
  organizations,
})
