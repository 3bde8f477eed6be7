import { EXPORT_COLUMNS, type ExportRow } from '../../exports/exports.ts'
import { since } from '../../model/work-end.ts'
import type { System, Tenant } from '../../postgres/tenancy.ts'

/** Status changes of an export by its workflow and the sweep; the table is in `db/model/files/statuses.ts`. */

/**
 * Records the progress and, with `end`, the end. The caller holds the row's lock (`lockExport`). Throws if the export
 * has ended.
 */
export async function recordExportProgress(
  tx: Tenant,
  { id, started_at }: ExportRow,
  progress: Partial<Pick<ExportRow, 'columns' | 'cursor' | 'pieces' | 'rows' | 'bytes'>>,
  end?: { status: 'completed' } | { status: 'failed'; error: NonNullable<ExportRow['error']> },
): Promise<ExportRow> {
  const [row] = await tx
    .trx('exports')
    .where({ organization_id: tx.organizationId, id })
    .whereIn('status', ['queued', 'running'])
    .update({
      ...progress,
      status: end?.status ?? 'running',
      ...(end && 'error' in end
        ? { error: JSON.stringify(end.error) }
        : { started_at: started_at ?? tx.trx.fn.now() }),
      ended_at: end ? tx.trx.fn.now() : null,
      lease_until: null,
      updated_at: tx.trx.fn.now(),
    })
    .returning<ExportRow[]>(EXPORT_COLUMNS)
  if (!row) throw new Error(`export ${id} has ended`)
  if (end)
    tx.ends.push({
      work: 'export',
      status: row.status,
      organization_id: tx.organizationId,
      ms: since(row.started_at ?? row.created_at),
      of: { export_id: id, rows: row.rows, bytes: row.bytes },
    })
  return row
}

/** Records that the file was deleted. @returns whether the export was completed. */
export async function expireExport(
  system: System,
  { organization_id, id }: { organization_id: string; id: string },
): Promise<boolean> {
  const count = await system('exports')
    .where({ organization_id, id, status: 'completed' })
    .update({ status: 'expired' })
  return count > 0
}
