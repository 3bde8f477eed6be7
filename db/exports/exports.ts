import { v7 as uuidv7 } from 'uuid'
import { getOrganization } from '../access/organization.ts'
import { type IdPage, pageById } from '../lists/id-list.ts'
import type { Actor } from '../model/actor.ts'
import { notFound } from '../model/errors.ts'
import { type ExportFormat, PLAIN, separatorsOf } from '../model/files/export-format.ts'
import type { ExportStatus } from '../model/files/statuses.ts'
import type { Page } from '../model/lists/page.ts'
import type { KindName } from '../model/records/kind.ts'
import { kinds } from '../model/records/kinds/index.ts'
import { ofCaller } from '../model/records/of-caller.ts'
import type { Tenant } from '../postgres/tenancy.ts'
import { organizationTimezone } from '../records/local-times.ts'
import { checkSelection, ratesOfSelection, type Selection } from '../records/selection.ts'

export interface ExportRow {
  id: string
  entity: KindName
  /** The list's parameters, as sent and as parsed. */
  query: Record<string, string | string[]>
  list_query: Selection
  fields: string[] | null
  bom: boolean
  options: Partial<ExportFormat>
  status: ExportStatus
  columns: string[] | null
  starts: number
  cursor: string | null
  pieces: number
  rows: number
  bytes: number
  error: { message: string; hint?: string } | null
  created_by: Actor
  created_at: Date
  started_at: Date | null
  ended_at: Date | null
}

export type NewExport = Pick<ExportRow, 'entity' | 'query' | 'list_query' | 'fields' | 'bom' | 'options'>

export const EXPORT_COLUMNS = [
  'id',
  'entity',
  'query',
  'list_query',
  'fields',
  'bom',
  'options',
  'status',
  'columns',
  'starts',
  'cursor',
  'pieces',
  'rows',
  'bytes',
  'error',
  'created_by',
  'created_at',
  'started_at',
  'ended_at',
]

/** Queues an export. Throws `validation_error` for a query that the list refuses. */
export async function createExport(tx: Tenant, values: NewExport): Promise<ExportRow> {
  await checkSelection(tx, values.entity, values.list_query)
  const filters = ofCaller(tx.actor, kinds[values.entity], values.list_query.filters)
  // Kept: if the organization's changes, the cursors of the export are still valid.
  const { locale } = await getOrganization(tx)
  const options = { ...PLAIN, ...separatorsOf(locale), ...values.options }
  const time_zone = values.list_query.time_zone ?? (await organizationTimezone(tx))
  const rates = await ratesOfSelection(tx, values.entity, values.list_query)
  const [row] = await tx
    .trx('exports')
    .insert({
      organization_id: tx.organizationId,
      id: uuidv7(),
      ...values,
      options: JSON.stringify(options),
      query: JSON.stringify(values.query),
      list_query: JSON.stringify({ ...values.list_query, filters, time_zone, rates }),
      status: 'queued',
      created_by: JSON.stringify(tx.actor),
    })
    .returning<ExportRow[]>(EXPORT_COLUMNS)
  tx.wake('agx_files')
  return row!
}

/** Throws not_found. */
export async function getExport(tx: Tenant, id: string): Promise<ExportRow> {
  const row = await tx
    .trx('exports')
    .where({ organization_id: tx.organizationId, id })
    .first<ExportRow>(EXPORT_COLUMNS)
  if (!row) throw notFound('export')
  return row
}

/** The export, locked until the transaction ends. Throws not_found. */
export async function lockExport(tx: Tenant, id: string): Promise<ExportRow> {
  const row = await tx
    .trx('exports')
    .where({ organization_id: tx.organizationId, id })
    .forUpdate()
    .first<ExportRow>(EXPORT_COLUMNS)
  if (!row) throw notFound('export')
  return row
}

/** Exports of the given kinds, newest first. */
export function listExports(tx: Tenant, kinds: KindName[], page: IdPage): Promise<Page<ExportRow>> {
  const rows = tx
    .trx('exports')
    .where('organization_id', tx.organizationId)
    .whereIn('entity', kinds)
    .select(EXPORT_COLUMNS)
  return pageById(tx, rows, page, { of: ['exports', kinds] })
}

/** The format of an export; one that was made before formats has none. */
export const formatOf = ({ options }: Pick<ExportRow, 'options'>): ExportFormat => ({ ...PLAIN, ...options })

/** The file, piece by piece, each read in a separate transaction; of a workbook the rows as CSV. */
export async function* exportFile(
  tenant: <T>(work: (tx: Tenant) => Promise<T>) => Promise<T>,
  { id, pieces }: Pick<ExportRow, 'id' | 'pieces'>,
): AsyncGenerator<Buffer, void, void> {
  for (let piece = 0; piece < pieces; piece++) {
    const row = await tenant((tx) =>
      tx
        .trx('export_pieces')
        .where({ organization_id: tx.organizationId, export_id: id, piece })
        .first<{ bytes: Buffer } | undefined>('bytes'),
    )
    // A truncated file must not look complete.
    if (!row) throw new Error('the file of the export has expired while it was being read')
    yield row.bytes
  }
}
