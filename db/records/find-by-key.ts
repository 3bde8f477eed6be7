import { invalid } from '../errors.ts'
import type { Tenant } from '../postgres/tenancy.ts'
import { lockFieldRules } from './custom-fields/rules.ts'
import { readValue } from './model/custom-fields/types.ts'
import type { EntityName } from './model/kind.ts'
import type { RecordInput } from './model/schemas.ts'
import { uniqueKey } from './model/unique.ts'
import { customKey, upsertKey, upsertKeys } from './model/upsert-keys.ts'

/** Finds records of one kind by one field, to create those that do not exist. */
export interface Finder {
  entity: EntityName
  by: string
  /** The value of the field in a record, in the form in which it is compared; undefined without a valid one. */
  keyOf(fields: RecordInput): string | undefined
  /**
   * The ids of the records with these keys, by key, oldest first. Serialises transactions that look for the same key
   * until they end, so that "create if there is none" creates one record, however many ask at once.
   */
  find(keys: string[]): Promise<Map<string, string[]>>
}

/**
 * `by`: an upsert key of the kind, or `name` of companies. Throws `validation_error` for a custom field that is not
 * unique.
 */
export async function finderBy(tx: Tenant, entity: EntityName, by: string): Promise<Finder> {
  const custom = customKey(by)
  if (custom !== undefined) return finderByCustomField(tx, entity, custom)
  const isLowered = by === 'email' || by === 'name'
  return {
    ...{ entity, by },
    keyOf(fields) {
      const value = upsertKey(by, fields)
      return isLowered ? value?.toLowerCase() : value
    },
    find: (keys) =>
      findLocked(tx, entity, by, keys, {
        sql: `select id, created_at from ${entity}
              where organization_id = ? and ${isLowered ? `${by}_lower` : by} = key and deleted_at is null`,
        bindings: [tx.organizationId],
      }),
  }
}

async function finderByCustomField(tx: Tenant, entity: EntityName, name: string): Promise<Finder> {
  const by = `custom_fields.${name}`
  const { definitions } = await lockFieldRules(tx, entity)
  const definition = Object.hasOwn(definitions, name) ? definitions[name] : undefined
  if (!definition?.unique)
    throw invalid([
      {
        loc: ['body', 'by'],
        msg: `${by} is not a custom field that is unique`,
        type: 'invalid_value',
        hint: `one of ${upsertKeys(entity).join(', ')}, or custom_fields.<name> of a unique definition`,
      },
    ])
  return {
    ...{ entity, by },
    keyOf(fields) {
      const value = upsertKey(by, fields)
      const reading = value === undefined ? undefined : readValue(definition, value)
      return reading && 'value' in reading ? uniqueKey(reading.value) : undefined
    },
    find: (keys) =>
      findLocked(tx, entity, by, keys, {
        sql: `select record_id as id, null::timestamptz as created_at from custom_field_values
              where organization_id = ? and entity = ? and name = ? and value_key = key`,
        bindings: [tx.organizationId, entity, name],
      }),
  }
}

/** The ids of the records that have the value of `by` in `fields`; none where that has none. As of `Finder.find`. */
export async function findByKey(
  tx: Tenant,
  entity: EntityName,
  by: string,
  fields: RecordInput,
): Promise<string[]> {
  const finder = await finderBy(tx, entity, by)
  const key = finder.keyOf(fields)
  return key === undefined ? [] : ((await finder.find([key])).get(key) ?? [])
}

/** So many of the records with one key are found. */
const MAX_FOUND = 100

/** `matches`: selects id and created_at of the records with `key`. */
async function findLocked(
  tx: Tenant,
  entity: EntityName,
  by: string,
  keys: string[],
  matches: { sql: string; bindings: string[] },
): Promise<Map<string, string[]>> {
  const found = new Map<string, string[]>()
  if (keys.length === 0) return found
  // Locked in one order: see lock.ts.
  await tx.trx.raw(
    `select pg_advisory_xact_lock(lock) from (
       select distinct hashtextextended(name, 0) as lock from unnest(?::text[]) name order by lock
     ) locks`,
    [keys.map((key) => `${tx.organizationId} ${entity} ${by} ${key}`)],
  )
  const { rows } = await tx.trx.raw<{ rows: { key: string; id: string }[] }>(
    `select key, id from unnest(?::text[]) as wanted (key)
     cross join lateral (${matches.sql} order by created_at, id limit ${MAX_FOUND}) match
     order by created_at, id`,
    [[...new Set(keys)], ...matches.bindings],
  )
  for (const { key, id } of rows) found.set(key, [...(found.get(key) ?? []), id])
  return found
}
