import { SCOPES, type Scope } from '../http/scopes.ts'
import { OAuthError } from './errors.ts'

/** Asked for by clients that know other servers: a refresh token, which every client gets here. */
const OFFLINE = 'offline_access'

const partsOf = (text: string) =>
  [...new Set(text.split(' '))].filter((part) => part !== '' && part !== OFFLINE)
const isScope = (text: string): text is Scope => SCOPES.some((known) => known === text)

/** The scopes of a parameter. Throws OAuthError if one is unknown. */
export function knownScopes(text: string): Scope[] {
  const parts = partsOf(text)
  const unknown = parts.find((part) => !isScope(part))
  if (unknown !== undefined)
    throw new OAuthError('invalid_scope', `there is no scope ${unknown.slice(0, 50)}: see scopes_supported`)
  return parts as Scope[]
}

/** The scopes that a client asks for, all if it names none. Unknown ones have no effect: they may be other servers'. */
export function askedScopes(text: string | undefined): Scope[] {
  const parts = partsOf(text ?? '')
  return parts.length === 0 ? SCOPES : parts.filter(isScope)
}
