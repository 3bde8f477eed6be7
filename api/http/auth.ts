import type { IncomingMessage } from 'node:http'
import { LRUCache } from 'lru-cache'
import { findKeyHolders, isSameHolder, type KeyHolder, noteKeyUse } from '../../db/access/keys.ts'
import { flawOfKey, hashKey } from '../../db/model/access/key-format.ts'
import { ACCESS_PREFIX } from '../../db/model/access/oauth-format.ts'
import { AppError } from '../../db/model/errors.ts'
import type { System } from '../../db/postgres/tenancy.ts'
import type { AppDeps } from '../deps.ts'
import { clientIp, ipMatches } from './client-ip.ts'
import { coalesce } from './coalesce.ts'
import type { Presumed } from './presumed.ts'
import { type Caller, organizationOf, type Scope } from './scopes.ts'

/** A caller with an API key, with the limits of its organization. */
export interface KeyCaller extends Caller {
  type: 'key'
  limits: KeyHolder['limits']
}

/** The result of a key look-up. */
interface FoundKey {
  caller: KeyCaller
  holder: KeyHolder
}

/** Finds the holder of a key. Concurrent requests share one statement, which is sent once all of them have arrived. */
export const keyLookup = (system: System) =>
  coalesce(
    (key: string) => key,
    (keys) => findKeyHolders(system, keys),
  )

const BEARER = /^Bearer +(\S+) *$/i
const KEY_IN_QUERY = /[?&][^=&]*=agx_/
const MAX_FOUND = 10_000

/** Authenticates the requests of /v1 by their API keys. */
export class KeyAuthentication {
  private readonly deps: AppDeps
  private readonly findHolder: ReturnType<typeof keyLookup>
  /** Keyed by the hashes of the keys, so that no key stays in memory. */
  private readonly lastFound = new LRUCache<string, FoundKey>({ max: MAX_FOUND })

  constructor(deps: AppDeps) {
    this.deps = deps
    this.findHolder = keyLookup(deps.db.system)
  }

  /**
   * The caller of a request, looked up for each request. Throws unauthorized. Its hint depends only on the form of the
   * credential: unknown, revoked, expired and not allowed from this address are indistinguishable.
   */
  async authenticate(request: IncomingMessage): Promise<KeyCaller> {
    const key = bearerOf(request)
    const flaw = key === undefined ? unreadable(request) : (flawOfToken(key) ?? flawOfKey(key))
    if (key === undefined || flaw) throw unauthorized(flaw)
    const holder = await this.findHolder(key)
    const hash = hashKey(key).toString('hex')
    if (!holder) this.lastFound.delete(hash)
    if (!holder || !isAllowedFrom(request, holder, this.deps)) throw unauthorized(NOT_ACCEPTED)
    if (holder.note_use) {
      // Concurrent requests can share this object.
      holder.note_use = false
      void noteUse(this.deps.db.system, holder)
    }
    const caller = callerOf(holder)
    this.lastFound.set(hash, { caller, holder })
    return caller
  }

  /** The caller as of the key's last look-up, if that look-up would also authenticate a request from this address. */
  presume(request: IncomingMessage): Presumed | undefined {
    const key = bearerOf(request)
    const hash = key && hashKey(key)
    const found = hash && this.lastFound.get(hash.toString('hex'))
    if (!found || !isAllowedFrom(request, found.holder, this.deps)) return undefined
    const { caller, holder } = found
    return { caller, isConfirmed: (send) => isSameHolder(send, hash, holder) }
  }
}

/** The credential of the header `Authorization: Bearer …`. */
export const bearerOf = ({ headers }: IncomingMessage): string | undefined =>
  BEARER.exec(headers.authorization ?? '')?.[1]

const callerOf = (holder: KeyHolder): KeyCaller => ({
  type: 'key',
  id: holder.id,
  name: holder.name,
  organization: organizationOf(holder),
  storageFull: holder.storage_full,
  scopes: new Set(holder.scopes as Scope[]),
  limits: holder.limits,
})

const NOT_ACCEPTED =
  'the key is unknown, expired, revoked, or not allowed from this address: an admin finds it in the list of keys'

const unauthorized = (hint: string | undefined) =>
  new AppError('unauthorized', 'missing or invalid API key', hint ? { hint } : {})

/** The tokens of OAuth are for /mcp, where they are accepted before. */
const flawOfToken = (key: string) =>
  key.startsWith(ACCESS_PREFIX)
    ? 'an access token of OAuth is accepted at /mcp only: send an API key'
    : undefined

/** The hint for a request without a readable key. */
function unreadable({ headers, url = '' }: IncomingMessage): string {
  const wanted = 'send the header `Authorization: Bearer <API key>`'
  if (KEY_IN_QUERY.test(url))
    return `${wanted}: a key in the URL is not read, and is exposed to logs; rotate it`
  if (headers.authorization === undefined) return wanted
  return `${wanted}: the scheme, spaces, and the key without quotes or other characters`
}

function isAllowedFrom(request: IncomingMessage, holder: KeyHolder, deps: AppDeps): boolean {
  return (
    holder.ip_allowlist.length === 0 ||
    ipMatches(clientIp(request, deps.config.TRUSTED_PROXIES), holder.ip_allowlist)
  )
}

/** Not awaited by the request: a lost `last_used_at` does no harm. */
const noteUse = (system: System, holder: KeyHolder) => noteKeyUse(system, holder).catch(() => {})
