import { z } from 'zod'
import { isSortable, sortNames, unknownHint } from '../../db/model/records/filters.ts'
import type { Kind } from '../../db/model/records/kind.ts'
import { hasDirections, MAX_SORTS, type Order, sortsOf } from '../../db/model/records/sorts.ts'

/** The parameters `sort` and `order` of lists of records. */

const SORT = `The fields to sort by, at most ${MAX_SORTS}, or \`custom_fields.<name>\`. One with \`-\` before it is descending: \`stage,-amount\`.`
const ORDER =
  'The direction of a `sort` by one field without `-`; `desc` by default. In a list of fields those without `-` are ascending.'

/** The parameters of the order. Without `kind`: of a list of any kind. */
export const sortControls = (kind?: Kind) => ({
  sort: z
    .string()
    .max(500)
    .default('created_at')
    .superRefine((sort, ctx) => kind && refuseSorts(kind, sort, ctx))
    .describe(SORT),
  order: z.enum(['asc', 'desc']).optional().describe(ORDER),
})

function refuseSorts(kind: Kind, sort: string, ctx: z.RefinementCtx): void {
  const refuse = (message: string, params: { hint?: string } = {}) =>
    ctx.addIssue({ code: 'custom', message, params, input: sort })
  const fields = sortsOf({ sort, order: 'asc' }).map(({ field }) => field)
  const unknown = fields.find((field) => !isSortable(kind, field))
  if (fields.length > MAX_SORTS) refuse(`at most ${MAX_SORTS} fields`)
  else if (new Set(fields).size < fields.length) refuse('names a field twice')
  else if (unknown !== undefined) refuse('is not a field to sort by', { hint: sortHint(kind, unknown) })
}

/** Other APIs write the direction behind the field: `amount:desc`. */
function sortHint(kind: Kind, written: string): string {
  const [, field = '', direction] = /^\+?(.*?)(?:[: ](asc|desc))?$/i.exec(written.trim()) ?? []
  if (field === written || !isSortable(kind, field))
    return unknownHint(kind, written, sortNames(kind), 'sort fields')
  return direction?.toLowerCase() === 'desc' ? `write sort=-${field}` : `write sort=${field}&order=asc`
}

/** `order` belongs to one field without a sign; beside another `sort` it would be ignored, or mean the contrary. */
export function refuseOrder(
  { sort, order }: { sort: string; order?: Order | undefined },
  ctx: z.RefinementCtx,
): void {
  if (order === undefined || !hasDirections(sort)) return
  if (!sort.includes(',') && order === 'desc') return
  const hint = 'write the direction with each field: sort=stage,-amount'
  ctx.addIssue({
    code: 'custom',
    path: ['order'],
    message: 'is for a sort by one field without a sign',
    params: { hint },
    input: order,
  })
}
