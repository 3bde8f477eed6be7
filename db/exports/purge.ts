import { expireExport } from '../files/moves/exports.ts'
import type { System } from '../postgres/tenancy.ts'

/** Retention of the file of an export. */
export const EXPORT_DAYS = 7

const BATCH = 200

/** Deletes the files of exports past their retention; the exports stay in the list. */
export async function purgeExports(system: System): Promise<void> {
  const { rows } = await system.raw<{ rows: { organization_id: string; id: string }[] }>(
    `select organization_id, id from exports
     where status in ('completed', 'failed') and pieces > 0 and ended_at < now() - make_interval(days => ?) limit ?`,
    [EXPORT_DAYS, BATCH],
  )
  for (const { organization_id, id } of rows) {
    await system('export_pieces').where({ organization_id, export_id: id }).delete()
    await system('exports').where({ organization_id, id }).update({ pieces: 0 })
    await expireExport(system, { organization_id, id })
  }
}
