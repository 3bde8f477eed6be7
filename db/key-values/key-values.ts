import { KEY_VALUES } from '../../workflows/shared/limits.ts'
import { AppError, conflict } from '../model/errors.ts'
import type { Tenant } from '../postgres/tenancy.ts'

/** Values of the organization by key. An expired key is absent. */
export interface StoredValue {
  key: string
  value: unknown
  expires_at: Date | null
}

const LIVE = '(key_values.expires_at is null or key_values.expires_at > now())'
const EXPIRY = 'now() + make_interval(secs => cast(:seconds as double precision))'
/** xmax of a new row is 0; PostgreSQL sets it when it updates a row. */
const RETURNED = 'returning key, value, expires_at, xmax = 0 as created'

type Written = StoredValue & { created: boolean }

export async function getValue(tx: Tenant, key: string): Promise<StoredValue | undefined> {
  const { rows } = await tx.trx.raw<{ rows: StoredValue[] }>(
    `select key, value, expires_at from key_values where organization_id = ? and key = ? and ${LIVE}`,
    [tx.organizationId, key],
  )
  return rows[0]
}

/**
 * Writes a value. With `onlyIfAbsent` an existing value stays: only one of several concurrent transactions writes.
 * @param seconds until it expires; null: never. @returns the stored value. Throws `conflict` above `KEY_VALUES.count`.
 */
export async function setValue(
  tx: Tenant,
  key: string,
  value: unknown,
  { seconds, onlyIfAbsent }: { seconds: number | null; onlyIfAbsent: boolean },
): Promise<StoredValue & { stored: boolean }> {
  const { rows } = await tx.trx.raw<{ rows: Written[] }>(
    `insert into key_values (organization_id, key, value, expires_at)
     values (:organizationId, :key, cast(:value as jsonb), ${EXPIRY})
     on conflict (organization_id, key) do update
       set value = excluded.value, expires_at = excluded.expires_at, updated_at = now()
     ${onlyIfAbsent ? `where not ${LIVE}` : ''} ${RETURNED}`,
    { organizationId: tx.organizationId, key, value: JSON.stringify(value), seconds },
  )
  const [row] = rows
  if (row) return { ...(await counted(tx, row)), stored: true }
  const found = await getValue(tx, key)
  // It was deleted or has expired since the previous statement.
  return found ? { ...found, stored: false } : setValue(tx, key, value, { seconds, onlyIfAbsent })
}

/** The value of a key, with its row locked until the transaction ends; an absent key is created with `initial`. */
export async function lockValue(tx: Tenant, key: string, initial: unknown): Promise<unknown> {
  const { rows } = await tx.trx.raw<{ rows: Written[] }>(
    `insert into key_values (organization_id, key, value) values (:organizationId, :key, cast(:initial as jsonb))
     on conflict (organization_id, key) do update set
       value = case when ${LIVE} then key_values.value else excluded.value end,
       expires_at = case when ${LIVE} then key_values.expires_at end ${RETURNED}`,
    { organizationId: tx.organizationId, key, initial: JSON.stringify(initial) },
  )
  return (await counted(tx, rows[0]!)).value
}

/**
 * Adds to a number, which starts at 0. Concurrent transactions are serialised by its row lock.
 * @param seconds until a new number expires; an existing one keeps its expiry. Throws `invalid_request` for a value
 * that is not a number, or would be too large.
 */
export async function incrementValue(
  tx: Tenant,
  key: string,
  by: number,
  seconds: number | null,
): Promise<StoredValue> {
  const { rows } = await tx.trx.raw<{ rows: Written[] }>(
    `insert into key_values (organization_id, key, value, expires_at)
     values (:organizationId, :key, to_jsonb(cast(:by as numeric)), ${EXPIRY})
     on conflict (organization_id, key) do update set
       value = case when ${LIVE} then to_jsonb(cast(key_values.value as numeric) + cast(:by as numeric))
         else excluded.value end,
       expires_at = case when ${LIVE} then key_values.expires_at else excluded.expires_at end,
       updated_at = now()
     where not ${LIVE} or case jsonb_typeof(key_values.value) when 'number'
       then abs(cast(key_values.value as numeric) + cast(:by as numeric)) <= ${KEY_VALUES.number} else false end
     ${RETURNED}`,
    { organizationId: tx.organizationId, key, by: String(by), seconds },
  )
  const [row] = rows
  if (row) return counted(tx, row)
  throw new AppError(
    'invalid_request',
    `${key} cannot be incremented: its value is no number, or would be beyond ${KEY_VALUES.number}`,
  )
}

/** @returns whether the key had a value. */
export async function deleteValue(tx: Tenant, key: string): Promise<boolean> {
  const { rows } = await tx.trx.raw<{ rows: { live: boolean }[] }>(
    `delete from key_values where organization_id = ? and key = ? returning ${LIVE} as live`,
    [tx.organizationId, key],
  )
  return rows[0]?.live ?? false
}

/** The values whose keys have the given prefix, sorted by key. */
export async function listValues(
  tx: Tenant,
  prefix: string,
  limit: number,
): Promise<{ data: StoredValue[]; has_more: boolean }> {
  const { rows } = await tx.trx.raw<{ rows: StoredValue[] }>(
    `select key, value, expires_at from key_values
     where organization_id = ? and key >= ? and starts_with(key, ?) and ${LIVE} order by key limit ?`,
    [tx.organizationId, prefix, prefix, limit + 1],
  )
  return { data: rows.slice(0, limit), has_more: rows.length > limit }
}

/**
 * Refuses a new key above the limit. Creations are not serialised, so concurrent ones may exceed the limit by their
 * number.
 */
async function counted(tx: Tenant, { created, ...row }: Written): Promise<StoredValue> {
  if (!created) return row
  const { rows } = await tx.trx.raw<{ rows: unknown[] }>(
    'select from key_values where organization_id = ? offset ? limit 1',
    [tx.organizationId, KEY_VALUES.count],
  )
  if (rows.length === 0) return row
  throw conflict(
    `the organization already has ${KEY_VALUES.count} keys: delete unused ones, or give them a \`ttl\``,
  )
}
