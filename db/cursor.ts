import { createHash } from 'node:crypto'
import { AppError } from './errors.ts'

/**
 * An opaque place in a list: the sort value and the id of the last row of a page, bound to what the list was asked
 * for by a short hash, so that a cursor used with another sort or filter is refused instead of skipping rows.
 */
export interface Position {
  value: string | null
  id: string
}

/** `query`: everything that decides which rows there are and in which order. */
export const queryHash = (query: unknown): string =>
  createHash('sha256').update(JSON.stringify(query)).digest('base64url').slice(0, 12)

export const encodeCursor = (hash: string, { value, id }: Position): string =>
  Buffer.from(JSON.stringify([hash, value, id])).toString('base64url')

const UUID = /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/

/** Throws `invalid_request` for one that is no cursor, or one of another query. */
export function decodeCursor(hash: string, cursor: string): Position {
  let parts: unknown
  try {
    parts = JSON.parse(Buffer.from(cursor, 'base64url').toString())
  } catch {
    parts = undefined
  }
  if (!Array.isArray(parts) || parts.length !== 3 || typeof parts[2] !== 'string' || !UUID.test(parts[2]))
    throw new AppError('invalid_request', 'the cursor cannot be read', {
      param: 'cursor',
      hint: 'pass next_cursor of the page before as it is',
    })
  if (parts[0] !== hash)
    throw new AppError('invalid_request', 'the cursor belongs to another query', {
      param: 'cursor',
      hint: 'keep sort, order, q, match and filters as they were for the page that gave it',
    })
  return { value: parts[1] === null ? null : String(parts[1]), id: parts[2] }
}
