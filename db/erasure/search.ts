import type { Tenant } from '../postgres/tenancy.ts'
import type { Place } from './places.ts'

/** A row that may name the person. */
export interface FoundRow {
  /** Its primary key without the organization, as texts. */
  key: string[]
  /** All of it, as JSON. */
  row: Record<string, unknown>
  /** Whether it is about the contact itself. */
  own: boolean
  busy: boolean
}

export interface FoundPage {
  table: Table
  rows: FoundRow[]
  /** The key of the last row that was read; null at the end of the table. */
  cursor: string[] | null
}

export interface Table {
  name: string
  /** The columns of the primary key, without the organization's. */
  key: string[]
  /** The other columns that can be written. */
  columns: string[]
}

/** Rows that one statement reads. */
const ROWS = 500

/** The next rows of a table that match the pattern, or are about one of the ids. */
export async function searchPlace(
  tx: Tenant,
  place: Place,
  { pattern, ids }: { pattern: string; ids: string[] },
  cursor: string[] | null,
): Promise<FoundPage> {
  const table = await describe(tx, place.table)
  const keys = table.key.join(', ')
  const { rows } = await tx.trx.raw<{ rows: (Omit<FoundRow, 'row'> & { row: FoundRow['row'] | null })[] }>(
    `with page as materialized (
       select *, ${place.own ?? 'false'} as is_own, ${place.busy ?? 'false'} as is_busy from ${place.table}
       where ${place.table === 'organizations' ? 'id' : 'organization_id'} = :organizationId
       ${cursor ? `and (${keys}) > (${cursor.map((_, i) => `:key${i}`).join(', ')})` : ''}
       order by ${keys} limit ${ROWS}
     )
     select array[${table.key.map((column) => `${column}::text`).join(', ')}] as key,
       is_own as own, is_busy as busy,
       case when is_own or page::text ~* :pattern then to_jsonb(page) - 'is_own' - 'is_busy' end as row
     from page order by ${keys}`,
    {
      organizationId: tx.organizationId,
      ids,
      pattern,
      ...Object.fromEntries((cursor ?? []).map((value, i) => [`key${i}`, value])),
    } as never,
  )
  return {
    table,
    rows: rows.flatMap(({ row, ...rest }) => (row ? [{ ...rest, row }] : [])),
    cursor: rows.length === ROWS ? rows.at(-1)!.key : null,
  }
}

/** The columns of a table, from the catalogue. */
async function describe(tx: Tenant, name: string): Promise<Table> {
  const { rows } = await tx.trx.raw<{ rows: { column: string; place: number | null; written: boolean }[] }>(
    `select a.attname as column, array_position(k.conkey, a.attnum) as place, a.attgenerated = '' as written
     from pg_attribute a
     join pg_constraint k on k.conrelid = a.attrelid and k.contype = 'p'
     where a.attrelid = ?::regclass and a.attnum > 0 and not a.attisdropped
     order by place, a.attnum`,
    [name],
  )
  return {
    name,
    key: rows.flatMap(({ column, place }) =>
      place !== null && column !== 'organization_id' ? [column] : [],
    ),
    columns: rows.flatMap(({ column, place, written }) => (place === null && written ? [column] : [])),
  }
}
