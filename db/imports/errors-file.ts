import { BYTE_ORDER_MARK, csvLines, defused } from '../csv/write-cell.ts'
import type { Tenant } from '../tenancy.ts'
import type { ImportRow } from './imports.ts'
import type { RowIssue } from './read-row.ts'

const PAGE = 500

interface ErrorRow {
  row_number: number
  line: number
  issues: RowIssue[]
  cells: string[]
}

/**
 * The rows that failed as a CSV with their own columns, to be put right and imported again, and `error`, which says
 * what is wrong. In UTF-8 with a byte order mark, for spreadsheets; whatever the file's own encoding was.
 */
export async function* errorsFile(
  tenant: <T>(work: (tx: Tenant) => Promise<T>) => Promise<T>,
  { id, file }: Pick<ImportRow, 'id' | 'file'>,
): AsyncGenerator<string, void, void> {
  const delimiter = file?.delimiter ?? ','
  const header = file?.header ?? []
  yield BYTE_ORDER_MARK +
    csvLines([[...header.map(defused), header.includes('error') ? 'import_error' : 'error']], delimiter)
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
        rows.map((row) => [...cellsOf(row, header.length), sentence(row)]),
        delimiter,
      )
    if (rows.length < PAGE) return
    last = rows.at(-1)!.row_number
  }
}

/** As many as the header has, so that `error` is in its column. */
const cellsOf = ({ cells }: ErrorRow, width: number): string[] =>
  Array.from({ length: width }, (_, i) => defused(cells[i] ?? ''))

/** Line 12: email: must be … */
const sentence = ({ line, issues }: ErrorRow): string =>
  `line ${line}: ${issues.map(({ column, message }) => (column === null ? message : `${column}: ${message}`)).join('; ')}`
