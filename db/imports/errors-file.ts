import { unescapeFormula } from '../csv/read-cell.ts'
import { BYTE_ORDER_MARK, csvLines, escapeFormula } from '../csv/write-cell.ts'
import type { Tenant } from '../postgres/tenancy.ts'
import type { ImportRow } from './imports.ts'
import { isFilled, type RowIssue } from './read-row.ts'

const PAGE = 500

interface ErrorRow {
  row_number: number
  line: number
  issues: RowIssue[]
  cells: string[]
}

/**
 * The rows that failed as a CSV with their own columns, to be put right and imported again, and `error`, which says
 * what is wrong. Cells beyond the header stand behind it: sent again as they are, they make the row fail again, in
 * place of becoming a column that nobody named. In UTF-8 with a byte order mark, for spreadsheets; whatever the file's
 * own encoding was.
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

/** A name that is free: a file that comes back a second time has those of before. `propose.ts` leaves them out. */
function errorColumn(header: string[]): string {
  let name = 'error'
  for (let i = 1; header.includes(name); i++) name = i === 1 ? 'import_error' : `import_error_${i}`
  return name
}

/** As many as the header has, so that `error` is in its column. */
const cellsOf = ({ cells }: ErrorRow, width: number): string[] =>
  Array.from({ length: width }, (_, i) => escapeOnce(cells[i] ?? ''))

/** Those that the header has no columns for, without the blank ones at the end. */
const beyond = ({ cells }: ErrorRow, width: number): string[] =>
  cells.slice(width, cells.findLastIndex(isFilled) + 1).map(escapeOnce)

/** Cells are as the file has them: an apostrophe that is there already is not joined by one more each time. */
const escapeOnce = (cell: string): string => escapeFormula(unescapeFormula(cell))

/** Line 12: email: must be … */
const sentence = ({ line, issues }: ErrorRow): string =>
  `line ${line}: ${issues.map(({ column, message }) => (column === null ? message : `${column}: ${message}`)).join('; ')}`
