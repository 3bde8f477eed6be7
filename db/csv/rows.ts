import { type Options, parse } from 'csv-parse'
import { parse as parseAll } from 'csv-parse/sync'
import { AppError } from '../errors.ts'
import { countLines } from './encoding.ts'

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

export const START: Place = { byte: 0, line: 1 }

/** A text field has at most 65,536 characters; a row far longer than several fields has usually lost a quote. */
const MAX_ROW_BYTES = 1024 * 1024

/** Other systems write rows of unequal length, and inch signs in unquoted cells. */
const LENIENT = {
  relax_column_count: true,
  relax_quotes: true,
  skip_empty_lines: true,
  record_delimiter: ['\r\n', '\n', '\r'],
} satisfies Options

/**
 * The rows of a file after a place, for any style of line ends; empty lines are skipped. After the rows before an error,
 * throws `invalid_request` with the line and a hint.
 */
export async function* readRows(
  pieces: AsyncIterable<Buffer>,
  delimiter: string,
  from: Place = START,
): AsyncGenerator<CsvRow, void, void> {
  const reader = new RowReader(delimiter, from)
  for await (const piece of pieces) {
    const failure = await reader.write(piece)
    yield* reader.take()
    if (failure) throw failure
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
  private failed: Error | undefined

  constructor(delimiter: string, from: Place) {
    this.delimiter = delimiter
    this.from = from.byte
    this.place = from
    this.parser = parse({
      ...LENIENT,
      max_record_size: MAX_ROW_BYTES,
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

  write(piece: Buffer): Promise<AppError | undefined> {
    this.skipEmptyLines()
    this.window = this.window.length > 0 ? Buffer.concat([this.window, piece]) : piece
    return new Promise((resolve) => {
      this.parser.write(piece, (error) => resolve(error ? this.failure(error) : undefined))
    })
  }

  end(): Promise<AppError | undefined> {
    return new Promise((resolve) => {
      this.parser.once('close', () => resolve(this.failed && this.failure(this.failed)))
      this.parser.resume()
      this.parser.end()
    })
  }

  take(): CsvRow[] {
    return this.rows.splice(0)
  }

  /** The parser does not report empty lines: without this the window would grow. */
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
    this.rows.push({ cells, line, end: this.place })
  }

  private failure({ code, message }: NodeJS.ErrnoException): AppError {
    const line = this.place.line + countLines(this.window.subarray(0, emptyLines(this.window)))
    const close = `close the quote on line ${line}; double a quote inside a quoted cell: ""`
    if (code === 'CSV_QUOTE_NOT_CLOSED')
      return new AppError('invalid_request', `the row on line ${line} has an unclosed quote`, {
        hint: close,
      })
    const tooLong = `the row on line ${line} is longer than 1 MiB`
    if (code === 'CSV_MAX_RECORD_SIZE')
      return this.isQuoteOpen()
        ? new AppError('invalid_request', `${tooLong} and has an unclosed quote`, {
            hint: `${close}. If it is closed later, shorten the cell`,
          })
        : new AppError('invalid_request', tooLong, { hint: 'shorten or remove some of its cells' })
    return new AppError('invalid_request', `the row on line ${line} cannot be read: ${message}`)
  }

  /** Whether the limit of the row length is inside a quoted cell; the parser does not report it. */
  private isQuoteOpen(): boolean {
    const beginning = this.window.subarray(0, MAX_ROW_BYTES)
    try {
      parseAll(beginning, { ...LENIENT, delimiter: this.delimiter })
      return false
    } catch {
      return true
    }
  }
}

/** The length of the leading empty lines in bytes. */
function emptyLines(text: Buffer): number {
  let at = 0
  while (text[at] === 10 || text[at] === 13) at++
  return at
}
