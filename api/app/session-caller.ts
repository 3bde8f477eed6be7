import type { Session } from '../../db/access/sessions.ts'
import { ROLE_SCOPES } from '../../db/model/access/roles.ts'
import { type Caller, organizationOf } from '../http/scopes.ts'

/** A caller with a session. */
export interface SessionCaller extends Caller {
  type: 'user'
  session: Session
  limits: Session['limits']
}

export function toCaller(session: Session): SessionCaller {
  return {
    type: 'user',
    id: session.user_id,
    name: session.user_name,
    organization: organizationOf(session),
    storageFull: session.storage_full,
    scopes: ROLE_SCOPES[session.role],
    session,
    limits: session.limits,
  }
}

export const isSession = (caller: Caller | undefined): caller is SessionCaller => caller?.type === 'user'

/** The session of a request to a route that is not public. */
export function sessionOf(caller: Caller): Session {
  if (!isSession(caller)) throw new Error('this route requires a session')
  return caller.session
}
