import { type Count, type PlanLine, planRows, type Total, totalOf } from '../lists/total.ts'
import type { Kind } from '../model/records/kind.ts'
import type { Tenant } from '../postgres/tenancy.ts'
import type { Fragment } from './fragment.ts'
import { allOf, queryRows, searchView } from './pages.ts'

interface Counted {
  kind: Kind
  among: Fragment
  conditions: Fragment[]
}

/** The number of matches. `matching`, `selectivity`: as found when the page was selected. */
export async function total(
  tx: Tenant,
  { kind, among, conditions }: Counted,
  count: Count,
  { matching, selectivity }: { matching: number | 'many' | undefined; selectivity: number | undefined },
): Promise<Total> {
  if (count !== 'none' && typeof matching === 'number') return { total: matching, total_is_estimate: false }
  const where = allOf([among, ...conditions])
  return totalOf(count, {
    async countUpTo(limit) {
      if (limit !== undefined && matching === 'many') return limit
      const rows = await queryRows<{ total: number }>(
        tx,
        `select count(*) as total from (
           select from ${searchView(kind)} where ${where.sql} ${limit === undefined ? '' : `limit ${limit}`}) matching`,
        where.bindings,
      )
      return rows[0]!.total
    },
    planned: async () =>
      selectivity === undefined
        ? planned(tx, kind, where)
        : Math.round(selectivity * (await planned(tx, kind, among))),
  })
}

/** The row count that the planner estimates. */
export async function planned(tx: Tenant, kind: Kind, where: Fragment): Promise<number> {
  const rows = await queryRows<PlanLine>(
    tx,
    `explain (format json) select from ${searchView(kind)} where ${where.sql}`,
    where.bindings,
  )
  return planRows(rows)
}
