import type { Knex } from 'knex'
import { v7 as uuidv7 } from 'uuid'
import { hashSecret, newAccessToken, newRefreshToken } from '../model/access/oauth-format.ts'
import { type MemberRole, ROLE_SCOPES } from '../model/access/roles.ts'
import { allows, type Scope } from '../model/access/scopes.ts'
import { type Actor, SYSTEM } from '../model/actor.ts'
import { AppError } from '../model/errors.ts'
import type { System } from '../postgres/tenancy.ts'
import { endGrant } from './grants.ts'
import { takeFromWindow, windowAt } from './limits.ts'

/**
 * The tokens of grants, in pairs of an access and a refresh token. A code makes the first pair, a refresh token the next
 * one; each works once. Every exchange locks its grant, so that of two at the same time, on any process, one is first.
 * These run as the system role: the organization is known from the token.
 */

export const ACCESS_SECONDS = 3_600
/** A grant that is not refreshed for so long ends. A refreshed token is known for as long, to find its second use. */
const REFRESH_DAYS = 30
/**
 * Refreshes of a grant in a day: a client that refreshes without end must not fill the table. To forget the oldest pairs
 * instead would let a thief hide by refreshing often.
 */
const MAX_REFRESHES = 200
const DAY = 86_400
/**
 * A client whose answer was lost, by a crash or a broken connection, may repeat its refresh for so long, unless the
 * tokens of that answer were used.
 */
const REPEAT_SECONDS = 60

/** The tokens that a client gets. Only their hashes are stored. */
export interface IssuedTokens {
  access_token: string
  refresh_token: string
  scopes: Scope[]
}

/** Why a client gets none. `reused`: the grant was revoked. */
export type Refusal = 'unknown' | 'reused' | 'wrong_resource' | 'wrong_scope'

export type Issued = { tokens: IssuedTokens } | { refused: Refusal }

/** What a client sends with a code. `challenge`: of its verifier. */
export interface CodeExchange {
  code: string
  clientId: string
  redirectUri: string
  challenge: string
  resource: string | undefined
}

/** Exchanges a code for the first tokens. A second use of a code revokes its grant. */
export const exchangeCode = (system: System, given: CodeExchange): Promise<Issued> =>
  system.transaction(async (trx): Promise<Issued> => {
    const grant = await lockGrant(trx, 'g.code_hash = :hash', hashSecret(given.code))
    if (!grant || !isFor(grant, given)) return { refused: 'unknown' }
    if (grant.code_used_at) return revoked(trx, grant, 'code_reused')
    if (!grant.code_is_valid || grant.revoked_at) return { refused: 'unknown' }
    if (!isForResource(grant, given)) return { refused: 'wrong_resource' }
    await trx('oauth_grants')
      .where({ organization_id: grant.organization_id, id: grant.id })
      .update({ code_used_at: trx.fn.now() })
    return issue(trx, grant)
  })

/** Whoever lacks the verifier is not the client: that request neither gets tokens nor revokes the grant. */
const isFor = (grant: LockedGrant, { clientId, redirectUri, challenge }: CodeExchange) =>
  grant.client_id === clientId && grant.redirect_uri === redirectUri && grant.code_challenge === challenge

const isForResource = (grant: LockedGrant, { resource }: { resource: string | undefined }) =>
  resource === undefined || resource === grant.resource

/** What a client sends to refresh. `scopes`: for an access token with fewer. */
export interface Refresh {
  refreshToken: string
  clientId: string
  resource: string | undefined
  scopes: Scope[] | undefined
}

interface Pair {
  id: string
  refreshed_at: Date | null
  is_valid: boolean
  may_repeat: boolean
}

/**
 * Exchanges a refresh token for the next tokens. A second use revokes the grant: one of two who have it stole it. Throws
 * rate_limited.
 */
export const refreshTokens = (system: System, given: Refresh): Promise<Issued> =>
  system.transaction(async (trx): Promise<Issued> => {
    const hash = hashSecret(given.refreshToken)
    const grant = await lockGrant(
      trx,
      `(g.organization_id, g.id) =
         (select t.organization_id, t.grant_id from oauth_tokens t where t.refresh_hash = :hash)`,
      hash,
    )
    if (!grant || grant.revoked_at || grant.client_id !== given.clientId) return { refused: 'unknown' }
    // Read after the lock: another request may have refreshed it meanwhile.
    const { rows } = await trx.raw<{ rows: Pair[] }>(FIND_PAIR, [REPEAT_SECONDS, hash])
    const [pair] = rows
    // It has expired, and was deleted meanwhile.
    if (!pair) return { refused: 'unknown' }
    if (pair.refreshed_at && !pair.may_repeat) return revoked(trx, grant, 'refresh_token_reused')
    if (!pair.is_valid) return { refused: 'unknown' }
    if (!isForResource(grant, given)) return { refused: 'wrong_resource' }
    const granted = new Set(grant.scopes)
    if (given.scopes?.some((scope) => !allows(granted, scope))) return { refused: 'wrong_scope' }
    await limitRefreshes(trx, grant)
    if (pair.refreshed_at) await replaceUnused(trx, grant, pair.id)
    else await markRefreshed(trx, grant, pair.id)
    return issue(trx, grant, { previous: pair.id, scopes: given.scopes })
  })

/** A pair may be refreshed again for a while, as long as nobody has used what the first refresh made. */
const FIND_PAIR = `
  select t.id, t.refreshed_at, t.expires_at > now() as is_valid,
    t.refreshed_at > now() - make_interval(secs => ?) and exists (
      select from oauth_tokens next where next.organization_id = t.organization_id and next.grant_id = t.grant_id
        and next.previous = t.id and next.access_used_at is null and next.refreshed_at is null) as may_repeat
  from oauth_tokens t where t.refresh_hash = ?`

async function markRefreshed(trx: Knex, grant: LockedGrant, id: string): Promise<void> {
  await trx('oauth_tokens')
    .where({ organization_id: grant.organization_id, id })
    .update({
      refreshed_at: trx.fn.now(),
      expires_at: trx.raw('now() + make_interval(days => ?)', [REFRESH_DAYS]),
    })
}

/** Throws rate_limited, which leaves the refresh token as it was. */
async function limitRefreshes(trx: Knex, { organization_id, id }: LockedGrant): Promise<void> {
  const subject = `refreshes of grant ${id}`
  const rule = { organizationId: organization_id, subject, limit: MAX_REFRESHES, period: DAY }
  const { granted } = await takeFromWindow(trx, rule)
  if (granted > 0) return
  const { end } = windowAt(DAY, Date.now())
  throw new AppError('rate_limited', `the tokens were refreshed ${MAX_REFRESHES} times today`, {
    retry_after: Math.max(1, Math.ceil((end - Date.now()) / 1_000)),
    hint: 'use an access token until it expires',
  })
}

/** Ends the tokens of an answer that was lost: whoever uses them is not the client that repeats its request. */
async function replaceUnused(trx: Knex, grant: LockedGrant, previous: string): Promise<void> {
  await trx('oauth_tokens')
    .where({ organization_id: grant.organization_id, grant_id: grant.id, previous, refreshed_at: null })
    .update({ refreshed_at: trx.fn.now(), access_expires_at: trx.fn.now() })
}

/** Ends the grant of a token (RFC 7009). @returns whether there was one of this client. */
export const revokeToken = (system: System, token: string, clientId: string): Promise<boolean> =>
  system.transaction(async (trx) => {
    const grant = await lockGrant(
      trx,
      `(g.organization_id, g.id) = (select t.organization_id, t.grant_id from oauth_tokens t
         where :hash in (t.access_hash, t.refresh_hash) limit 1)`,
      hashSecret(token),
    )
    if (!grant || grant.client_id !== clientId) return false
    const actor: Actor = { type: 'user', id: grant.user_id }
    await endGrant(audited(trx, grant, actor), named(grant), { by: 'client' })
    return true
  })

interface LockedGrant {
  organization_id: string
  id: string
  user_id: string
  client_id: string
  client_name: string
  redirect_uri: string
  resource: string
  scopes: Scope[]
  code_challenge: string
  code_used_at: Date | null
  code_is_valid: boolean
  revoked_at: Date | null
  role: MemberRole
}

/** The grant for which a condition on `:hash` holds, locked until the transaction ends. */
async function lockGrant(trx: Knex, condition: string, hash: Buffer): Promise<LockedGrant | undefined> {
  const { rows } = await trx.raw<{ rows: LockedGrant[] }>(
    `select g.*, g.code_expires_at > now() as code_is_valid, m.role
     from oauth_grants g join memberships m on m.organization_id = g.organization_id and m.user_id = g.user_id
     where ${condition} for no key update of g`,
    { hash },
  )
  return rows[0]
}

/** Makes the next tokens of a grant. */
async function issue(
  trx: Knex,
  grant: LockedGrant,
  { previous, scopes = grant.scopes }: { previous?: string; scopes?: Scope[] | undefined } = {},
): Promise<Issued> {
  const { organization_id, id } = grant
  const access_token = newAccessToken()
  const refresh_token = newRefreshToken()
  const expires_at = trx.raw('now() + make_interval(days => ?)', [REFRESH_DAYS])
  await trx('oauth_tokens').insert({
    organization_id,
    id: uuidv7(),
    grant_id: id,
    previous: previous ?? null,
    scopes,
    access_hash: hashSecret(access_token),
    access_expires_at: trx.raw('now() + make_interval(secs => ?)', [ACCESS_SECONDS]),
    refresh_hash: hashSecret(refresh_token),
    expires_at,
  })
  await trx('oauth_grants').where({ organization_id, id }).update({ expires_at })
  return { tokens: { access_token, refresh_token, scopes: scopesNow(scopes, grant.role) } }
}

async function revoked(trx: Knex, grant: LockedGrant, reason: string): Promise<Issued> {
  await endGrant(audited(trx, grant, SYSTEM), named(grant), { reason })
  return { refused: 'reused' }
}

const audited = (trx: Knex, { organization_id }: LockedGrant, actor: Actor) => ({
  trx,
  organizationId: organization_id,
  actor,
})

const named = ({ id, client_name }: LockedGrant) => ({ id, name: client_name })

/** The scopes of a token that the role of its member has, too. */
export const scopesNow = (scopes: readonly Scope[], role: MemberRole): Scope[] =>
  scopes.filter((scope) => allows(ROLE_SCOPES[role], scope))
