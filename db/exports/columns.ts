import { namedUsers } from '../access/members.ts'
import { targetsFor } from '../imports/targets.ts'
import type { CellType } from '../model/csv/read-cell.ts'
import { writeCell, writeList } from '../model/csv/write-cell.ts'
import { type Target, targetOf } from '../model/imports/targets.ts'
import { isList } from '../model/records/filters.ts'
import { type KindName, userFields } from '../model/records/kind.ts'
import { kinds } from '../model/records/kinds/index.ts'
import type { AgxRecord } from '../model/records/schemas.ts'
import type { Tenant } from '../postgres/tenancy.ts'

const MAX_CUSTOM = 1_000

/** The field names that an export accepts, in addition to `custom_fields.<name>`. */
export const exportable = (kind: KindName): string[] => [
  'id',
  ...Object.keys(kinds[kind].fields),
  'external_id',
  'owner_id',
  'tags',
  'custom_fields',
  'version',
  'created_at',
  'updated_at',
]

/**
 * The columns of an export, with the names that an import accepts. Each part of an address is a column, and so is each
 * custom field with a definition or a value. `names`: the columns of ids are followed by one with the names.
 */
export async function exportColumns(
  tx: Tenant,
  kind: KindName,
  fields: string[] | null,
  names: boolean,
): Promise<string[]> {
  const targets = await targetsFor(tx, kind)
  const custom = [...targets.byName.keys()].filter((name) => name.startsWith('custom_fields.'))
  const wanted = fields ?? exportable(kind)
  if (wanted.includes('custom_fields')) custom.push(...(await namesInUse(tx, kind)))
  const columns = wanted.flatMap((name) => {
    if (name === 'custom_fields') return [...new Set(custom)].sort()
    if (names && namedBy(kind, name)) return [name, nameColumn(name)]
    if (kinds[kind].fields[name]?.type !== 'address') return [name]
    return [...targets.byName.keys()].filter((target) => target.startsWith(`${name}.`))
  })
  return [...new Set(['id', ...columns])]
}

async function namesInUse(tx: Tenant, kind: KindName): Promise<string[]> {
  const { rows } = await tx.trx.raw<{ rows: { key: string }[] }>(
    `select distinct one.key from ${kind}, jsonb_object_keys(custom_fields) one (key)
     where organization_id = ? and deleted_at is null limit ${MAX_CUSTOM}`,
    [tx.organizationId],
  )
  return rows.map(({ key }) => `custom_fields.${key}`)
}

/** Whose name belongs to an id: `users`, or the kind of the record; undefined for other fields. */
export function namedBy(kind: KindName, field: string): KindName | 'users' | undefined {
  if (userFields(kinds[kind]).includes(field)) return 'users'
  return kinds[kind].fields[field]?.to
}

/** `owner_id` becomes `owner_name`. */
const nameColumn = (field: string) => field.replace(/_id$/, '_name')

/** The types of the cells of these columns, where they are not texts. */
export async function columnTypes(
  tx: Tenant,
  kind: KindName,
  columns: string[],
): Promise<Map<string, CellType>> {
  const targets = await targetsFor(tx, kind)
  return new Map(columns.map((name) => [name, (targetOf(targets, name)?.type ?? 'text') as CellType]))
}

/** Returns a function from one of `records` to the cells of its row. */
export async function cellsOf(
  tx: Tenant,
  kind: KindName,
  columns: string[],
  records: AgxRecord[],
  decimal: '.' | ',',
): Promise<(record: AgxRecord) => string[]> {
  const targets = await targetsFor(tx, kind)
  const fieldOfName = new Map(
    columns.flatMap((column) => (namedBy(kind, column) ? [[nameColumn(column), column] as const] : [])),
  )
  const isNamed = columns.some((column) => fieldOfName.has(column))
  const names = isNamed ? await namesOf(tx, kind, [...fieldOfName.values()], records) : new Map()
  const types = columns.map((name): Target['type'] => targetOf(targets, name)?.type ?? 'text')
  const paths = columns.map((name) => name.split('.') as [string, string | undefined])
  return (record) =>
    paths.map(([outer, inner], i) => {
      const named = fieldOfName.get(outer)
      if (named !== undefined) return writeCell(names.get(record[named]), 'text')
      const value = record[outer]
      const part = inner === undefined ? value : memberOf(value, inner)
      return types[i] === 'tags' || isList(types[i]!)
        ? writeList(part as string[])
        : writeCell(part, types[i] as CellType, decimal)
    })
}

/** The names of the users and records whose ids these fields of the records have, by id. */
async function namesOf(
  tx: Tenant,
  kind: KindName,
  fields: string[],
  records: AgxRecord[],
): Promise<Map<unknown, string>> {
  const found = new Map<unknown, string>()
  const idsOf = (by: KindName | 'users') =>
    fields
      .filter((field) => namedBy(kind, field) === by)
      .flatMap((field) =>
        records.flatMap((record) => (typeof record[field] === 'string' ? record[field] : [])),
      )
  const put = (rows: { id: string; name: string }[]) => {
    for (const { id, name } of rows) found.set(id, name)
  }
  const [users, companies, contacts] = [idsOf('users'), idsOf('companies'), idsOf('contacts')]
  if (users.length > 0) put(await namedUsers(tx))
  const of = (table: KindName, ids: string[]) =>
    tx.trx(table).where({ organization_id: tx.organizationId, deleted_at: null }).whereIn('id', ids)
  if (companies.length > 0) put(await of('companies', companies).select('id', 'name'))
  if (contacts.length > 0)
    put(
      await of('contacts', contacts).select(
        'id',
        tx.trx.raw("coalesce(nullif(concat_ws(' ', first_name, last_name), ''), email) as name"),
      ),
    )
  return found
}

/** Own members only: a custom field may have the name of an inherited member, such as `constructor`. */
const memberOf = (value: unknown, name: string): unknown =>
  typeof value === 'object' && value !== null && Object.hasOwn(value, name)
    ? (value as Record<string, unknown>)[name]
    : undefined
