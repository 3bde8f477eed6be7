import { z } from 'zod'
import {
  expansionsOf,
  MAX_ASSOCIATED,
  MAX_EXPANDED,
  MAX_LIMIT_WITH_ASSOCIATED,
} from '../../db/model/records/expansions.ts'
import { unknownHint } from '../../db/model/records/filters.ts'
import type { Kind } from '../../db/model/records/kind.ts'

/** The parameter `expand`. Without `kind`: for records of any kind. */
export function expandOf(kind?: Kind) {
  const known = kind && [...expansionsOf(kind).keys()]
  return z
    .string()
    .max(500)
    .transform((list) => list.split(',').map((name) => name.trim()))
    .superRefine((names, ctx) => {
      const unknown = known && names.find((name) => !known.includes(name))
      const refuse = (message: string, hint?: string) =>
        ctx.addIssue({ code: 'custom', message, params: { hint }, input: names.join().slice(0, 200) })
      if (names.length > MAX_EXPANDED) refuse(`at most ${MAX_EXPANDED} names`)
      else if (unknown !== undefined)
        refuse(
          `cannot show ${unknown.slice(0, 100)}`,
          unknownHint(kind, unknown.slice(0, 100), known!, 'expansions'),
        )
    })
    .optional()
    .describe(
      `What is shown in \`expanded\` beside each record, separated by commas: ${known ? known.map((name) => `\`${name}\``).join(', ') : 'names of reference fields without `_id`, `owner`, and kinds'}. Needs the scope to read each kind. An associated kind has its ${MAX_ASSOCIATED} newest, in lists with a \`limit\` of at most ${MAX_LIMIT_WITH_ASSOCIATED}.`,
    )
}

/** Associated records multiply the size of a page. */
export function refuseWidePage(
  kind: Kind,
  { expand, limit }: { expand?: string[] | undefined; limit: number },
  ctx: z.RefinementCtx,
): void {
  const known = expansionsOf(kind)
  if (limit <= MAX_LIMIT_WITH_ASSOCIATED || !expand?.some((name) => known.get(name)?.is === 'associated'))
    return
  ctx.addIssue({
    code: 'custom',
    path: ['limit'],
    message: `must be at most ${MAX_LIMIT_WITH_ASSOCIATED} with an associated kind in expand`,
    input: limit,
  })
}
