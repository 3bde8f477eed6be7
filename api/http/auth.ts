import type { IncomingMessage } from 'node:http'
import { type KeyHolder, noteKeyUse } from '../../db/access/keys.ts'
import { ORGANIZATION_DEFAULTS } from '../../db/access/organization.ts'
import { AppError } from '../../db/errors.ts'
import type { System } from '../../db/postgres/tenancy.ts'
import type { AppDeps } from '../deps.ts'
import { clientIp, ipMatches } from './client-ip.ts'
import type { KeyLookups } from './key-lookups.ts'
import type { Caller, Scope } from './scopes.ts'

/** A caller by key, with what its organization and plan allow. */
export interface KeyCaller extends Caller {
  type: 'key'
  limits: KeyHolder['limits']
}

const BEARER = /^Bearer +(agx_[0-9A-Za-z]+) *$/i

/** Who calls /v1: looked up at every request. Throws unauthorized; the reason is nobody's business. */
export async function authenticateKey(
  request: IncomingMessage,
  deps: AppDeps,
  lookups: KeyLookups,
): Promise<KeyCaller> {
  const key = BEARER.exec(request.headers.authorization ?? '')?.[1]
  const holder = key ? await lookups.find(key) : undefined
  if (!holder || !isAllowedFrom(request, holder, deps))
    throw new AppError('unauthorized', 'missing or invalid API key')
  if (holder.note_use) {
    // Others may hold the same one.
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

/** Not awaited by the request: a use that is not recorded does no harm. */
const noteUse = (system: System, holder: KeyHolder) => noteKeyUse(system, holder).catch(() => {})
