import { parse } from 'csv-parse/sync'

export const DELIMITERS = [',', ';', '\t', '|'] as const

const SAMPLE_BYTES = 65_536
const SAMPLE_ROWS = 20

/** The first line that Excel writes, and understands, to name the delimiter. */
const NAMED = /^"?sep=([^"\0\r\n])"?(?:\r\n|\n|\r)/

/**
 * What separates the cells of a file that begins like this: as its first line says, or else that with which most rows
 * have as many cells as the header. `skip`: how many bytes of the beginning only say so.
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

/** Rows that agree with the header, then the number of columns. */
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
    // The sample may end within quotes; what came before tells enough.
  }
  const columns = rows[0]?.length ?? 0
  if (columns < 2) return 0
  const agreeing = rows.filter((row) => row.length === columns).length / rows.length
  return agreeing * 1_000 + columns
}
