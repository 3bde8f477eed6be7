import { ACCESS_PREFIX, hashSecret } from '../model/access/oauth-format.ts'
import type { MemberRole } from '../model/access/roles.ts'
import type { Scope } from '../model/access/scopes.ts'
import { statement } from '../postgres/statement.ts'
import type { System } from '../postgres/tenancy.ts'
import { scopesNow } from './grant-tokens.ts'
import type { Subscription } from './plans.ts'

/** The grant of a request, with its member and organization, from one look-up. */
export interface GrantHolder extends Subscription {
  /** The id of the grant. */
  id: string
  token_id: string
  resource: string
  /** Those of the token that the member's role has now. */
  scopes: Scope[]
  user_id: string
  user_name: string
  is_first_use: boolean
  /** Whether `last_used_at` is due for an update (at most once a minute). */
  note_use: boolean
  organization_id: string
  organization_name: string
  storage_full: boolean
  settings: { currency?: string; timezone?: string }
}

/**
 * The holder of an access token. Each request does this, so that a revocation, another role and a removed member hold
 * from the next request on. Undefined for a token that is unknown, expired, or of an ended grant.
 */
export async function findGrantHolder(system: System, token: string): Promise<GrantHolder | undefined> {
  if (!token.startsWith(ACCESS_PREFIX)) return undefined
  const [row] = await statement<GrantHolder & { role: MemberRole }>(system, FIND_HOLDER, [hashSecret(token)])
  if (!row) return undefined
  const { role, ...holder } = row
  return { ...holder, scopes: scopesNow(holder.scopes, role) }
}

const FIND_HOLDER = `
  select g.id, t.id as token_id, g.resource, t.scopes, m.role, g.user_id, u.name as user_name,
    t.access_used_at is null as is_first_use,
    g.last_used_at is null or g.last_used_at < now() - interval '1 minute' as note_use,
    g.organization_id, o.name as organization_name, o.plan, o.settings, o.limits, o.storage_full
  from oauth_tokens t
    join oauth_grants g on g.organization_id = t.organization_id and g.id = t.grant_id
    join memberships m on m.organization_id = g.organization_id and m.user_id = g.user_id
    join users u on u.id = g.user_id
    join organizations o on o.id = g.organization_id
  where t.access_hash = $1 and t.access_expires_at > now() and g.revoked_at is null`

/** Notes the use of a grant, and the first use of its token, after which the refresh that made it is not repeated. */
export async function noteGrantUse(system: System, holder: GrantHolder): Promise<void> {
  const { organization_id, id, token_id } = holder
  await system.raw(
    `with used as (
       update oauth_tokens set access_used_at = now()
       where organization_id = :organization_id and id = :token_id and access_used_at is null)
     update oauth_grants set last_used_at = now() where organization_id = :organization_id and id = :id`,
    { organization_id, id, token_id },
  )
}
