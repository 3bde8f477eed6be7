import { Context } from '@temporalio/activity'
import { type CsvRow, readRows } from '../../db/csv/rows.ts'
import { AppError } from '../../db/errors.ts'
import { advanceImport, beginImport, failImport, type Read } from '../../db/imports/advance.ts'
import { getImport, type ImportRow } from '../../db/imports/imports.ts'
import { readPieces } from '../../db/imports/pieces.ts'
import { writeEachRow } from '../../db/imports/write-rows.ts'
import { isRefusal } from '../../db/postgres/sql-state.ts'
import { SYSTEM, type Tenant } from '../../db/postgres/tenancy.ts'
import type { FileAnswer, FileInput } from '../../workflows/files.ts'
import type { FilesDeps } from './deps.ts'
import { givingUp } from './give-up.ts'

/** Of one transaction: as many as a batch may have, and no more when they are so large together. */
const ROWS = 200
const BYTES = 1024 * 1024
/** A turn of the workflow; well under a worker's grace on shutting down. */
const TURN_MS = 5_000

/** Imports the next rows of a file for some seconds, a transaction for every 200 of them. */
export function createImportRows(deps: FilesDeps) {
  const { db, log } = deps
  return givingUp(deps, importRows, fail)

  async function importRows({ organization_id, id, start }: FileInput): Promise<FileAnswer> {
    const of = { id, start }
    const asSystem = <T>(work: (tx: Tenant) => Promise<T>) => db.tenant(organization_id, SYSTEM, work)
    let row = await asSystem((tx) => beginImport(tx, of))
    if (!row) return elsewhere(await asSystem((tx) => getImport(tx, id)), start)
    const actor = row.actor ?? SYSTEM
    const file = readRows(readPieces(asSystem, row.upload_id!, row.next_byte), row.file!.delimiter, {
      byte: row.next_byte,
      line: row.next_line,
    })
    const until = Date.now() + TURN_MS
    try {
      while (row.status === 'running' && Date.now() < until) {
        const from: number = row.next_byte
        const read = await next(file, from + BYTES)
        const advance = (write?: typeof writeEachRow) =>
          db.tenant(organization_id, actor, (tx) => advanceImport(tx, of, from, read, write))
        row = await advance()
          .catch((error: unknown) => {
            if (!isRefusal(error)) throw error
            log.warn(
              { organization_id, import_id: id, code: (error as { code: string }).code },
              'rows go one by one',
            )
            return advance(writeEachRow)
          })
          .catch((error: unknown) => {
            if (!(error instanceof AppError)) throw error
            return asSystem((tx) => failImport(tx, of, error))
          })
        if (!row) return elsewhere(await asSystem((tx) => getImport(tx, id)), start)
        Context.current().heartbeat()
      }
    } finally {
      await file.return()
    }
    return answerOf(row)
  }

  async function fail({ organization_id, id, start }: FileInput): Promise<FileAnswer> {
    const failure = new AppError('internal_error', 'something went wrong on our side', {
      hint: 'resume it later',
    })
    const row = await db.tenant(organization_id, SYSTEM, async (tx) => {
      await failImport(tx, { id, start }, failure)
      return getImport(tx, id)
    })
    return elsewhere(row, start)
  }
}

/** The next rows, up to the one that reaches this byte, and what comes behind them. */
async function next(file: AsyncGenerator<CsvRow, void, void>, until: number): Promise<Read> {
  const rows: CsvRow[] = []
  try {
    while (rows.length < ROWS && (rows.at(-1)?.end.byte ?? 0) < until) {
      const one = await file.next()
      if (one.done) return { rows, end: 'end' }
      rows.push(one.value)
    }
    return { rows, end: 'more' }
  } catch (error) {
    if (!(error instanceof AppError)) throw error
    return { rows, end: { failure: error } }
  }
}

/** Stopped, or taken over by another start, or by another attempt of this turn: then it is for the next one to go on. */
const elsewhere = (row: ImportRow, start: number): FileAnswer =>
  row.starts === start ? answerOf(row) : { status: 'stopped', details: 'It was started anew.' }

function answerOf(row: ImportRow): FileAnswer {
  const { status, rows_read, file, rows_created, rows_updated, rows_skipped, rows_failed, dry_run, error } =
    row
  const counts = `${rows_created} created, ${rows_updated} updated, ${rows_skipped} skipped, ${rows_failed} failed`
  return {
    status: status === 'running' || status === 'completed' || status === 'failed' ? status : 'stopped',
    details: `${dry_run ? 'Dry run. ' : ''}Row ${rows_read} of ${file?.rows ?? 0}: ${counts}.${error ? ` ${error.message}.` : ''}`,
  }
}
