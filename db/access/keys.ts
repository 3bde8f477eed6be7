import { v7 as uuidv7 } from 'uuid'
import { type IdPage, pageById } from '../lists/id-list.ts'
import { generateKey, hashKey, isKey, visiblePrefix } from '../model/access/key-format.ts'
import { AppError, notFound } from '../model/errors.ts'
import type { Page } from '../model/lists/page.ts'
import { statement } from '../postgres/statement.ts'
import type { System, Tenant } from '../postgres/tenancy.ts'
import type { Send } from '../postgres/transaction.ts'
import { fieldsOf, recorded } from './audit-log.ts'
import type { Subscription } from './plans.ts'

/** A key as the settings show it. Only `KeyWithSecret` contains the secret. */
export interface Key {
  id: string
  object: 'key'
  name: string
  /** The first characters of the secret, to identify the key. */
  prefix: string
  scopes: string[]
  ip_allowlist: string[]
  expires_at: Date | null
  revoked_at: Date | null
  last_used_at: Date | null
  created_at: Date
}

export interface KeyWithSecret extends Key {
  key: string
}

const COLUMNS = [
  'id',
  'name',
  'prefix',
  'scopes',
  'ip_allowlist',
  'expires_at',
  'revoked_at',
  'last_used_at',
  'created_at',
]

/** Creates a key; its secret is returned only here. `secret`, if set, must have the form of a key. */
export async function createKey(
  tx: Tenant,
  values: {
    name: string
    scopes: readonly string[]
    expires_at?: Date | null
    ip_allowlist?: string[]
    secret?: string
  },
): Promise<KeyWithSecret> {
  const key = values.secret ?? generateKey()
  if (!isKey(key))
    throw new AppError('invalid_request', 'not an API key: agx_, 40 letters or digits, and a checksum of 6')
  const [row] = await tx
    .trx('api_keys')
    .insert({
      organization_id: tx.organizationId,
      id: uuidv7(),
      name: values.name,
      prefix: visiblePrefix(key),
      hash: hashKey(key),
      scopes: values.scopes,
      ip_allowlist: values.ip_allowlist ?? [],
      expires_at: values.expires_at ?? null,
      created_by: tx.actor.type === 'user' ? tx.actor.id : null,
    })
    .returning(COLUMNS)
  return { ...toKey(await recorded(tx, 'key.created', row, { scopes: values.scopes })), key }
}

/** Keys, newest first, including revoked ones. */
export async function listKeys(tx: Tenant, page: IdPage): Promise<Page<Key>> {
  const rows = tx.trx('api_keys').where({ organization_id: tx.organizationId }).select(COLUMNS)
  const found = await pageById<Parameters<typeof toKey>[0]>(tx, rows, page, { of: 'keys' })
  return { ...found, data: found.data.map(toKey) }
}

/** Throws not_found. */
export async function getKey(tx: Tenant, id: string): Promise<Key> {
  const row = await tx.trx('api_keys').where({ organization_id: tx.organizationId, id }).first(COLUMNS)
  if (!row) throw notFound('key')
  return toKey(row)
}

/** Updates a key; effective from its next request. Throws not_found. */
export async function updateKey(
  tx: Tenant,
  id: string,
  patch: {
    name?: string | undefined
    scopes?: readonly string[] | undefined
    ip_allowlist?: string[] | undefined
    expires_at?: Date | null | undefined
  },
): Promise<Key> {
  if (Object.values(patch).every((value) => value === undefined)) return getKey(tx, id)
  const [row] = await tx
    .trx('api_keys')
    .where({ organization_id: tx.organizationId, id })
    .update(patch)
    .returning(COLUMNS)
  if (!row) throw notFound('key')
  return toKey(await recorded(tx, 'key.updated', row, fieldsOf(patch)))
}

/**
 * Gives the key a new secret. The replaced secret expires after `overlapHours` (0 to 24; 0: immediately). A still older
 * secret expires at once. Throws not_found, or conflict if the key is revoked.
 */
export async function rotateKey(tx: Tenant, id: string, overlapHours: number): Promise<KeyWithSecret> {
  const key = generateKey()
  const [row] = await tx
    .trx('api_keys')
    .where({ organization_id: tx.organizationId, id, revoked_at: null })
    .update({
      previous_hash: overlapHours > 0 ? tx.trx.ref('hash') : null,
      previous_expires_at:
        overlapHours > 0 ? tx.trx.raw('now() + make_interval(hours => ?)', [overlapHours]) : null,
      hash: hashKey(key),
      prefix: visiblePrefix(key),
    })
    .returning(COLUMNS)
  if (row) return { ...toKey(await recorded(tx, 'key.rotated', row, { overlap_hours: overlapHours })), key }
  await getKey(tx, id)
  throw new AppError('conflict', 'a revoked key cannot be rotated: create a new one')
}

/** Revokes a key with all its secrets, immediately. Idempotent. Throws not_found. */
export async function revokeKey(tx: Tenant, id: string): Promise<Key> {
  const [row] = await tx
    .trx('api_keys')
    .where({ organization_id: tx.organizationId, id })
    .update({
      revoked_at: tx.trx.raw('coalesce(revoked_at, now())'),
      previous_hash: null,
      previous_expires_at: null,
    })
    .returning(COLUMNS)
  if (!row) throw notFound('key')
  return toKey(await recorded(tx, 'key.revoked', row))
}

/** The key of a request and its organization, from one look-up. */
export interface KeyHolder extends Subscription {
  id: string
  name: string
  scopes: string[]
  ip_allowlist: string[]
  /** Whether `last_used_at` is due for an update (at most once a minute). */
  note_use: boolean
  organization_id: string
  organization_name: string
  storage_full: boolean
  settings: { currency?: string; timezone?: string }
  /** Changes with each change of the key's or the organization's row. */
  stamp: string
}

/**
 * Finds the holders of keys by hash. Each request does this, or confirms its last result by `isSameHolder`: revocation
 * is immediate.
 * @returns the holders by key, without invalid, unknown, revoked and expired keys.
 */
export async function findKeyHolders(system: System, keys: string[]): Promise<Map<string, KeyHolder>> {
  const byHash = new Map(keys.filter(isKey).map((key) => [hashKey(key).toString('hex'), key]))
  if (byHash.size === 0) return new Map()
  const hashes = [...byHash.keys()].map((hash) => Buffer.from(hash, 'hex'))
  const rows = await statement<KeyHolder & Hashes>(system, FIND_HOLDERS, [hashes])
  const holders = new Map<string, KeyHolder>()
  for (const { current, previous, ...holder } of rows)
    for (const hash of [current, previous]) {
      const key = hash && byHash.get(hash.toString('hex'))
      if (key) holders.set(key, holder)
    }
  return holders
}

interface Hashes {
  current: Buffer
  /** Null after the end of the overlap. */
  previous: Buffer | null
}

/** The ids of the transactions that wrote the two rows. */
const STAMP = "k.xmin::text || ' ' || o.xmin::text"
const IS_VALID = 'k.revoked_at is null and (k.expires_at is null or k.expires_at > now())'

const FIND_HOLDERS = `
  select k.hash as current, case when k.previous_expires_at > now() then k.previous_hash end as previous,
    k.id, k.name, k.scopes, k.ip_allowlist, k.organization_id,
    k.last_used_at is null or k.last_used_at < now() - interval '1 minute' as note_use,
    o.name as organization_name, o.plan, o.settings, o.limits, o.storage_full, ${STAMP} as stamp
  from api_keys k join organizations o on o.id = k.organization_id
  where (k.hash = any($1::bytea[]) or k.previous_hash = any($1::bytea[]))
    and ${IS_VALID}`

/**
 * Whether a look-up would find the same holder again. The statement is sent together with others of a transaction of
 * the organization. Also false if the use of the key is due to be noted.
 */
export async function isSameHolder(
  send: Send,
  hash: Buffer,
  { organization_id, id, stamp }: KeyHolder,
): Promise<boolean> {
  const { rows } = await send({ text: FIND_STAMP, values: [organization_id, id, hash] })
  return rows[0]?.stamp === stamp
}

const FIND_STAMP = `
  select ${STAMP} as stamp
  from api_keys k join organizations o on o.id = k.organization_id
  where k.organization_id = $1 and k.id = $2
    and (k.hash = $3 or (k.previous_hash = $3 and k.previous_expires_at > now())) and ${IS_VALID}
    and k.last_used_at > now() - interval '1 minute'`

export async function noteKeyUse(system: System, holder: KeyHolder): Promise<void> {
  await system.raw(
    `update api_keys set last_used_at = now() where organization_id = ? and id = ?
     and (last_used_at is null or last_used_at < now() - interval '1 minute')`,
    [holder.organization_id, holder.id],
  )
}

const toKey = (row: Omit<Key, 'object'>): Key => ({ object: 'key', ...row })
