import { Context } from '@temporalio/activity'
import { advanceImport, beginImport, failImport, type Read } from '../../db/imports/advance.ts'
import { getImport, type ImportRow } from '../../db/imports/imports.ts'
import { readPieces } from '../../db/imports/pieces.ts'
import { writeEachRow } from '../../db/imports/write-rows.ts'
import { SYSTEM } from '../../db/model/actor.ts'
import { type CsvRow, readRows } from '../../db/model/csv/rows.ts'
import { AppError, internalError } from '../../db/model/errors.ts'
import { isRefusal } from '../../db/postgres/sql-state.ts'
import type { Tenant } from '../../db/postgres/tenancy.ts'
import type { FileAnswer, FileInput } from '../../workflows/bundle/files.ts'
import type { FilesDeps } from './deps.ts'
import { failingAfterRetries } from './give-up.ts'

/** The limits of one transaction: the rows of a batch, and their size in total. */
const ROWS = 200
const BYTES = 1024 * 1024
/** The duration of a turn; well below the shutdown grace period of a worker. */
const TURN_MS = 5_000

/** Imports the next rows of a file for some seconds, a transaction for every 200 of them. */
export function createImportRows(deps: FilesDeps) {
  const { db, log } = deps
  return failingAfterRetries(deps, 'imports', importRows, fail)

  async function importRows({ organization_id, id, start }: FileInput): Promise<FileAnswer> {
    const of = { id, start }
    const asSystem = <T>(work: (tx: Tenant) => Promise<T>) => db.tenant(organization_id, SYSTEM, work)
    let row = await asSystem((tx) => beginImport(tx, of))
    if (!row) return answerToStart(await asSystem((tx) => getImport(tx, id)), start)
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
              'PostgreSQL refused a batch: writing its rows one by one',
            )
            return advance(writeEachRow)
          })
          .catch((error: unknown) => {
            if (!(error instanceof AppError)) throw error
            return asSystem((tx) => failImport(tx, of, error))
          })
        if (!row) return answerToStart(await asSystem((tx) => getImport(tx, id)), start)
        Context.current().heartbeat()
      }
    } finally {
      await file.return()
    }
    return answerOf(row)
  }

  async function fail({ organization_id, id, start }: FileInput): Promise<FileAnswer> {
    const failure = internalError('resume it later')
    const row = await db.tenant(organization_id, SYSTEM, async (tx) => {
      await failImport(tx, { id, start }, failure)
      return getImport(tx, id)
    })
    return answerToStart(row, start)
  }
}

/** The next rows, up to the one that reaches this byte, and whether more follow. */
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

/** The answer if the row does not belong to this turn: it was stopped, or another start or attempt advanced it. */
const answerToStart = (row: ImportRow, start: number): FileAnswer =>
  row.starts === start ? answerOf(row) : { status: 'stopped', details: 'A later start replaced this one.' }

function answerOf(row: ImportRow): FileAnswer {
  const { status, rows_read, file, rows_created, rows_updated, rows_skipped, rows_failed, dry_run, error } =
    row
  const counts = `${rows_created} created, ${rows_updated} updated, ${rows_skipped} skipped, ${rows_failed} failed`
  return {
    status: status === 'running' || status === 'completed' || status === 'failed' ? status : 'stopped',
    details: `${dry_run ? 'Dry run. ' : ''}Row ${rows_read} of ${file?.rows ?? 0}: ${counts}.${error ? ` ${error.message}.` : ''}`,
  }
}
