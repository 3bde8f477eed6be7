import { CsvError, type CsvRow, type Place, readRows as readCsv } from '../../../workflows/shared/csv/rows.ts'
import { AppError } from '../errors.ts'

export type { CsvRow, Place } from '../../../workflows/shared/csv/rows.ts'

/**
 * The rows of a file from a position on. Throws `invalid_request` with the line and a hint at an error, after it has
 * yielded the rows before it.
 */
export async function* readRows(
  pieces: AsyncIterable<Buffer>,
  delimiter: string,
  from?: Place,
): AsyncGenerator<CsvRow, void, void> {
  try {
    yield* readCsv(pieces, delimiter, from)
  } catch (error) {
    if (!(error instanceof CsvError)) throw error
    const { message, hint } = error
    throw new AppError('invalid_request', message, hint === undefined ? {} : { hint })
  }
}
