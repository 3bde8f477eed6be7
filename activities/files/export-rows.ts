import { Context } from '@temporalio/activity'
import { advanceExport, failExport } from '../../db/exports/advance.ts'
import type { ExportRow } from '../../db/exports/exports.ts'
import { SYSTEM } from '../../db/model/actor.ts'
import { internalError } from '../../db/model/errors.ts'
import type { FileAnswer, FileInput } from '../../workflows/bundle/files.ts'
import type { FilesDeps } from './deps.ts'
import { failingAfterRetries } from './give-up.ts'

/** The duration of a turn; well below the shutdown grace period of a worker. */
const TURN_MS = 5_000

/** Exports the next records for some seconds, a transaction for each piece of the file. */
export function createExportRows(deps: FilesDeps) {
  const { db } = deps
  return failingAfterRetries(deps, 'exports', exportRows, fail)

  async function exportRows({ organization_id, id }: FileInput): Promise<FileAnswer> {
    const until = Date.now() + TURN_MS
    for (;;) {
      // A cancel ends the export here; the sweep records it.
      Context.current().cancellationSignal.throwIfAborted()
      const row = await db.tenant(organization_id, SYSTEM, (tx) => advanceExport(tx, id))
      if (row.status !== 'running' || Date.now() > until) return answerOf(row)
      Context.current().heartbeat()
    }
  }

  async function fail({ organization_id, id }: FileInput): Promise<FileAnswer> {
    const failure = internalError('try again later')
    return answerOf(await db.tenant(organization_id, SYSTEM, (tx) => failExport(tx, id, failure)))
  }
}

function answerOf({ status, rows, bytes, error }: ExportRow): FileAnswer {
  return {
    status: status === 'running' || status === 'failed' ? status : 'completed',
    details: `${rows} rows, ${bytes} bytes.${error ? ` ${error.message}.` : ''}`,
  }
}
