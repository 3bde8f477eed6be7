import { z } from 'zod'
import { endSession, type ListedSession, listSessions } from '../../db/access/sessions.ts'
import { isHttps } from '../config.ts'
import { deletion } from '../http/deletion.ts'
import { listEnvelope, offsetOf, pageControls, presentList } from '../http/list-query.ts'
import { type AppRoute, appRoute } from '../http/route.ts'
import { sessionCookie } from './cookie.ts'
import { sessionOf } from './session-caller.ts'

const listedSession = z
  .object({
    object: z.literal('user_session'),
    id: z.uuid(),
    current: z.boolean().meta({ description: 'Whether it is the session of this request.' }),
    organization: z.object({ id: z.uuid(), name: z.string() }),
    ip: z.string().nullable().meta({ description: 'The IP address of the sign-in.' }),
    user_agent: z.string().nullable(),
    created_at: z.iso.datetime(),
    expires_at: z.iso.datetime(),
  })
  .meta({ id: 'UserSession' })

/** The user's own sessions, in all organizations. */
export const sessionsRoutes: AppRoute[] = [
  appRoute({
    method: 'GET',
    path: '/sessions',
    role: 'member',
    id: 'listSessions',
    tag: 'Session',
    summary: 'List your sessions',
    description: 'Newest first, in all organizations of the user.',
    query: z.strictObject(pageControls),
    response: { status: 200, schema: listEnvelope(listedSession) },
    async handler({ query, caller, deps }) {
      const session = sessionOf(caller)
      const page = { limit: query.limit, cursor: query.cursor, offset: offsetOf(query) }
      const found = await listSessions(deps.db.system, session.user_id, page)
      return presentList({ ...found, data: found.data.map((one) => present(one, session.id)) })
    },
  }),
  appRoute({
    method: 'DELETE',
    path: '/sessions/{session_id}',
    role: 'member',
    id: 'endSession',
    tag: 'Session',
    summary: 'End a session',
    description: 'Ends one of your sessions at once.',
    params: z.object({ session_id: z.uuid() }),
    idempotent: false,
    response: deletion('user_session'),
    async handler(request) {
      const { params, caller, deps } = request
      const { id, user_id } = sessionOf(caller)
      await endSession(deps.db.system, user_id, params.session_id)
      if (params.session_id === id)
        request.setHeader('Set-Cookie', sessionCookie('', new Date(0), isHttps(deps.config)))
      return { object: 'user_session', id: params.session_id, deleted: true }
    },
  }),
]

const present = (
  { organization_id, organization_name, id, ...session }: ListedSession,
  currentId: string,
) => ({
  object: 'user_session',
  id,
  current: id === currentId,
  organization: { id: organization_id, name: organization_name },
  ...session,
})
