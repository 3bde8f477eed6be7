import { invalid } from '../model/errors.ts'
import { readValue } from '../model/records/custom-fields/types.ts'
import type { KindName } from '../model/records/kind.ts'
import { kinds } from '../model/records/kinds/index.ts'
import type { RecordInput } from '../model/records/schemas.ts'
import { splitName } from '../model/records/split-name.ts'
import { uniqueKey } from '../model/records/unique.ts'
import {
  customKey,
  identityKey,
  isIdentity,
  lookupKey,
  upsertKey,
  upsertKeys,
} from '../model/records/upsert-keys.ts'
import { OF_ORGANIZATION, type Tenant } from '../postgres/tenancy.ts'
import { lockFieldRules } from './custom-fields/rules.ts'
import { filledBy, splitLinks } from './given-links.ts'

/** Finds records of one kind by one field, for find-or-create. */
export interface Finder {
  entity: KindName
  by: string
  /** The lookup key: the value of the field, normalised for comparison; undefined without a valid value. */
  keyOf(fields: RecordInput): string | undefined
  /**
   * The ids of the records with these keys, by key, oldest first. Serialises transactions that look up the same key
   * until they end, so that concurrent find-or-create operations create one record.
   */
  find(keys: string[]): Promise<Map<string, string[]>>
  /** The same without a lock: a record that is not found may be created concurrently. */
  peek(keys: string[]): Promise<Map<string, string[]>>
}

/**
 * `by`: an upsert key of the kind, `id`, or `name` of companies and contacts. Throws `validation_error` if a custom field
 * is not unique.
 */
export async function finderBy(tx: Tenant, kind: KindName, by: string): Promise<Finder> {
  const custom = customKey(by)
  if (custom !== undefined) return finderByCustomField(tx, kind, custom)
  if (by === 'id') return finderById(tx, kind)
  if (by === 'name' && kind === 'contacts') return finderByFullName(tx)
  if (isIdentity(kind, by)) return finderByIdentity(tx, kind)
  const isLowered = by === 'email' || by === 'name'
  return {
    entity: kind,
    by,
    keyOf(fields) {
      const value = upsertKey(by, fields)
      return value === undefined ? undefined : lookupKey(by, value)
    },
    ...lookUps(tx, kind, by, {
      sql: `select id, created_at from ${kind}
            where ${OF_ORGANIZATION} and ${isLowered ? `${by}_lower` : by} = key and deleted_at is null`,
      bindings: [tx.organizationId],
      ...(upsertKeys(kind).includes(by) && {
        alternates: {
          sql: `select r.id, r.created_at from alternate_keys a
                join ${kind} r on r.organization_id = a.organization_id and r.id = a.record_id
                where a.${OF_ORGANIZATION} and a.entity = ? and a.field = ? and a.key = wanted.key
                  and r.deleted_at is null`,
          bindings: [tx.organizationId, kind, by],
        },
      }),
    }),
  }
}

const UUID = /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/

function finderById(tx: Tenant, kind: KindName): Finder {
  return {
    entity: kind,
    by: 'id',
    keyOf({ id }) {
      const text = String(id ?? '').toLowerCase()
      return UUID.test(text) ? text : undefined
    },
    ...lookUps(tx, kind, 'id', {
      sql: `select id, created_at from ${kind} where ${OF_ORGANIZATION} and id = key::uuid and deleted_at is null`,
      bindings: [tx.organizationId],
    }),
  }
}

/** By all fields of the `identity` of a kind; a link may fill the reference. */
function finderByIdentity(tx: Tenant, kind: KindName): Finder {
  const [by, ...others] = kinds[kind].identity!
  const conditions = others.map((name, i) => `${name} = key::jsonb ->> ${i + 1}`).join(' and ')
  return {
    entity: kind,
    by,
    keyOf(input) {
      const { links, fields } = splitLinks(input)
      const key = { ...fields, ...filledBy(links, kinds[kind], fields) }
      // The look-up casts it: an import gives what its cell has.
      return UUID.test(String(key[by]).toLowerCase()) ? identityKey(kind, key) : undefined
    },
    ...lookUps(tx, kind, by, {
      sql: `select id, created_at from ${kind}
            where ${OF_ORGANIZATION} and ${by} = (key::jsonb ->> 0)::uuid and ${conditions} and deleted_at is null`,
      bindings: [tx.organizationId],
    }),
  }
}

/** Contacts by first and last name. The index has last names, which may be any of the words at the end. */
function finderByFullName(tx: Tenant): Finder {
  const peek = async (keys: string[]) => {
    const wanted = new Set(keys)
    const lastNames = keys.flatMap((key) => {
      const words = key.split(' ')
      return words.slice(1, 1 + MAX_LAST_NAMES).map((_, i) => words.slice(i + 1).join(' '))
    })
    const found = new Map<string, string[]>()
    if (lastNames.length === 0) return found
    const { rows } = await tx.trx.raw<{ rows: { id: string; name: string }[] }>(
      `select id, lower(first_name) || ' ' || last_name_lower as name from contacts
       where ${OF_ORGANIZATION} and last_name_lower = any(?) and first_name is not null and deleted_at is null
       order by created_at, id`,
      [tx.organizationId, [...new Set(lastNames)]],
    )
    for (const { id, name } of rows)
      if (wanted.has(name)) found.set(name, [...(found.get(name) ?? []), id].slice(0, MAX_FOUND))
    return found
  }
  return {
    entity: 'contacts',
    by: 'name',
    keyOf({ name }) {
      const { first_name, last_name } = splitName(String(name ?? ''))
      return first_name && last_name ? `${first_name} ${last_name}`.toLowerCase() : undefined
    },
    peek,
    find: peek,
  }
}

const MAX_LAST_NAMES = 5

async function finderByCustomField(tx: Tenant, kind: KindName, name: string): Promise<Finder> {
  const by = `custom_fields.${name}`
  const { definitions } = await lockFieldRules(tx, kind)
  const definition = Object.hasOwn(definitions, name) ? definitions[name] : undefined
  if (!definition?.unique)
    throw invalid([
      {
        loc: ['body', 'by'],
        msg: `${by} is not a unique custom field`,
        type: 'invalid_value',
        hint: `one of ${upsertKeys(kind).join(', ')}, or custom_fields.<name> of a unique definition`,
      },
    ])
  return {
    entity: kind,
    by,
    keyOf(fields) {
      const value = upsertKey(by, fields)
      const reading = value === undefined ? undefined : readValue(definition, value)
      return reading && 'value' in reading ? uniqueKey(reading.value) : undefined
    },
    ...lookUps(tx, kind, by, {
      sql: `select record_id as id, null::timestamptz as created_at from custom_field_values
            where ${OF_ORGANIZATION} and entity = ? and name = ? and value_key = key`,
      bindings: [tx.organizationId, kind, name],
    }),
  }
}

/** The maximum number of records found for one key. */
const MAX_FOUND = 100

interface Matches {
  sql: string
  bindings: string[]
}

/**
 * `matches`: selects id and created_at of the records with `key`; `alternates`: of those that have it as an alternate
 * key, which are found where no record has it as its own.
 */
function lookUps(
  tx: Tenant,
  kind: KindName,
  by: string,
  matches: Matches & { alternates?: Matches },
): Pick<Finder, 'find' | 'peek'> {
  const peek = async (keys: string[]) => {
    const found = new Map<string, string[]>()
    if (keys.length === 0) return found
    const { alternates } = matches
    const limited = ({ sql }: Matches, isAlternate: boolean) =>
      `(select id, created_at, ${isAlternate} as alternate from (${sql}) one order by created_at, id limit ${MAX_FOUND})`
    const { rows } = await tx.trx.raw<{ rows: { key: string; id: string; alternate: boolean }[] }>(
      `select key, id, alternate from unnest(?::text[]) as wanted (key)
       cross join lateral (
         ${limited(matches, false)}${alternates ? ` union all ${limited(alternates, true)}` : ''}
       ) match
       order by alternate, created_at, id`,
      [[...new Set(keys)], ...matches.bindings, ...(alternates?.bindings ?? [])],
    )
    const own = new Set(rows.flatMap(({ key, alternate }) => (alternate ? [] : key)))
    for (const { key, id, alternate } of rows)
      if (!alternate || !own.has(key)) found.set(key, [...(found.get(key) ?? []), id])
    return found
  }
  return {
    peek,
    async find(keys) {
      if (keys.length > 0) await lockLookUps(tx, kind, by, keys)
      return peek(keys)
    },
  }
}

/** Serialises the transactions that look up these keys until they end. */
export const lockLookUps = (tx: Tenant, kind: KindName, by: string, keys: string[]): Promise<unknown> =>
  // Sorted, for the lock order of lock.ts.
  tx.trx.raw(
    `select pg_advisory_xact_lock(lock) from (
       select distinct hashtextextended(name, 0) as lock from unnest(?::text[]) name order by lock
     ) locks`,
    [keys.map((key) => `${tx.organizationId} ${kind} ${by} ${key}`)],
  )
