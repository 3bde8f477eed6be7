import { createHash } from 'node:crypto'
import { AppError } from '../errors.ts'

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

/**
 * Throws `invalid_request` for one that is no cursor, or one of another query. A cursor is not signed: `isValue` says
 * whether a text can be a value of what the list is sorted by.
 */
export function decodeCursor(hash: string, cursor: string, isValue: (text: string) => boolean): Position {
  const [found, value, id] = parts(cursor)
  if (typeof id !== 'string' || !UUID.test(id)) throw unreadable()
  if (found !== hash)
    throw new AppError('invalid_request', 'the cursor belongs to another query', {
      param: 'cursor',
      hint: 'keep sort, order, q, match and filters as they were for the page that gave it',
    })
  if (value === null) return { value, id }
  if (typeof value !== 'string' || !isValue(value)) throw unreadable()
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

const unreadable = () =>
  new AppError('invalid_request', 'the cursor cannot be read', {
    param: 'cursor',
    hint: 'pass next_cursor of the page before as it is',
  })
