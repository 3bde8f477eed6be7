import type { Knex } from 'knex'
import { type Batch, byRange, type Purge } from '../retention/purge.ts'

/** Days for which an import's file and failed rows are kept after its last change. */
const IMPORT_DAYS = 30
/** The same for an import that was never started. */
const ABANDONED_DAYS = 1

/** Days for which the entry of an import or export is kept in its list. */
export const JOB_DAYS = 365

/** Tables whose rows are deleted together with an import's file. */
const PARTS = ['import_errors', 'import_keys']

const files: Purge = {
  name: 'files of imports',
  tables: PARTS,
  keeps: `${IMPORT_DAYS} days after the import's last change; ${ABANDONED_DAYS} day, if it was never started`,
  index: 'imports_files',
  rows: 1_000,
  everyMinutes: 1,
  /**
   * Deletes parts of one import: a file may have a million failed rows. The last batch detaches the file, which
   * `orphans` deletes.
   */
  async batch(trx, rows) {
    const found = await trx.raw<{ rows: { organization_id: string; id: string }[] }>(
      `select organization_id, id from imports
       where upload_id is not null and status not in ('queued', 'running')
         and updated_at < now() - make_interval(days => case when starts = 0 then ${ABANDONED_DAYS} else ${IMPORT_DAYS} end)
       order by updated_at limit 1
       -- skips imports that are being started
       for update skip locked`,
    )
    const row = found.rows[0]
    if (!row) return { deleted: 0, more: false }
    const { organization_id, id } = row
    let deleted = 0
    for (const table of PARTS)
      if (deleted < rows)
        deleted += await deleteSome(trx, table, { organization_id, import_id: id }, rows - deleted)
    if (deleted < rows) await trx('imports').where({ organization_id, id }).update({ upload_id: null })
    return { deleted, more: true }
  },
}

/** Uploads without an import: aborted ones, and those that `files` detached. */
const orphans: Purge = {
  name: 'orphaned uploads',
  tables: ['import_pieces'],
  keeps: '1 day',
  index: 'import_pieces_age',
  rows: 500,
  everyMinutes: 1,
  async batch(trx, rows): Promise<Batch> {
    const found = await trx.raw<{ rows: { organization_id: string; upload_id: string }[] }>(
      `select organization_id, upload_id from import_pieces p
       where piece = 0 and created_at < now() - interval '1 day' and not exists (
         select from imports i where i.organization_id = p.organization_id and i.upload_id = p.upload_id)
       order by created_at limit 1 for update skip locked`,
    )
    const key = found.rows[0]
    if (!key) return { deleted: 0, more: false }
    // From the end, because the remaining pieces are found through the first one.
    return { deleted: await deleteSome(trx, 'import_pieces', key, rows, 'piece desc'), more: true }
  },
}

/** @returns the number of deleted rows. */
export async function deleteSome(
  trx: Knex,
  table: string,
  key: { [column: string]: string },
  limit: number,
  order?: string,
): Promise<number> {
  const some = trx(table).select('ctid').where(key).limit(limit)
  if (order) some.orderByRaw(order)
  return trx(table).whereRaw('ctid = any(array(?))', [some]).delete()
}

export const importPurges: Purge[] = [
  files,
  orphans,
  byRange({
    name: 'imports',
    tables: ['imports', ...PARTS],
    keeps: `${JOB_DAYS} days, and as long as their file`,
    index: 'imports_pkey',
    rows: 100,
    table: 'imports',
    retention: `make_interval(days => ${JOB_DAYS})`,
    ended: "t.upload_id is null and t.status not in ('queued', 'running') and t.updated_at < :before",
  }),
]
