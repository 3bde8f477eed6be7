import type Koa from 'koa'
import { findGrantHolder, type GrantHolder, noteGrantUse } from '../../db/access/grant-holders.ts'
import { AppError } from '../../db/model/errors.ts'
import type { AppDeps } from '../deps.ts'
import { type Caller, organizationOf } from '../http/scopes.ts'
import { issuerOf, resourceOf } from './issuer.ts'

/** An assistant that acts for a member: what it changes, the member has changed. */
export interface GrantCaller extends Caller {
  type: 'user'
  grantId: string
  limits: GrantHolder['limits']
}

/** The caller with an access token, looked up for each request. Throws unauthorized, also for another service's token. */
export async function authenticateGrant(
  ctx: Koa.Context,
  deps: AppDeps,
  token: string,
): Promise<GrantCaller> {
  const { system } = deps.db
  const holder = await findGrantHolder(system, token)
  const issuer = issuerOf(deps, ctx.req.headers.host)
  if (!holder || !issuer || holder.resource !== resourceOf(issuer)) throw refused()
  // The first use is awaited: the refresh that made the token must not be repeated after it.
  if (holder.is_first_use) await noteGrantUse(system, holder)
  else if (holder.note_use) noteGrantUse(system, holder).catch(() => {})
  return {
    type: 'user',
    id: holder.user_id,
    name: holder.user_name,
    grantId: holder.id,
    organization: organizationOf(holder),
    storageFull: holder.storage_full,
    scopes: new Set(holder.scopes),
    limits: holder.limits,
  }
}

const refused = () =>
  new AppError('unauthorized', 'the access token is not accepted', {
    hint: 'it is unknown, expired, revoked, or for another address: refresh it, or connect again',
  })
