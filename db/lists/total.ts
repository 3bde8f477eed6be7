import type { Knex } from 'knex'

/** How `total` is computed. `estimated`: exactly up to EXACT_UP_TO, above it by the planner's estimate. */
export type Count = 'exact' | 'estimated' | 'none'

export interface Total {
  total: number | null
  total_is_estimate: boolean
}

/** Up to this number matches are counted exactly, even if an estimate was requested. */
export const EXACT_UP_TO = 10_000

/** An estimate above EXACT_UP_TO by this factor is used without counting. */
const ESTIMATE_MARGIN = 1.5

/** @param countUpTo counts matches, at most `limit` if it is given. @param planned the planner's estimate. */
export async function totalOf(
  count: Count,
  { countUpTo, planned }: { countUpTo(limit?: number): Promise<number>; planned(): Promise<number> },
): Promise<Total> {
  if (count === 'none') return { total: null, total_is_estimate: false }
  if (count === 'exact') return { total: await countUpTo(), total_is_estimate: false }
  const estimate = await planned()
  // Counting 10,000 matches takes longer than selecting the page.
  const atLeast =
    estimate > ESTIMATE_MARGIN * EXACT_UP_TO ? EXACT_UP_TO + 1 : await countUpTo(EXACT_UP_TO + 1)
  if (atLeast <= EXACT_UP_TO) return { total: atLeast, total_is_estimate: false }
  return { total: Math.max(atLeast, estimate), total_is_estimate: true }
}

/** The number of rows of a query without limit and order. */
export const totalOfRows = (trx: Knex, rows: Knex.QueryBuilder, count: Count): Promise<Total> =>
  totalOf(count, {
    async countUpTo(limit) {
      const matching = rows.clone().clearSelect().select(trx.raw('1'))
      if (limit !== undefined) matching.limit(limit)
      const [row] = await trx.from(matching.as('matching')).count<{ total: number }[]>({ total: '*' })
      return row!.total
    },
    async planned() {
      const { sql, bindings } = rows.clone().clearSelect().select(trx.raw('1')).toSQL()
      const { rows: lines } = await trx.raw<{ rows: PlanLine[] }>(
        `explain (format json) ${sql}`,
        bindings as Knex.RawBinding[],
      )
      return planRows(lines)
    },
  })

export interface PlanLine {
  'QUERY PLAN': { Plan: { 'Plan Rows': number } }[]
}

export const planRows = (lines: PlanLine[]): number => lines[0]!['QUERY PLAN'][0]!.Plan['Plan Rows']
