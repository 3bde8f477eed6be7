import { expireExport } from '../files/moves/exports.ts'
import { deleteSome, JOB_DAYS } from '../imports/purge.ts'
import { byRange, type Purge } from '../retention/purge.ts'

/** Days for which the file of an export is kept. */
export const EXPORT_DAYS = 7

const files: Purge = {
  name: 'files of exports',
  tables: ['export_pieces'],
  keeps: `${EXPORT_DAYS} days; the export stays in the list`,
  index: 'exports_files',
  // A piece is a mebibyte.
  rows: 50,
  everyMinutes: 1,
  /** Deletes pieces of one export, which is expired before its first piece is deleted. */
  async batch(trx, rows) {
    const found = await trx.raw<{ rows: { organization_id: string; id: string }[] }>(
      `select organization_id, id from exports
       where status in ('completed', 'failed', 'expired') and pieces > 0
         and ended_at < now() - make_interval(days => ?)
       order by ended_at limit 1 for update skip locked`,
      [EXPORT_DAYS],
    )
    const key = found.rows[0]
    if (!key) return { deleted: 0, more: false }
    const { organization_id, id } = key
    await expireExport(trx, key)
    const deleted = await deleteSome(trx, 'export_pieces', { organization_id, export_id: id }, rows)
    if (deleted < rows) await trx('exports').where({ organization_id, id }).update({ pieces: 0 })
    return { deleted, more: true }
  },
}

export const exportPurges: Purge[] = [
  files,
  byRange({
    name: 'exports',
    tables: ['exports', 'export_pieces'],
    keeps: `${JOB_DAYS} days`,
    index: 'exports_pkey',
    rows: 100,
    table: 'exports',
    retention: `make_interval(days => ${JOB_DAYS})`,
    ended: "t.pieces = 0 and t.status not in ('queued', 'running') and t.ended_at < :before",
  }),
]
