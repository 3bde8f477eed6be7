import type { Knex } from 'knex'
import { v7 as uuidv7 } from 'uuid'
import { type IdPage, pageById } from '../lists/id-list.ts'
import { hashSecret, newCode } from '../model/access/oauth-format.ts'
import type { Actor } from '../model/actor.ts'
import { conflict, notFound } from '../model/errors.ts'
import type { Page } from '../model/lists/page.ts'
import type { Tenant } from '../postgres/tenancy.ts'
import { type Audited, recordChange } from './audit-log.ts'

/**
 * Grants: what a member lets a client of OAuth do, in one organization. A grant begins with an authorization code, which
 * the client exchanges for tokens (`grant-tokens.ts`), and ends when it is revoked, is not refreshed for long, or the
 * member leaves. Its scopes never exceed those of the member's role at the time of a request.
 */

const CODE_SECONDS = 60
/** Grants of a member at the same time. */
const MAX_GRANTS = 100

/** A grant as the settings show it, beside the keys. */
export interface Grant {
  id: string
  object: 'grant'
  client_id: string
  /** What the client called itself. */
  client_name: string
  user: { id: string; name: string }
  scopes: string[]
  last_used_at: Date | null
  revoked_at: Date | null
  expires_at: Date
  created_at: Date
}

/** What a member agreed to. */
export interface Consent {
  clientId: string
  clientName: string
  redirectUri: string
  /** The challenge of PKCE (S256). */
  challenge: string
  scopes: readonly string[]
  resource: string
}

/** Creates a grant of the member who acts. The code is returned only here. Throws conflict for too many grants. */
export async function createGrant(
  tx: Tenant,
  userId: string,
  consent: Consent,
): Promise<{ id: string; code: string }> {
  const { trx, organizationId: organization_id } = tx
  const live = await trx('oauth_grants')
    .where({ organization_id, user_id: userId, revoked_at: null })
    .whereRaw('expires_at > now()')
    .count<{ count: number }[]>('* as count')
  if (Number(live[0]!.count) >= MAX_GRANTS)
    throw conflict(`you have connected ${MAX_GRANTS} assistants`, {
      hint: 'disconnect one that you do not use',
    })
  const code = newCode()
  const id = uuidv7()
  const codeEnds = trx.raw('now() + make_interval(secs => ?)', [CODE_SECONDS])
  await trx('oauth_grants').insert({
    organization_id,
    id,
    user_id: userId,
    client_id: consent.clientId,
    client_name: consent.clientName,
    scopes: consent.scopes,
    resource: consent.resource,
    code_hash: hashSecret(code),
    code_challenge: consent.challenge,
    redirect_uri: consent.redirectUri,
    code_expires_at: codeEnds,
    expires_at: codeEnds,
  })
  await recordChange(tx, 'grant.created', {
    id,
    name: consent.clientName,
    details: { client_id: consent.clientId, scopes: consent.scopes },
  })
  return { id, code }
}

/**
 * Grants, newest first, also ended ones; those whose code was never exchanged are left out. `userId`: of this member
 * only. Throws `invalid_request` for a cursor of another list.
 */
export async function listGrants(tx: Tenant, userId: string | undefined, page: IdPage): Promise<Page<Grant>> {
  const rows = tx.trx.from(grants(tx, userId).as('grants')).select<Row[]>()
  const found = await pageById<Row>(tx, rows, page, { of: ['grants', userId] })
  return { ...found, data: found.data.map(toGrant) }
}

/** Ends a grant with all its tokens, immediately. Idempotent. `userId`: only one of this member. Throws not_found. */
export async function revokeGrant(tx: Tenant, id: string, userId: string | undefined): Promise<Grant> {
  const row: Row | undefined = await grants(tx, userId).where('g.id', id).first()
  if (!row) throw notFound('grant')
  if (row.revoked_at) return toGrant(row)
  await endGrant(tx, { id, name: row.client_name })
  const ended: Row | undefined = await grants(tx, userId).where('g.id', id).first()
  return toGrant(ended ?? row)
}

/** Ends a grant, and records why. Tokens of an ended grant are not accepted. */
export async function endGrant(
  tx: Audited,
  { id, name }: { id: string; name: string },
  details: Record<string, unknown> = {},
): Promise<void> {
  const ended = await tx
    .trx('oauth_grants')
    .where({ organization_id: tx.organizationId, id, revoked_at: null })
    .update(endedNow(tx.trx))
  if (ended > 0) await recordChange(tx, 'grant.revoked', { id, name, details })
}

/** Ends all grants of a user, in all organizations, and records why. */
export async function endGrantsOf(
  system: Knex,
  userId: string,
  actor: Actor,
  details: Record<string, unknown>,
): Promise<void> {
  const ended = await system('oauth_grants')
    .where({ user_id: userId, revoked_at: null })
    .whereRaw('expires_at > now()')
    .update(endedNow(system))
    .returning<{ organization_id: string; id: string; client_name: string }[]>([
      'organization_id',
      'id',
      'client_name',
    ])
  for (const { organization_id: organizationId, id, client_name: name } of ended)
    await recordChange({ trx: system, organizationId, actor }, 'grant.revoked', { id, name, details })
}

const endedNow = (trx: Knex) => ({
  revoked_at: trx.fn.now(),
  expires_at: trx.raw('least(expires_at, now())'),
})

type Row = Omit<Grant, 'object' | 'user'> & { user_id: string; user_name: string }

const grants = (tx: Tenant, userId: string | undefined) => {
  const rows = tx
    .trx('oauth_grants as g')
    .join('users as u', 'u.id', 'g.user_id')
    .where('g.organization_id', tx.organizationId)
    .whereNotNull('g.code_used_at')
    .select('g.id', 'g.client_id', 'g.client_name', 'g.user_id', 'u.name as user_name', 'g.scopes')
    .select('g.last_used_at', 'g.revoked_at', 'g.expires_at', 'g.created_at')
  return userId === undefined ? rows : rows.where('g.user_id', userId)
}

const toGrant = ({ id, client_id, client_name, user_id, user_name, ...row }: Row): Grant => ({
  object: 'grant',
  id,
  client_id,
  client_name,
  user: { id: user_id, name: user_name },
  scopes: row.scopes,
  last_used_at: row.last_used_at,
  revoked_at: row.revoked_at,
  expires_at: row.expires_at,
  created_at: row.created_at,
})
