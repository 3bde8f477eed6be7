import { conflict } from '../errors.ts'
import type { Tenant } from '../tenancy.ts'
import type { EntityName } from './kind.ts'
import { entities } from './kinds/index.ts'
import type { AgxRecord, RecordInput } from './schemas.ts'
import { createRecord, updateRecord } from './store.ts'

const MAX_CANDIDATES = 100

/** The fields by which a record of this kind can be found for an upsert. */
export const upsertKeys = (entity: EntityName): string[] => [...entities[entity].upsertKeys, 'external_id']

/** An upsert's value of the field that it goes by, in the form in which values are compared. */
export function upsertKey(by: string, input: RecordInput): string | undefined {
  const value = input[by]
  return typeof value === 'string' ? keyOf(by, value) : undefined
}

/**
 * The ids of the records with this value (as the schemas read it), oldest first. Until the transaction ends, no other
 * transaction that looks by the same value gets past here, so that "create if there is none" makes one record, however
 * many ask at once.
 */
export async function findByKey(
  tx: Tenant,
  entity: EntityName,
  by: string,
  value: string,
): Promise<string[]> {
  return (await findByKeys(tx, entity, by, [value])).get(value)!
}

/** The same for many values, by value. */
export async function findByKeys(
  tx: Tenant,
  entity: EntityName,
  by: string,
  values: string[],
): Promise<Map<string, string[]>> {
  if (values.length === 0) return new Map()
  const keys = [...new Set(values.map((value) => keyOf(by, value)))]
  await lockKeys(tx, entity, by, keys)
  const { rows } = await tx.trx.raw<{ rows: { key: string; id: string }[] }>(
    `select key, id from unnest(?::text[]) as wanted (key)
     cross join lateral (
       select id, created_at from ${entity}
       where organization_id = ? and ${by === 'email' ? 'email_lower' : by} = key and deleted_at is null
       order by created_at, id limit ${MAX_CANDIDATES}
     ) one
     order by created_at, id`,
    [keys, tx.organizationId],
  )
  const ids = new Map<string, string[]>()
  for (const { key, id } of rows) ids.set(key, [...(ids.get(key) ?? []), id])
  return new Map(values.map((value) => [value, ids.get(keyOf(by, value)) ?? []]))
}

/** In one order, whatever the order of the keys, so that two who lock several wait for each other one way only. */
async function lockKeys(tx: Tenant, entity: EntityName, by: string, keys: string[]): Promise<void> {
  await tx.trx.raw(
    `select pg_advisory_xact_lock(lock) from (
       select distinct hashtextextended(name, 0) as lock from unnest(?::text[]) name order by lock
     ) locks`,
    [keys.map((key) => `${tx.organizationId} ${entity} ${by} ${key}`)],
  )
}

const keyOf = (by: string, value: string): string => (by === 'email' ? value.toLowerCase() : value)

/**
 * Updates the record whose `by` has the input's value, or creates it. `input` is what `createSchema` parsed.
 * Throws `conflict` with the candidates where several match; what create and update throw.
 */
export async function upsertRecord(
  tx: Tenant,
  entity: EntityName,
  by: string,
  input: RecordInput,
  given: RecordInput = input,
): Promise<{ record: AgxRecord; created: boolean }> {
  const value = input[by]
  if (typeof value !== 'string') return { record: await createRecord(tx, entity, input), created: true }
  const ids = await findByKey(tx, entity, by, value)
  if (ids.length > 1) throw severalMatch(entity, by, ids)
  if (ids.length === 0) return { record: await createRecord(tx, entity, input), created: true }
  const { associations: _, ...patch } = given
  return { record: await updateRecord(tx, entity, ids[0]!, patch), created: false }
}

export const severalMatch = (entity: EntityName, by: string, ids: string[]) =>
  conflict(`${ids.length} ${entity} have this ${by}`, {
    param: by,
    candidates: ids.map((id) => ({ object: entities[entity].object, id })),
  })
