import { STORED, STORED_KINDS, type StoredKind } from '../model/storage/tables.ts'
import type { System } from '../postgres/tenancy.ts'
import { purgeDeletedOf } from '../records/purge.ts'
import { compareWithPlans, MARK_FULL } from './usage.ts'

/** Rows of one statement, which takes some 50 ms. */
const PAGE = 10_000
/** Bytes of a row beside its columns: header, pointer, and a share of the indexes. */
const ROW = 100
/** A large organization is measured again only after this many times as long as its measurement took. */
const PAUSES = 20

/** What a table needs to be measured, read from the catalogue: new columns are counted by themselves. */
interface Measured {
  kind: StoredKind
  table: string
  /** The primary key behind `organization_id`. */
  key: { name: string; type: string }[]
  /** SQL: the bytes of a row. */
  bytes: string
}

/** A measurement in progress. */
interface Progress {
  organizationId: string
  started: number
  /** The bytes that were reported as written before it began: it finds them. */
  written: number
  sums: Partial<Record<StoredKind, number>>
  table: number
  after: string[] | undefined
}

/**
 * Measures the storage of organizations, one after the other and in pages, those first that may be full. The size of a
 * column is what it takes on the disk, which PostgreSQL knows without reading what it stores elsewhere (TOAST).
 */
export class StorageMeter {
  private readonly system: System
  private tables: Measured[] | undefined
  private progress: Progress | undefined

  constructor(system: System) {
    this.system = system
  }

  /** @param keepOn is asked before each page. The next call continues. */
  async run(keepOn: () => boolean | Promise<boolean>): Promise<void> {
    this.tables ??= await readTables(this.system)
    await compareWithPlans(this.system)
    while (await keepOn()) {
      this.progress ??= await this.next()
      if (!this.progress) return
      await this.step(this.progress, this.tables)
    }
  }

  /** The organization that is due: measured never, a day ago, or before it wrote much or became full. */
  private async next(): Promise<Progress | undefined> {
    const { rows } = await this.system.raw<{ rows: { organization_id: string; written: number }[] }>(
      `select s.organization_id, s.written from organization_storage s
         join organizations o on o.id = s.organization_id
       where s.measured_at is null
         or (s.written > 0 and s.measured_at < now() - interval '1 day')
         or (s.due_at < now() and (o.storage_full or s.written > greatest(1048576, s.total / 10)))
       order by o.storage_full desc, s.measured_at nulls first limit 1`,
    )
    const [row] = rows
    return (
      row && {
        organizationId: row.organization_id,
        written: row.written,
        started: Date.now(),
        sums: {},
        table: 0,
        after: undefined,
      }
    )
  }

  private async step(progress: Progress, tables: Measured[]): Promise<void> {
    const table = tables[progress.table]
    if (!table) {
      this.progress = undefined
      return this.end(progress)
    }
    const { bytes, last } = await this.page(progress, table)
    progress.sums[table.kind] = (progress.sums[table.kind] ?? 0) + bytes
    progress.after = last
    if (!last) progress.table += 1
  }

  /** The bytes of the next rows of a table; `last` is the key of the last one, if others follow. */
  private async page(
    { organizationId, after }: Progress,
    { table, key, bytes }: Measured,
  ): Promise<{ bytes: number; last: string[] | undefined }> {
    const names = key.map(({ name }) => name).join(', ')
    const place = `(${key.map(({ type }) => `cast(? as ${type})`).join(', ')})`
    const from = after ? `and (${names}) > ${place}` : ''
    const where = `from ${table} t where organization_id = ? ${from}`
    const bounds = [organizationId, ...(after ?? [])]
    const found = await this.system.raw<{ rows: { key: string[] }[] }>(
      `select array[${key.map(({ name }) => `${name}::text`).join(', ')}] as key ${where}
       order by ${names} offset ${PAGE - 1} limit 1`,
      bounds,
    )
    const last = found.rows[0]?.key
    const { rows } = await this.system.raw<{ rows: { bytes: number }[] }>(
      `select coalesce(sum(${bytes}), 0)::bigint as bytes ${where} ${last ? `and (${names}) <= ${place}` : ''}`,
      [...bounds, ...(last ?? [])],
    )
    return { bytes: rows[0]!.bytes, last }
  }

  private async end({ organizationId, sums, written, started }: Progress): Promise<void> {
    const total = STORED_KINDS.reduce((sum, kind) => sum + (sums[kind] ?? 0), 0)
    const { rowCount } = await this.system.raw<{ rowCount: number }>(FULL, [organizationId])
    if (rowCount > 0 && (await purgeDeletedOf(this.system, organizationId)) > 0) return
    await this.system.raw(
      `with used as (
         update organization_storage set measured = cast(:sums as jsonb), total = :total,
           written = greatest(0, written - :written), measured_at = now(),
           due_at = now() + make_interval(secs => :pause)
         where organization_id = :organizationId returning organization_id, total + written as bytes
       ) ${MARK_FULL}`,
      {
        organizationId,
        total,
        written,
        sums: JSON.stringify(sums),
        pause: ((Date.now() - started) * PAUSES) / 1_000,
      },
    )
  }
}

const FULL = 'select from organizations where id = ? and storage_full'

async function readTables(system: System): Promise<Measured[]> {
  const kinds = new Map(STORED_KINDS.flatMap((kind) => STORED[kind].map((table) => [table as string, kind])))
  const { rows } = await system.raw<{
    rows: { table: string; key: Measured['key']; fixed: number; varying: string[] | null }[]
  }>(
    `select c.relname as table,
       (select jsonb_agg(jsonb_build_object('name', a.attname, 'type', format_type(a.atttypid, a.atttypmod)) order by k.n)
        from pg_index i, unnest(i.indkey::int[]) with ordinality as k(attnum, n)
          join pg_attribute a on a.attrelid = c.oid and a.attnum = k.attnum
        where i.indrelid = c.oid and i.indisprimary and a.attname <> 'organization_id') as key,
       (select sum(a.attlen)::integer from pg_attribute a
        where a.attrelid = c.oid and a.attnum > 0 and not a.attisdropped and a.attlen > 0) as fixed,
       (select array_agg(a.attname::text) from pg_attribute a
        where a.attrelid = c.oid and a.attnum > 0 and not a.attisdropped and a.attlen = -1) as varying
     from pg_class c where c.relname = any(?) and c.relnamespace = 'public'::regnamespace`,
    [[...kinds.keys()]],
  )
  return rows.map(({ table, key, fixed, varying }) => ({
    kind: kinds.get(table)!,
    table,
    key,
    bytes: [
      String(ROW + fixed),
      ...(varying ?? []).map((column) => `coalesce(pg_column_size(t.${column}), 0)`),
    ].join(' + '),
  }))
}
