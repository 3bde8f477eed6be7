import { z } from 'zod'
import { AppError } from '../../db/errors.ts'
import type { Page } from '../../db/lists/page.ts'

/** The controls that every list has, and the one envelope that every list answers in. */

const LIMIT = 'must be a whole number from 1 to 200'
const OFFSET = 'must be a whole number from 0 on'

export const pageControls = {
  limit: z.coerce.number(LIMIT).int(LIMIT).min(1).max(200).default(50).describe('Page size.'),
  offset: z.coerce
    .number(OFFSET)
    .int(OFFSET)
    .min(0)
    .optional()
    .describe('Start position; not together with cursor.'),
  cursor: z
    .string()
    .max(2_000)
    .optional()
    .describe('next_cursor of the page before. It belongs to its sort, order, q and filters.'),
}

export const order = z.enum(['asc', 'desc']).default('desc')

export const count = z
  .enum(['exact', 'estimated', 'none'])
  .default('estimated')
  .describe("`estimated` is exact up to 10,000 matches and the planner's estimate above.")

/** Throws `invalid_request` for a cursor with an offset. @returns the offset, 0 where there is none. */
export function offsetOf(query: { offset?: number | undefined; cursor?: string | undefined }): number {
  if (query.cursor !== undefined && query.offset !== undefined)
    throw new AppError('invalid_request', 'cursor and offset exclude each other', { param: 'cursor' })
  return query.offset ?? 0
}

/** A list of users is called `UserList` in the OpenAPI document, as its items are called `User` (`of`). */
export function listEnvelope<T extends z.ZodType>(item: T, of = item.meta()?.id) {
  const envelope = z.object({
    object: z.literal('list'),
    data: z.array(item),
    limit: z.int(),
    offset: z.int(),
    has_more: z.boolean(),
    next_cursor: z.string().nullable(),
    total: z.int().nullable().describe('How many there are in all; null with count=none.'),
    total_is_estimate: z.boolean(),
  })
  return of ? envelope.meta({ id: `${of}List` }) : envelope
}

export const presentList = <T>(page: Page<T>) => ({ object: 'list' as const, ...page })
