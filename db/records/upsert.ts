import { AppError, conflict, invalid } from '../errors.ts'
import { savepoint, type Tenant } from '../postgres/tenancy.ts'
import { holdRules } from './custom-fields/rules.ts'
import { updateAndLink } from './given-links.ts'
import { readValue } from './model/custom-fields/types.ts'
import { uniqueKey } from './model/custom-fields/unique.ts'
import type { EntityName } from './model/kind.ts'
import { entities } from './model/kinds/index.ts'
import type { AgxRecord, RecordInput } from './model/schemas.ts'
import { customKey, upsertKey, upsertKeys } from './model/upsert-keys.ts'
import { createRecord } from './store.ts'

const MAX_CANDIDATES = 100

/** Finds records by one field, for upserts. */
export interface Finder {
  /** The one form of a value: that of all values which count as the same. Undefined where the field takes no such. */
  keyOf(value: string): string | undefined
  /**
   * The ids of the records with these keys, by key, oldest first. Until the transaction ends, no other transaction
   * that looks by the same key gets past here, so that "create if there is none" makes one record, however many ask
   * at once.
   */
  find(keys: string[]): Promise<Map<string, string[]>>
}

/** Throws `validation_error` for a custom field that is not unique. */
export async function finderBy(tx: Tenant, entity: EntityName, by: string): Promise<Finder> {
  const custom = customKey(by)
  if (custom !== undefined) return finderByCustomField(tx, entity, custom)
  return {
    keyOf: (value) => (by === 'email' ? value.toLowerCase() : value),
    find: (keys) =>
      findLocked(tx, entity, by, keys, {
        sql: `select id, created_at from ${entity}
              where organization_id = ? and ${by === 'email' ? 'email_lower' : by} = key and deleted_at is null`,
        bindings: [tx.organizationId],
      }),
  }
}

async function finderByCustomField(tx: Tenant, entity: EntityName, name: string): Promise<Finder> {
  const by = `custom_fields.${name}`
  const { definitions } = await holdRules(tx, entity)
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
    keyOf(value) {
      const reading = readValue(definition, value)
      return 'value' in reading ? uniqueKey(reading.value) : undefined
    },
    find: (keys) =>
      findLocked(tx, entity, by, keys, {
        sql: `select record_id as id, null::timestamptz as created_at from custom_field_values
              where organization_id = ? and entity = ? and name = ? and value_key = key`,
        bindings: [tx.organizationId, entity, name],
      }),
  }
}

/** `matches`: selects id and created_at of those with `key`. */
async function findLocked(
  tx: Tenant,
  entity: EntityName,
  by: string,
  keys: string[],
  matches: { sql: string; bindings: string[] },
): Promise<Map<string, string[]>> {
  const found = new Map<string, string[]>()
  if (keys.length === 0) return found
  // In one order, so that two who lock several wait for each other one way only.
  await tx.trx.raw(
    `select pg_advisory_xact_lock(lock) from (
       select distinct hashtextextended(name, 0) as lock from unnest(?::text[]) name order by lock
     ) locks`,
    [keys.map((key) => `${tx.organizationId} ${entity} ${by} ${key}`)],
  )
  const { rows } = await tx.trx.raw<{ rows: { key: string; id: string }[] }>(
    `select key, id from unnest(?::text[]) as wanted (key)
     cross join lateral (${matches.sql} order by created_at, id limit ${MAX_CANDIDATES}) match
     order by created_at, id`,
    [[...new Set(keys)], ...matches.bindings],
  )
  for (const { key, id } of rows) found.set(key, [...(found.get(key) ?? []), id])
  return found
}

/** The ids of the records with these values of a field, by value; what `Finder.find` says holds. */
export async function findByKeys(
  tx: Tenant,
  entity: EntityName,
  by: string,
  values: string[],
): Promise<Map<string, string[]>> {
  const finder = await finderBy(tx, entity, by)
  const keys = new Map(values.map((value) => [value, finder.keyOf(value)]))
  const found = await finder.find([...keys.values()].filter((key) => key !== undefined))
  return new Map(values.map((value) => [value, found.get(keys.get(value) ?? '') ?? []]))
}

export async function findByKey(
  tx: Tenant,
  entity: EntityName,
  by: string,
  value: string,
): Promise<string[]> {
  return (await findByKeys(tx, entity, by, [value])).get(value)!
}

/**
 * Updates the record whose `by` has the input's value, or creates it. `input` is what `createSchema` parsed, `given`
 * what `upsertSchema` did.
 * Throws `conflict` with the candidates where several match; what create and update throw.
 */
export async function upsertRecord(
  tx: Tenant,
  entity: EntityName,
  by: string,
  input: RecordInput,
  given: RecordInput = input,
): Promise<{ record: AgxRecord; created: boolean }> {
  const value = upsertKey(by, input)
  if (value === undefined) return { record: await createRecord(tx, entity, input), created: true }
  for (let look = 1; ; look++) {
    const ids = await findByKey(tx, entity, by, value)
    if (ids.length > 1) throw severalMatch(entity, by, ids)
    const created = ids.length === 0
    try {
      const record = created
        ? await savepoint(tx, (tx) => createRecord(tx, entity, input))
        : await updateAndLink(tx, entity, ids[0]!, given)
      return { record, created }
    } catch (error) {
      if (look === LOOKS || !isOvertaken(error, created)) throw error
    }
  }
}

/** So often an upsert looks for a record before it answers with what came in between. */
export const LOOKS = 3

/**
 * Whether what an upsert found may not hold any more. What it would create can have a unique value that another client,
 * who looked by another field or not at all, took meanwhile: then the record that it means may be there now. What it
 * would change can be deleted since.
 */
export const isOvertaken = (error: unknown, creating: boolean): boolean =>
  error instanceof AppError && error.type === (creating ? 'conflict' : 'not_found')

export const severalMatch = (entity: EntityName, by: string, ids: string[]) =>
  conflict(`${ids.length} ${entity} have this ${by}`, {
    param: by,
    candidates: ids.map((id) => ({ object: entities[entity].object, id })),
  })
