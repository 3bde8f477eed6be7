import { recordExportProgress } from '../files/moves/exports.ts'
import { BYTE_ORDER_MARK, csvLines } from '../model/csv/write-cell.ts'
import { AppError } from '../model/errors.ts'
import { PLAIN } from '../model/files/export-format.ts'
import type { Tenant } from '../postgres/tenancy.ts'
import { listRecords } from '../records/list.ts'
import { requireFreeStorage } from '../storage/usage.ts'
import { cellsOf, exportColumns } from './columns.ts'
import { type ExportRow, formatOf, lockExport } from './exports.ts'

/** Maximum number of records in the first piece, and in later ones. */
const FIRST_ROWS = 50
const MAX_ROWS = 500
/** Target size of a piece, which is held in memory. The size is estimated from the records so far. */
const PIECE_BYTES = 1_048_576

/**
 * Adds the next piece to the file of an export. The rows and the progress are written in one transaction, so that a
 * crash leaves both or neither. @returns the updated export; an export that has ended is returned unchanged.
 */
export async function advanceExport(tx: Tenant, id: string): Promise<ExportRow> {
  const row = await lockExport(tx, id)
  if (!isOpen(row)) return row
  try {
    return await addPiece(tx, row)
  } catch (error) {
    // For example, the type of the custom field of the sort has changed.
    if (!(error instanceof AppError)) throw error
    return recordExportProgress(tx, row, {}, failedWith(error))
  }
}

/** Ends an export as failed. No-op if it has ended. */
export async function failExport(tx: Tenant, id: string, failure: AppError): Promise<ExportRow> {
  const row = await lockExport(tx, id)
  return isOpen(row) ? recordExportProgress(tx, row, {}, failedWith(failure)) : row
}

const isOpen = ({ status }: ExportRow) => status === 'queued' || status === 'running'

const failedWith = ({ message, details: { hint } }: AppError) => ({
  status: 'failed' as const,
  error: { message, ...(hint ? { hint } : {}) },
})

async function addPiece(tx: Tenant, row: ExportRow): Promise<ExportRow> {
  await requireFreeStorage(tx)
  const { id, entity, list_query, fields, bom, pieces } = row
  const format = formatOf(row)
  // Numbers of a workbook are no texts: they are read from CSV in its plain form.
  const { delimiter, decimal } = format.format === 'csv' ? format : PLAIN
  const columns = row.columns ?? (await exportColumns(tx, entity, fields, format.names))
  const page = await listRecords(tx, entity, {
    ...list_query,
    // One that a version without exchange rates began goes on without them.
    rates: list_query.rates ?? null,
    limit: rowsOfNextPiece(row),
    offset: 0,
    count: 'none',
    cursor: row.cursor ?? undefined,
  })
  const cells = await cellsOf(tx, entity, columns, page.data, decimal)
  const mark = bom && format.format === 'csv' ? BYTE_ORDER_MARK : ''
  const head = pieces === 0 ? mark + csvLines([columns], delimiter) : ''
  const bytes = Buffer.from(head + csvLines(page.data.map(cells), delimiter))
  await tx.trx('export_pieces').insert({
    organization_id: tx.organizationId,
    export_id: id,
    piece: pieces,
    bytes,
  })
  const progress = {
    columns,
    cursor: page.next_cursor,
    pieces: pieces + 1,
    rows: row.rows + page.data.length,
    bytes: row.bytes + bytes.length,
  }
  return recordExportProgress(tx, row, progress, page.has_more ? undefined : { status: 'completed' })
}

function rowsOfNextPiece({ rows, bytes }: ExportRow): number {
  if (rows === 0) return FIRST_ROWS
  return Math.min(MAX_ROWS, Math.max(1, Math.floor(PIECE_BYTES / (bytes / rows))))
}
