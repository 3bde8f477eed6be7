import { namedUsers } from '../access/members.ts'
import { beginImport as markBegun, recordImportProgress } from '../files/moves/imports.ts'
import type { CsvRow } from '../model/csv/rows.ts'
import type { AppError } from '../model/errors.ts'
import { columnsOf, type Reading } from '../model/imports/read-row.ts'
import { sensitiveColumns } from '../model/imports/targets.ts'
import type { Tenant } from '../postgres/tenancy.ts'
import { organizationCurrency } from '../records/currency.ts'
import { organizationCountry } from '../records/local-phones.ts'
import { organizationTimezone } from '../records/local-times.ts'
import { requireFreeStorage } from '../storage/usage.ts'
import { createStages, missingStages } from './create-stages.ts'
import { type ImportRow, lockImport, type PreviewRow, type Values } from './imports.ts'
import { targetsFor } from './targets.ts'
import { forgetKeys, tryRows } from './try-rows.ts'
import { type Job, type Written, writeRows } from './write-rows.ts'

/** Identifies the calling workflow: each start of an import is a new one. */
export interface StartOf {
  id: string
  start: number
}

/**
 * Marks the import as running, if `start` is its current start. Locks the returned row until the transaction ends.
 * @returns undefined if the import was stopped or started again.
 */
export async function beginImport(tx: Tenant, { id, start }: StartOf): Promise<ImportRow | undefined> {
  const row = await lockImport(tx, id)
  if (row.starts !== start) return undefined
  if (row.status === 'running') return row
  if (row.status !== 'queued') return undefined
  return markBegun(tx, row)
}

/** The next rows of a file, and whether more may follow. */
export interface Read {
  rows: CsvRow[]
  /** `failure`: the rest of the file cannot be read. */
  end: 'more' | 'end' | { failure: AppError }
}

/**
 * Processes the next rows of an import. Records, failed rows and progress are written in one transaction: a crash rolls
 * back all of them, and the next worker continues after the last committed rows. `write` is `writeEachRow` after
 * `writeRows` failed.
 * @returns the updated import; undefined if these are not its next rows, or if it was stopped or started again. Throws
 * `quota_exceeded` if the organization is full.
 */
export async function advanceImport(
  tx: Tenant,
  of: StartOf,
  from: number,
  { rows, end }: Read,
  write = writeRows,
): Promise<ImportRow | undefined> {
  const row = await beginImport(tx, of)
  if (!row || row.next_byte !== from) return undefined
  if (!row.dry_run) await requireFreeStorage(tx)
  const values = valuesByColumn(row.meanings)
  const missing = await missingStages(tx, row, values, rows)
  const process = async (tx: Tenant) => {
    await createStages(tx, missing)
    const job = await jobOf(tx, row, values)
    return { job, written: await write({ ...tx, job: row.id }, job, rows) }
  }
  const written: Written & { preview?: PreviewRow[] } = row.dry_run
    ? await tryRows(tx, row, rows, process)
    : (await process(tx)).written
  if (row.dry_run && end !== 'more') await forgetKeys(tx, row.id)
  const targets = await targetsFor(tx, row.entity, row.upsert_by)
  const isSensitive = sensitiveColumns(row.file!.header, row.targets!, targets)
  await recordFailures(tx, row, rows, written, isSensitive)
  const last = rows.at(-1)?.end
  const progress = {
    next_byte: last?.byte ?? row.next_byte,
    next_line: last?.line ?? row.next_line,
    rows_read: row.rows_read + rows.length,
    rows_created: row.rows_created + written.created,
    rows_updated: row.rows_updated + written.updated,
    rows_skipped: row.rows_skipped + written.skipped,
    rows_failed: row.rows_failed + written.failures.length,
    ...(written.preview && { preview: JSON.stringify(written.preview) }),
  }
  if (end === 'more') return recordImportProgress(tx, row.id, progress)
  if (end === 'end') return recordImportProgress(tx, row.id, progress, { status: 'completed' })
  return recordImportProgress(tx, row.id, progress, failedWith(end.failure))
}

/** How the rows are read: by the fields and settings that the organization has now. */
async function jobOf(tx: Tenant, row: ImportRow, values: Reading['values']): Promise<Job> {
  const { header, delimiter, formats: found } = row.file!
  const targets = await targetsFor(tx, row.entity, row.upsert_by)
  // What was requested wins over what the values show.
  const formats = found?.map((format, i) => ({ ...format, ...row.formats[header[i]!] }))
  const columns = columnsOf(header, row.targets!, targets, formats)
  return {
    ...row,
    columns,
    values,
    users: columns.some(({ target }) => target.type === 'user') ? await namedUsers(tx) : [],
    width: header.length,
    delimiter,
    currency: await organizationCurrency(tx),
    timezone: row.time_zone ?? (await organizationTimezone(tx)),
    country: row.country ?? (await organizationCountry(tx)),
  }
}

const valuesByColumn = (values: Values) =>
  new Map(
    Object.entries(values).map(([column, meanings]) => [
      column,
      new Map(Object.entries(meanings).map(([value, meant]) => [value.trim().toLowerCase(), meant])),
    ]),
  )

/** Ends an import that cannot write any further rows, for example because its upsert key is no longer unique. */
export async function failImport(tx: Tenant, of: StartOf, failure: AppError): Promise<ImportRow | undefined> {
  const row = await beginImport(tx, of)
  return row && recordImportProgress(tx, row.id, {}, failedWith(failure))
}

const failedWith = ({ message, details: { hint } }: AppError) => ({
  status: 'failed' as const,
  error: { message, ...(hint ? { hint } : {}) },
})

async function recordFailures(
  tx: Tenant,
  row: ImportRow,
  rows: CsvRow[],
  { failures }: Written,
  isSensitive: boolean[],
): Promise<void> {
  if (failures.length === 0) return
  const { header } = row.file!
  const isSecret = (column: string | null) => column !== null && isSensitive[header.indexOf(column)]
  const numbers = new Map(rows.map((one, index) => [one, row.rows_read + index + 1]))
  await tx.trx('import_errors').insert(
    failures.map((failure) => ({
      organization_id: tx.organizationId,
      import_id: row.id,
      row_number: numbers.get(failure.row),
      line: failure.row.line,
      issues: storable(
        JSON.stringify(
          failure.issues.map((issue) =>
            isSecret(issue.column) ? { ...issue, message: 'is not a valid value' } : issue,
          ),
        ),
      ),
      cells: storable(JSON.stringify(failure.row.cells.map((cell, i) => (isSensitive[i] ? '' : cell)))),
    })),
  )
}

/** JSON without NUL, which PostgreSQL refuses. */
const storable = (json: string) => json.replaceAll('\\u0000', '\\ufffd')
