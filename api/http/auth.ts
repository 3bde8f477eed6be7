import type { IncomingMessage } from 'node:http'
import { findKeyHolders, type KeyHolder, noteKeyUse } from '../../db/access/keys.ts'
import { ORGANIZATION_DEFAULTS } from '../../db/access/organization.ts'
import { AppError } from '../../db/errors.ts'
import type { System } from '../../db/postgres/tenancy.ts'
import type { AppDeps } from '../deps.ts'
import { clientIp, ipMatches } from './client-ip.ts'
import { coalesce } from './coalesce.ts'
import type { Caller, Scope } from './scopes.ts'

/** A caller with an API key, and the limits of its organization. */
export interface KeyCaller extends Caller {
  type: 'key'
  limits: KeyHolder['limits']
}

type FindHolder = ReturnType<typeof keyLookup>

/** Finds the holder of a key. Concurrent requests share a statement, which is sent after each has come in. */
export const keyLookup = (system: System) =>
  coalesce(
    (key: string) => key,
    (keys) => findKeyHolders(system, keys),
  )

const BEARER = /^Bearer +(agx_[0-9A-Za-z]+) *$/i

/** The caller of a /v1 request, looked up for each request. Throws unauthorized without a reason. */
export async function authenticateKey(
  request: IncomingMessage,
  deps: AppDeps,
  findHolder: FindHolder,
): Promise<KeyCaller> {
  const key = BEARER.exec(request.headers.authorization ?? '')?.[1]
  const holder = key ? await findHolder(key) : undefined
  if (!holder || !isAllowedFrom(request, holder, deps))
    throw new AppError('unauthorized', 'missing or invalid API key')
  if (holder.note_use) {
    // Concurrent requests can share this object.
    holder.note_use = false
    void noteUse(deps.db.system, holder)
  }
  return {
    type: 'key',
    id: holder.id,
    name: holder.name,
    organization: {
      id: holder.organization_id,
      name: holder.organization_name,
      plan: holder.plan,
      currency: holder.settings.currency ?? ORGANIZATION_DEFAULTS.currency,
      timezone: holder.settings.timezone ?? ORGANIZATION_DEFAULTS.timezone,
    },
    scopes: new Set(holder.scopes as Scope[]),
    limits: holder.limits,
  }
}

function isAllowedFrom(request: IncomingMessage, holder: KeyHolder, deps: AppDeps): boolean {
  return (
    holder.ip_allowlist.length === 0 ||
    ipMatches(clientIp(request, deps.config.TRUSTED_PROXIES), holder.ip_allowlist)
  )
}

/** The request does not await this: a lost `last_used_at` does no harm. */
const noteUse = (system: System, holder: KeyHolder) => noteKeyUse(system, holder).catch(() => {})
