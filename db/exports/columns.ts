import { targetsFor } from '../imports/targets.ts'
import type { CellType } from '../model/csv/read-cell.ts'
import { writeCell, writeList } from '../model/csv/write-cell.ts'
import { type Target, targetOf } from '../model/imports/targets.ts'
import type { KindName } from '../model/records/kind.ts'
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
 * custom field with a definition or a value.
 */
export async function exportColumns(tx: Tenant, kind: KindName, fields: string[] | null): Promise<string[]> {
  const targets = await targetsFor(tx, kind)
  const custom = [...targets.byName.keys()].filter((name) => name.startsWith('custom_fields.'))
  const wanted = fields ?? exportable(kind)
  if (wanted.includes('custom_fields')) custom.push(...(await namesInUse(tx, kind)))
  const columns = wanted.flatMap((name) => {
    if (name === 'custom_fields') return [...new Set(custom)].sort()
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

/** Returns a function from a record to the cells of its row. */
export async function cellsOf(
  tx: Tenant,
  kind: KindName,
  columns: string[],
): Promise<(record: AgxRecord) => string[]> {
  const targets = await targetsFor(tx, kind)
  const types = columns.map((name): Target['type'] => targetOf(targets, name)?.type ?? 'text')
  const paths = columns.map((name) => name.split('.') as [string, string | undefined])
  return (record) =>
    paths.map(([outer, inner], i) => {
      const value = record[outer]
      const part = inner === undefined ? value : memberOf(value, inner)
      return types[i] === 'tags' ? writeList(part as string[]) : writeCell(part, types[i] as CellType)
    })
}

/** Own members only: a custom field may have the name of an inherited member, such as `constructor`. */
const memberOf = (value: unknown, name: string): unknown =>
  typeof value === 'object' && value !== null && Object.hasOwn(value, name)
    ? (value as Record<string, unknown>)[name]
    : undefined
