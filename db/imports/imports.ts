import { v7 as uuidv7 } from 'uuid'
import { type IdPage, pageById } from '../lists/id-list.ts'
import type { Actor } from '../model/actor.ts'
import type { ColumnFormat, FoundFormat } from '../model/csv/column-format.ts'
import type { Encoding } from '../model/csv/encoding.ts'
import type { Currencies } from '../model/csv/money-cell.ts'
import type { Place } from '../model/csv/rows.ts'
import { notFound } from '../model/errors.ts'
import type { ImportStatus } from '../model/files/statuses.ts'
import type { Source } from '../model/imports/presets.ts'
import type { Mapping } from '../model/imports/targets.ts'
import type { CountedValue, FoundValue, ValueMapping } from '../model/imports/values.ts'
import type { Page } from '../model/lists/page.ts'
import type { KindName } from '../model/records/kind.ts'
import type { Tenant } from '../postgres/tenancy.ts'

/** Column → its format as requested, which wins over what its values show. */
export type Formats = Record<string, ColumnFormat>

/** Column → what its values mean, as requested. */
export type Values = Record<string, ValueMapping>

/** The properties of an uploaded file. */
export interface ImportFile {
  /** As uploaded. */
  bytes: number
  rows: number
  encoding: Encoding
  delimiter: string
  header: string[]
  /** The first values of each column. */
  samples: string[][]
  /** The format of each column, as its values show it; absent in a file that was uploaded before formats were decided. */
  formats?: FoundFormat[]
  /** The distinct values of each column, where they are few; absent in a file that was uploaded before. */
  values?: (CountedValue[] | null)[]
  /** What they mean, in columns whose field has a list of values. */
  meant?: (FoundValue[] | null)[]
  proposed: Mapping
  /** Why columns have no proposed field. */
  dropped?: Record<string, string>
  /** The system that exported it. */
  source?: Source
  /** The end of the header. */
  start: Place
}

export interface ImportRow {
  id: string
  entity: KindName
  mode: 'create' | 'upsert'
  upsert_by: string | null
  dry_run: boolean
  delimiter: string | null
  encoding: Encoding | null
  mapping: Mapping
  formats: Formats
  currencies: Currencies
  meanings: Values
  time_zone: string | null
  /** The country of phone numbers without a country code; null: the organization's. */
  country: string | null
  /** Whether stages and pipelines that rows name are created. */
  create_stages: boolean
  /** What the first rows of a dry run would change. */
  preview: PreviewRow[] | null
  file: ImportFile | null
  upload_id: string | null
  status: ImportStatus
  targets: Mapping | null
  starts: number
  actor: Actor | null
  next_byte: number
  next_line: number
  rows_read: number
  rows_created: number
  rows_updated: number
  rows_skipped: number
  rows_failed: number
  error: ImportError | null
  created_by: Actor
  created_at: Date
  started_at: Date | null
  ended_at: Date | null
}

/** Rows of a dry run whose changes are shown. */
export const PREVIEW_ROWS = 20

/** What a row of a dry run would do. */
export interface PreviewRow {
  row: number
  line: number
  action: 'created' | 'updated' | 'skipped'
  /** The record that it would update. */
  record_id: string | null
  /** Field → its value before and after; of a new record its values. */
  changes: Record<string, unknown>
}

/** The reason why a whole import failed. */
export interface ImportError {
  message: string
  hint?: string
}

export interface NewImport {
  entity: KindName
  mode: 'create' | 'upsert'
  by?: string | undefined
  dry_run: boolean
  delimiter?: string | undefined
  encoding?: Encoding | undefined
  mapping: Mapping
  formats?: Formats
  currencies?: Currencies
  values?: Values
  time_zone?: string | undefined
  country?: string | undefined
  create_stages?: boolean
}

export const IMPORT_COLUMNS = [
  'id',
  'entity',
  'mode',
  'upsert_by',
  'dry_run',
  'delimiter',
  'encoding',
  'mapping',
  'formats',
  'currencies',
  'meanings',
  'time_zone',
  'country',
  'create_stages',
  'preview',
  'file',
  'upload_id',
  'status',
  'targets',
  'starts',
  'actor',
  'next_byte',
  'next_line',
  'error',
  'rows_read',
  'rows_created',
  'rows_updated',
  'rows_skipped',
  'rows_failed',
  'created_by',
  'created_at',
  'started_at',
  'ended_at',
]

export async function createImport(
  tx: Tenant,
  { by, mapping, formats = {}, currencies = {}, values = {}, ...others }: NewImport,
): Promise<ImportRow> {
  const [row] = await tx
    .trx('imports')
    .insert({
      organization_id: tx.organizationId,
      id: uuidv7(),
      ...others,
      upsert_by: by,
      mapping: JSON.stringify(mapping),
      formats: JSON.stringify(formats),
      currencies: JSON.stringify(currencies),
      meanings: JSON.stringify(values),
      status: 'created',
      created_by: JSON.stringify(tx.actor),
    })
    .returning<ImportRow[]>(IMPORT_COLUMNS)
  return row!
}

/** Throws not_found. */
export async function getImport(tx: Tenant, id: string): Promise<ImportRow> {
  const row = await tx
    .trx('imports')
    .where({ organization_id: tx.organizationId, id })
    .first<ImportRow>(IMPORT_COLUMNS)
  if (!row) throw notFound('import')
  return row
}

/**
 * The import, locked until the transaction ends; the lock waits for a transaction that writes its rows. Throws
 * not_found.
 */
export async function lockImport(tx: Tenant, id: string): Promise<ImportRow> {
  const row = await tx
    .trx('imports')
    .where({ organization_id: tx.organizationId, id })
    .forUpdate()
    .first<ImportRow>(IMPORT_COLUMNS)
  if (!row) throw notFound('import')
  return row
}

/** Imports of the given kinds, newest first. */
export function listImports(tx: Tenant, kinds: KindName[], page: IdPage): Promise<Page<ImportRow>> {
  const rows = tx
    .trx('imports')
    .where('organization_id', tx.organizationId)
    .whereIn('entity', kinds)
    .select(IMPORT_COLUMNS)
  return pageById(tx, rows, page, { of: ['imports', kinds] })
}
