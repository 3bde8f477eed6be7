import { NIL } from 'uuid'
import { z } from 'zod'
import { AppError } from '../../db/model/errors.ts'
import { decodeCursor, encodeCursor, queryHash } from '../../db/model/lists/cursor.ts'
import type { Page } from '../../db/model/lists/page.ts'

/** The parameters and the envelope of all lists. */

/** An integer of a query. */
export function integer(least: number, most?: number) {
  const range = most === undefined ? `of at least ${least}` : `from ${least} to ${most}`
  const message = `must be an integer ${range}`
  const number = z.coerce.number(message).int(message).min(least)
  return most === undefined ? number : number.max(most)
}

export const pageLimit = (most = 200) => integer(1, most).default(50).describe('The page size.')

export const pageOffset = (most?: number) =>
  integer(0, most).optional().describe('The start position. Mutually exclusive with `cursor`.')

export const pageControls = {
  limit: pageLimit(),
  offset: pageOffset(),
  cursor: z
    .string()
    // Three sort values of 200 characters, each escaped twice.
    .max(6_000)
    .optional()
    .describe(
      'The `next_cursor` of the previous page, valid with the same sort, filters and q. Mutually exclusive with `offset`.',
    ),
}

export const order = z.enum(['asc', 'desc']).default('desc').describe('The sort direction.')

export const count = z
  .enum(['exact', 'estimated', 'none'])
  .default('estimated')
  .describe('How `total` is computed. `estimated`: exact up to 10,000 matches, an estimate above.')

/** A time, or a day in UTC. */
const instant = (timeOfDay: string) =>
  z
    .union(
      [z.iso.datetime({ offset: true }), z.iso.date()],
      'must be a date or a time with its offset, such as 2026-01-31 or 2026-01-31T09:00:00Z',
    )
    .transform((text) => new Date(text.includes('T') ? text : `${text}T${timeOfDay}Z`))

/** The range of creation times of the listed rows. */
export const period = {
  from: instant('00:00:00.000')
    .optional()
    .meta({ description: 'The earliest time; a date is the start of the day in UTC.' }),
  to: instant('23:59:59.999')
    .optional()
    .meta({ description: 'The latest time; a date is the end of the day in UTC.' }),
}

/** Throws `invalid_request` for a cursor with an offset. @returns the offset, by default 0. */
export function offsetOf(query: { offset?: number | undefined; cursor?: string | undefined }): number {
  if (query.cursor !== undefined && query.offset !== undefined)
    throw new AppError('invalid_request', 'cursor and offset are mutually exclusive', { param: 'cursor' })
  return query.offset ?? 0
}

/** The envelope of a list. `of` is the component of its items: `User` becomes `UserList`. */
export function listEnvelope<T extends z.ZodType>(item: T, of = item.meta()?.id) {
  const envelope = z.object({
    object: z.literal('list'),
    data: z.array(item),
    limit: z.int(),
    offset: z.int(),
    has_more: z.boolean(),
    next_cursor: z.string().nullable(),
    total: z.int().nullable().describe('The number of matches; null with `count=none`.'),
    total_is_estimate: z.boolean(),
  })
  return of ? envelope.meta({ id: `${of}List` }) : envelope
}

export const presentList = <T>(page: Page<T>) => ({ object: 'list' as const, ...page })

/** All items of a short list, as one page. */
export const wholeList = <T>(data: T[]) =>
  presentList<T>({
    data,
    limit: data.length,
    offset: 0,
    has_more: false,
    next_cursor: null,
    total: data.length,
    total_is_estimate: false,
  })

/**
 * A page of a short list, sorted by name. The cursor contains the last name of the previous page.
 * @param of everything that determines the items: a cursor is valid for this list only.
 */
export function pageByName<T extends { name: string }>(
  of: unknown,
  all: T[],
  query: { limit: number; offset?: number | undefined; cursor?: string | undefined },
): Page<T> {
  const offset = offsetOf(query)
  const hash = queryHash(of)
  const after = query.cursor ? decodeCursor(hash, query.cursor, () => true).value : null
  const rest = all.filter(({ name }) => after === null || name > after).slice(offset)
  const data = rest.slice(0, query.limit)
  const has_more = rest.length > data.length
  return {
    data,
    limit: query.limit,
    offset,
    has_more,
    // The items have no ids, so the cursor contains the nil UUID.
    next_cursor: has_more ? encodeCursor(hash, { value: data.at(-1)!.name, id: NIL }) : null,
    total: all.length,
    total_is_estimate: false,
  }
}
