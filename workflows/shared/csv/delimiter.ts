import { parse } from 'csv-parse/sync'

export const DELIMITERS = [',', ';', '\t', '|'] as const

const SAMPLE_BYTES = 65_536
const SAMPLE_ROWS = 20

/** Excel's optional first line that names the delimiter. */
const NAMED = /^"?sep=([^"\0\r\n])"?(?:\r\n|\n|\r)/

/**
 * Detects the delimiter from the beginning of a file: from a `sep=` line, or else the one with which most rows have as
 * many cells as the header. `skip` is the length of the `sep=` line in bytes.
 */
export function findDelimiter(beginning: Buffer): { delimiter: string; skip: number } {
  const text = beginning.subarray(0, SAMPLE_BYTES).toString()
  const named = NAMED.exec(text)
  if (named) return { delimiter: named[1]!, skip: Buffer.byteLength(named[0]) }
  const best = DELIMITERS.map((delimiter) => ({ delimiter, score: score(text, delimiter) })).reduce(
    (one, other) => (other.score > one.score ? other : one),
  )
  return { delimiter: best.delimiter, skip: 0 }
}

/** Ranks by the share of rows that are as wide as the header, then by the number of columns. */
function score(text: string, delimiter: string): number {
  if (!text.includes(delimiter)) return 0
  const rows: string[][] = []
  try {
    parse(text, {
      delimiter,
      to: SAMPLE_ROWS,
      relax_column_count: true,
      relax_quotes: true,
      skip_empty_lines: true,
      record_delimiter: ['\r\n', '\n', '\r'],
      on_record(row: string[]) {
        rows.push(row)
        return null
      },
    })
  } catch {
    // The sample may end within quotes: the rows before it are enough.
  }
  const columns = rows[0]?.length ?? 0
  if (columns < 2) return 0
  const agreeing = rows.filter((row) => row.length === columns).length / rows.length
  return agreeing * 1_000 + columns
}
