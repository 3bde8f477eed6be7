import { createHash } from 'node:crypto'
import { UUID } from '../../../workflows/shared/uuid.ts'
import { AppError } from '../errors.ts'

/**
 * The position of a cursor (keyset pagination): the sort value and the id of the last row of a page. A cursor also
 * holds a hash of its query, so that it is refused with another sort or filter instead of skipping rows.
 */
export interface Position {
  value: string | null
  id: string
}

/** `query`: everything that determines the rows and their order. */
export const queryHash = (query: unknown): string =>
  createHash('sha256').update(JSON.stringify(query)).digest('base64url').slice(0, 12)

export const encodeCursor = (hash: string, { value, id }: Position): string =>
  Buffer.from(JSON.stringify([hash, value, id])).toString('base64url')

/**
 * Throws `invalid_request` for a malformed cursor, or one of another query. A cursor is not signed: `isValue` checks
 * that its text is a possible sort value.
 */
export function decodeCursor(hash: string, cursor: string, isValue: (text: string) => boolean): Position {
  const [found, value, id] = parts(cursor)
  if (typeof id !== 'string' || !UUID.test(id)) throw malformed()
  if (found !== hash)
    throw new AppError('invalid_request', 'the cursor belongs to another query', {
      param: 'cursor',
      hint: 'use the same sort, order, q, match and filters as in the request that returned it',
    })
  if (value === null) return { value, id }
  if (typeof value !== 'string' || !isValue(value)) throw malformed()
  return { value, id }
}

function parts(cursor: string): unknown[] {
  try {
    const parsed: unknown = JSON.parse(Buffer.from(cursor, 'base64url').toString())
    return Array.isArray(parsed) ? parsed : []
  } catch {
    return []
  }
}

const malformed = () =>
  new AppError('invalid_request', 'the cursor is malformed', {
    param: 'cursor',
    hint: 'pass next_cursor of the previous page unchanged',
  })
