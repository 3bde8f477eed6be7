import { unescapeFormula } from '../model/csv/read-cell.ts'
import { BYTE_ORDER_MARK, csvLines, escapeFormula } from '../model/csv/write-cell.ts'
import { isFilled, type RowIssue } from '../model/imports/read-row.ts'
import type { Tenant } from '../postgres/tenancy.ts'
import type { ImportRow } from './imports.ts'

const PAGE = 500

interface ErrorRow {
  row_number: number
  line: number
  issues: RowIssue[]
  cells: string[]
}

/**
 * The failed rows as CSV, to be corrected and imported again: their own columns, and `error` with the issues. Cells
 * beyond the header follow `error`: if resubmitted unchanged, they make the row fail again instead of becoming an
 * unnamed column. Always UTF-8 with a byte order mark, for spreadsheets.
 */
export async function* errorsFile(
  tenant: <T>(work: (tx: Tenant) => Promise<T>) => Promise<T>,
  { id, file }: Pick<ImportRow, 'id' | 'file'>,
): AsyncGenerator<string, void, void> {
  const delimiter = file?.delimiter ?? ','
  const header = file?.header ?? []
  yield BYTE_ORDER_MARK + csvLines([[...header.map(escapeFormula), errorColumn(header)]], delimiter)
  for (let last = 0; ; ) {
    const rows = await tenant((tx) =>
      tx
        .trx('import_errors')
        .where({ organization_id: tx.organizationId, import_id: id })
        .where('row_number', '>', last)
        .orderBy('row_number')
        .limit(PAGE)
        .select<ErrorRow[]>('row_number', 'line', 'issues', 'cells'),
    )
    if (rows.length > 0)
      yield csvLines(
        rows.map((row) => [...cellsOf(row, header.length), sentence(row), ...beyond(row, header.length)]),
        delimiter,
      )
    if (rows.length < PAGE) return
    last = rows.at(-1)!.row_number
  }
}

/** An unused column name: a resubmitted file contains the earlier ones, which `propose.ts` ignores. */
function errorColumn(header: string[]): string {
  let name = 'error'
  for (let i = 1; header.includes(name); i++) name = i === 1 ? 'import_error' : `import_error_${i}`
  return name
}

/** Padded to the width of the header, so that `error` is in its column. */
const cellsOf = ({ cells }: ErrorRow, width: number): string[] =>
  Array.from({ length: width }, (_, i) => escapeOnce(cells[i] ?? ''))

/** The cells beyond the header, without trailing blank ones. */
const beyond = ({ cells }: ErrorRow, width: number): string[] =>
  cells.slice(width, cells.findLastIndex(isFilled) + 1).map(escapeOnce)

/** Removes an existing apostrophe first, so that resubmitting a file does not add another. */
const escapeOnce = (cell: string): string => escapeFormula(unescapeFormula(cell))

/** An issue as text: "Line 12: email: must be …". */
const sentence = ({ line, issues }: ErrorRow): string =>
  `line ${line}: ${issues.map(({ column, message }) => (column === null ? message : `${column}: ${message}`)).join('; ')}`
