import { Context } from '@temporalio/activity'
import { advanceExport } from '../../db/exports/advance.ts'
import type { ExportRow } from '../../db/exports/exports.ts'
import type { Actor } from '../../db/tenancy.ts'
import type { FileAnswer, FileInput } from '../../workflows/files.ts'
import type { FilesDeps } from './deps.ts'

/** A turn of the workflow; well under a worker's grace on shutting down. */
const TURN_MS = 5_000
const SYSTEM: Actor = { type: 'system', id: null }

/** Exports the next records for some seconds, a transaction for each piece of the file. */
export function createExportRows({ db }: FilesDeps) {
  return async function exportRows({ organization_id, id }: FileInput): Promise<FileAnswer> {
    const until = Date.now() + TURN_MS
    for (;;) {
      const row = await db.tenant(organization_id, SYSTEM, (tx) => advanceExport(tx, id))
      if (row.status !== 'running' || Date.now() > until) return answerOf(row)
      Context.current().heartbeat()
    }
  }
}

function answerOf({ status, rows, bytes, error }: ExportRow): FileAnswer {
  return {
    status: status === 'running' || status === 'failed' ? status : 'completed',
    details: `${rows} rows, ${bytes} bytes.${error ? ` ${error.message}.` : ''}`,
  }
}
