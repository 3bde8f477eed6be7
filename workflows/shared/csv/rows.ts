import { setImmediate } from 'node:timers/promises'
import { type Options, parse } from 'csv-parse'
import { CSV } from '../limits.ts'
import { countLines } from './lines.ts'

/** A place between two rows of a file in UTF-8. */
export interface Place {
  byte: number
  /** From 1. */
  line: number
}

export interface CsvRow {
  cells: string[]
  /** The first line of the row; from 1. */
  line: number
  end: Place
}

/** Why a file cannot be read, with the line and what to do. */
export class CsvError extends Error {
  override readonly name = 'CsvError'
  readonly hint: string | undefined

  constructor(message: string, hint?: string) {
    super(message)
    this.hint = hint
  }
}

export const START: Place = { byte: 0, line: 1 }

/** Other systems write rows of unequal length, and inch signs in unquoted cells. */
const LENIENT = {
  relax_column_count: true,
  relax_quotes: true,
  skip_empty_lines: true,
  record_delimiter: ['\r\n', '\n', '\r'],
} satisfies Options

/**
 * The rows of a file after a place, for any style of line ends; empty lines are skipped. After the rows before an
 * error, throws CsvError.
 */
export async function* readRows(
  pieces: AsyncIterable<Buffer>,
  delimiter: string,
  from: Place = START,
): AsyncGenerator<CsvRow, void, void> {
  const reader = new RowReader(delimiter, from)
  for await (const piece of pieces) {
    for (let at = 0; at < piece.length; at += CSV.turn) {
      const failure = await reader.write(piece.subarray(at, at + CSV.turn))
      yield* reader.take()
      if (failure) throw failure
      // Yields: the file of a tenant may be large.
      await setImmediate()
    }
  }
  const failure = await reader.end()
  yield* reader.take()
  if (failure) throw failure
}

/** Adds the places of rows to csv-parse, whose line numbers are wrong after a quoted CRLF. */
class RowReader {
  private readonly parser
  private readonly from: number
  private readonly delimiter: string
  private place: Place
  /** The bytes after `place`. */
  private window: Buffer = Buffer.alloc(0)
  private rows: CsvRow[] = []
  /** The line of the first row with too many cells. */
  private tooWide: number | undefined
  private failed: Error | undefined

  constructor(delimiter: string, from: Place) {
    this.delimiter = delimiter
    this.from = from.byte
    this.place = from
    this.parser = parse({
      ...LENIENT,
      max_record_size: CSV.rowBytes,
      delimiter,
      on_record: (cells: string[], { bytes }) => {
        this.add(cells, bytes)
        return null
      },
    })
    this.parser.on('error', (error) => {
      this.failed = error
    })
  }

  write(piece: Buffer): Promise<CsvError | undefined> {
    this.skipEmptyLines()
    this.window = this.window.length > 0 ? Buffer.concat([this.window, piece]) : piece
    return new Promise((resolve) => {
      this.parser.write(piece, (error) => resolve(error ? this.failure(error) : this.refused()))
    })
  }

  end(): Promise<CsvError | undefined> {
    return new Promise((resolve) => {
      this.parser.once('close', () => resolve(this.failed ? this.failure(this.failed) : this.refused()))
      this.parser.resume()
      this.parser.end()
    })
  }

  take(): CsvRow[] {
    return this.rows.splice(0)
  }

  /** The parser does not report empty lines: the window would grow. */
  private skipEmptyLines(): void {
    const empty = emptyLines(this.window)
    // A CR at the end stays: it may be the first half of a CRLF.
    const skipped = this.window.subarray(0, this.window[empty - 1] === 13 ? empty - 1 : empty)
    this.place = { byte: this.place.byte + skipped.length, line: this.place.line + countLines(skipped) }
    this.window = this.window.subarray(skipped.length)
  }

  private add(cells: string[], bytes: number): void {
    const length = this.from + bytes - this.place.byte
    const written = this.window.subarray(0, length)
    this.window = this.window.subarray(length)
    const line = this.place.line + countLines(written.subarray(0, emptyLines(written)))
    this.place = { byte: this.place.byte + length, line: this.place.line + countLines(written) }
    if (cells.length > CSV.cells) this.tooWide ??= line
    if (this.tooWide === undefined) this.rows.push({ cells, line, end: this.place })
  }

  /** The error of a row that csv-parse accepts: it counts the text of a row, not its delimiters. */
  private refused(): CsvError | undefined {
    if (this.tooWide !== undefined)
      return new CsvError(
        `the row on line ${this.tooWide} has more than ${CSV.cells} cells`,
        'remove the empty cells behind the last column',
      )
    return this.window.length - emptyLines(this.window) > CSV.rowBytes ? this.tooLong() : undefined
  }

  private failure({ code, message }: NodeJS.ErrnoException): CsvError {
    const line = this.place.line + countLines(this.window.subarray(0, emptyLines(this.window)))
    if (code === 'CSV_QUOTE_NOT_CLOSED')
      return new CsvError(`the row on line ${line} has an unclosed quote`, closing(line))
    if (code === 'CSV_MAX_RECORD_SIZE') return this.tooLong()
    return new CsvError(`the row on line ${line} cannot be read: ${message}`)
  }

  private tooLong(): CsvError {
    const row = this.window.subarray(emptyLines(this.window))
    const line = this.place.line + countLines(this.window.subarray(0, this.window.length - row.length))
    const message = `the row on line ${line} is longer than 1 MiB`
    return endsInQuotes(row.subarray(0, CSV.rowBytes), Buffer.from(this.delimiter))
      ? new CsvError(
          `${message} and has an unclosed quote`,
          `${closing(line)}. If it is closed later, shorten the cell`,
        )
      : new CsvError(message, 'shorten or remove some of its cells')
  }
}

const closing = (line: number) => `close the quote on line ${line}; double a quote inside a quoted cell: ""`

const QUOTE = 34

/**
 * Whether the beginning of a row ends in a quoted cell, which the parser does not report. Reads byte by byte: a row may
 * have a million cells.
 */
function endsInQuotes(row: Buffer, delimiter: Buffer): boolean {
  let quoted = false
  let cellStart = true
  for (let at = 0; at < row.length; at++) {
    const byte = row[at]
    if (quoted) {
      if (byte !== QUOTE) continue
      // A doubled quote belongs to the cell.
      if (row[at + 1] === QUOTE) at++
      else quoted = false
    } else if (byte === QUOTE && cellStart) quoted = true
    else if (
      byte === delimiter[0] &&
      (delimiter.length === 1 || row.subarray(at, at + delimiter.length).equals(delimiter))
    ) {
      at += delimiter.length - 1
      cellStart = true
      continue
    }
    cellStart = false
  }
  return quoted
}

/** The length of the leading empty lines in bytes. */
function emptyLines(text: Buffer): number {
  let at = 0
  while (text[at] === 10 || text[at] === 13) at++
  return at
}
