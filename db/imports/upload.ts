import { v7 as uuidv7 } from 'uuid'
import { findDelimiter } from '../../workflows/shared/csv/delimiter.ts'
import { CSV } from '../../workflows/shared/limits.ts'
import { toStorable } from '../../workflows/shared/storable-text.ts'
import { markImportReady } from '../files/moves/imports.ts'
import { FormatFinder } from '../model/csv/column-format.ts'
import { type Encoding, ToUtf8, WRONG_BYTE } from '../model/csv/encoding.ts'
import { unescapeFormula } from '../model/csv/read-cell.ts'
import { readRows } from '../model/csv/rows.ts'
import { AppError, conflict, type Issue, invalid } from '../model/errors.ts'
import { proposeMapping } from '../model/imports/propose.ts'
import { isFilled } from '../model/imports/read-row.ts'
import { type CountedValue, ValueFinder } from '../model/imports/values.ts'
import { looksLikeEmail } from '../model/records/values.ts'
import type { Tenant } from '../postgres/tenancy.ts'
import { type ImportFile, type ImportRow, lockImport } from './imports.ts'
import { meantValues } from './meant.ts'
import { addPieces, deletePieces, PIECE_BYTES } from './pieces.ts'
import { progressAtStart, wasStarted } from './state.ts'
import { targetsFor, withoutSensitive } from './targets.ts'

/** Pieces per insert statement. */
const PIECES_PER_INSERT = 4
const SAMPLES = 3
/** Maximum number of rows: that of a spreadsheet below its header. */
export const MAX_ROWS = 1_048_575

type Transactions = <T>(work: (tx: Tenant) => Promise<T>) => Promise<T>

/**
 * Receives or replaces the file of an import that has not written any records. The upload is stored as a stream, a few
 * pieces at a time, and parsed at the same time, so that an unreadable file is refused. Throws `conflict`;
 * `invalid_request` with the line of a CSV error; `validation_error` for its header.
 */
export async function receiveFile(
  tenant: Transactions,
  row: ImportRow,
  upload: AsyncIterable<Buffer>,
  charset?: Encoding,
  maxRows = MAX_ROWS,
): Promise<ImportRow> {
  requireReplaceable(row)
  const uploadId = uuidv7()
  try {
    const file = await readFile(tenant, uploadId, row, upload, charset, maxRows)
    return await tenant(async (tx) => {
      const before = await lockImport(tx, row.id)
      requireReplaceable(before)
      const targets = await targetsFor(tx, row.entity, row.upsert_by)
      const { mapping: proposed, dropped, source } = proposeMapping(row.entity, file.header, targets)
      const meant = await meantValues(tx, file, { ...proposed, ...before.mapping }, targets)
      const found: ImportFile = withoutSensitive(
        { ...file, meant, proposed, dropped, ...(source && { source }) },
        proposed,
        targets,
      )
      if (before.upload_id) await deletePieces(tx, before.upload_id)
      await tx.trx('import_errors').where({ organization_id: tx.organizationId, import_id: row.id }).delete()
      return markImportReady(tx, row.id, {
        upload_id: uploadId,
        file: JSON.stringify(found),
        ...progressAtStart(found),
      })
    })
  } catch (error) {
    await tenant((tx) => deletePieces(tx, uploadId)).catch(() => {})
    throw error
  }
}

function requireReplaceable(row: ImportRow): void {
  if (row.status === 'queued' || row.status === 'running')
    throw conflict('the import is running', { hint: 'stop it first' })
  if (wasStarted(row) && !row.dry_run)
    throw conflict('rows of the file have already been imported', { hint: 'create another import' })
}

async function readFile(
  tenant: Transactions,
  uploadId: string,
  row: ImportRow,
  upload: AsyncIterable<Buffer>,
  declared: Encoding | undefined,
  maxRows: number,
): Promise<Omit<ImportFile, 'proposed' | 'dropped'>> {
  const decoder = new ToUtf8({ chosen: row.encoding ?? undefined, declared })
  const counted = { bytes: 0 }
  const pieces = stored(tenant, uploadId, piecesOf(decoded(upload, decoder, counted)))
  const first = await pieces.next()
  if (first.done) throw invalid([issue('the file is empty')])
  const { delimiter, skip } = row.delimiter
    ? { delimiter: row.delimiter, skip: findDelimiter(first.value).skip }
    : findDelimiter(first.value)

  const beginning = { byte: skip, line: skip > 0 ? 2 : 1 }
  let header: string[] | undefined
  let finders: FormatFinder[] = []
  let values: ValueFinder[] = []
  let start = beginning
  let rows = 0
  const samples: string[][] = []
  for await (const { cells, end } of readRows(
    after(first.value.subarray(skip), pieces),
    delimiter,
    beginning,
  )) {
    if (!header) {
      header = headerOf(cells)
      finders = header.map(() => new FormatFinder())
      values = header.map(() => new ValueFinder())
      start = end
      continue
    }
    rows++
    if (rows > maxRows) throw invalid([tooManyRows(maxRows)])
    for (const [index, finder] of finders.entries()) finder.see(cells[index] ?? '')
    for (const [index, finder] of values.entries()) finder.see(cells[index] ?? '')
    if (samples.length < SAMPLES && cells.some(isFilled)) samples.push(cells)
  }
  if (!header) throw invalid([issue('the file is empty')])
  return {
    bytes: counted.bytes,
    rows,
    encoding: decoder.encoding!,
    delimiter,
    header,
    samples: header.map((_, index) =>
      // Replaces NUL, and a lone surrogate that truncation can leave.
      samples.map((cells) => toStorable(shown(cells[index] ?? '').slice(0, 100))),
    ),
    formats: finders.map((finder) => finder.found()),
    values: bounded(values.map((finder) => finder.found() ?? null)),
    start,
  }
}

/** Characters of all values that are kept. */
const VALUES_KEPT = 200_000

/** The lists of values, of the first columns until they are too long together. */
function bounded(lists: (CountedValue[] | null)[]): (CountedValue[] | null)[] {
  let left = VALUES_KEPT
  return lists.map((list) => {
    left -= (list ?? []).reduce((sum, { value }) => sum + value.length + 20, 0)
    return left < 0
      ? null
      : (list?.map(({ value, rows }) => ({ value: toStorable(shown(value)), rows })) ?? null)
  })
}

/** The names of the columns; an unnamed column, as at the end of a sheet, gets a name. Throws `validation_error`. */
function headerOf(cells: string[]): string[] {
  if (cells.length > CSV.columns) throw invalid([issue(`the file has more than ${CSV.columns} columns`)])
  const header = cells.map((cell, index) => {
    const name = shown(unescapeFormula(cell.trim()))
    return name === '' || name === '__proto__' ? `column ${index + 1}` : name
  })
  const issues: Issue[] = header.flatMap((name, index) => {
    const earlier = header.indexOf(name)
    return earlier === index
      ? []
      : [
          issue(
            `columns ${earlier + 1} and ${index + 1} are both called ${name.slice(0, 100)}`,
            'rename one of them',
          ),
        ]
  })
  if (cells.some((cell) => cell.includes('\0')))
    issues.push(issue('the first row contains NUL: the file is not text', 'save the sheet as "CSV UTF-8"'))
  if (cells.some(looksLikeEmail) || !cells.some((cell) => /\p{Letter}/u.test(cell)))
    issues.push(
      issue('the first row is not a header: it contains values', 'add a first row with the column names'),
    )
  if (issues.length > 0) throw invalid(issues)
  return header
}

const shown = (text: string) => text.replaceAll(WRONG_BYTE, '\ufffd')

const tooManyRows = (max: number): Issue => ({
  loc: ['body', 'rows'],
  msg: `the file has more than ${max.toLocaleString('en')} rows`,
  type: 'too_many_rows',
  hint: 'split it into several files, each with the header',
})

const issue = (msg: string, hint?: string): Issue => ({
  loc: ['body', 'header'],
  msg,
  type: 'invalid_header',
  ...(hint ? { hint } : {}),
})

const WORKBOOKS = ['504b0304', 'd0cf11e0'].map((hex) => Buffer.from(hex, 'hex'))

/** Refuses a spreadsheet file instead of CSV, by its signature: .xlsx (zip) or .xls. */
function refuseWorkbook(beginning: Buffer): void {
  if (WORKBOOKS.some((magic) => beginning.subarray(0, magic.length).equals(magic)))
    throw new AppError('invalid_request', 'the file is a workbook, not CSV', {
      hint: 'save the sheet as "CSV UTF-8" and upload that file',
    })
}

async function* decoded(
  upload: AsyncIterable<Buffer>,
  decoder: ToUtf8,
  counted: { bytes: number },
): AsyncGenerator<Buffer> {
  // Only full pieces, because the decoder must see the whole byte order mark.
  for await (const piece of piecesOf(upload)) {
    if (counted.bytes === 0) refuseWorkbook(piece)
    counted.bytes += piece.length
    yield decoder.write(piece)
  }
  yield decoder.end()
}

/** Divides bytes into pieces of equal size; the last one may be shorter. Empty input has no piece. */
async function* piecesOf(bytes: AsyncIterable<Buffer>): AsyncGenerator<Buffer, void, void> {
  let waiting: Buffer[] = []
  let length = 0
  for await (const part of bytes) {
    waiting.push(part)
    length += part.length
    if (length < PIECE_BYTES) continue
    const joined = Buffer.concat(waiting)
    let at = 0
    for (; length - at >= PIECE_BYTES; at += PIECE_BYTES) yield joined.subarray(at, at + PIECE_BYTES)
    waiting = [joined.subarray(at)]
    length -= at
  }
  if (length > 0) yield Buffer.concat(waiting)
}

async function* stored(
  tenant: Transactions,
  uploadId: string,
  pieces: AsyncIterable<Buffer>,
): AsyncGenerator<Buffer, void, void> {
  const waiting: Buffer[] = []
  let number = 0
  const flush = async () => {
    const batch = waiting.splice(0)
    if (batch.length > 0) await tenant((tx) => addPieces(tx, uploadId, number, batch))
    number += batch.length
  }
  for await (const piece of pieces) {
    waiting.push(piece)
    if (waiting.length === PIECES_PER_INSERT) await flush()
    yield piece
  }
  await flush()
}

async function* after(first: Buffer, others: AsyncIterable<Buffer>): AsyncGenerator<Buffer> {
  yield first
  yield* others
}
