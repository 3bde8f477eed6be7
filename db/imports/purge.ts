import type { Knex } from 'knex'

/** Retention of an import's file and failed rows after its last change. */
export const IMPORT_DAYS = 30

const BATCH = 200

/** Deletes the files of imports past their retention, and the pieces of aborted uploads. */
export async function purgeImports(system: Knex): Promise<void> {
  const { rows } = await system.raw<{ rows: { organization_id: string; id: string; upload_id: string }[] }>(
    `select organization_id, id, upload_id from imports
     where upload_id is not null and status not in ('queued', 'running')
       and updated_at < now() - make_interval(days => ?) limit ?
     -- skips imports that are being started
     for update skip locked`,
    [IMPORT_DAYS, BATCH],
  )
  for (const { organization_id, id, upload_id } of rows) {
    await system('import_errors').where({ organization_id, import_id: id }).delete()
    await system('import_keys').where({ organization_id, import_id: id }).delete()
    await system('import_pieces').where({ organization_id, upload_id }).delete()
    await system('imports').where({ organization_id, id, upload_id }).update({ upload_id: null })
  }
  await system.raw(
    `delete from import_pieces p where created_at < now() - interval '1 day'
     and not exists (select from imports i where i.organization_id = p.organization_id and i.upload_id = p.upload_id)`,
  )
}
