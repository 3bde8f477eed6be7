import type { Tenant } from '../postgres/tenancy.ts'
import type { Fragment } from './filter-sql.ts'
import type { ListQuery } from './list.ts'
import type { Kind } from './model/kind.ts'
import { allOf, queryRows, searchView } from './pages.ts'
import type { Found } from './search.ts'

/** Up to this number, matches are counted exactly even if an estimate was requested. */
export const EXACT_UP_TO = 10_000

/** An estimate above EXACT_UP_TO by this factor is used without counting. */
const ESTIMATE_MARGIN = 1.5

interface Counted {
  kind: Kind
  among: Fragment
  conditions: Fragment[]
}

/** The number of matches. `matching`, `selectivity`: as found while selecting the page. */
export async function total(
  tx: Tenant,
  { kind, among, conditions }: Counted,
  count: ListQuery['count'],
  { matching, selectivity }: { matching: Found['matching'] | undefined; selectivity: number | undefined },
): Promise<{ total: number | null; total_is_estimate: boolean }> {
  if (count === 'none') return { total: null, total_is_estimate: false }
  if (typeof matching === 'number') return { total: matching, total_is_estimate: false }
  const where = allOf([among, ...conditions])
  const counted = async (limit: string) => {
    const rows = await queryRows<{ total: number }>(
      tx,
      `select count(*) as total from (select from ${searchView(kind)} where ${where.sql} ${limit}) matching`,
      where.bindings,
    )
    return rows[0]!.total
  }
  if (count === 'exact') return { total: await counted(''), total_is_estimate: false }
  const estimate =
    selectivity === undefined
      ? await planned(tx, kind, where)
      : Math.round(selectivity * (await planned(tx, kind, among)))
  // Counting 10,000 matches takes longer than selecting the page.
  const atLeast =
    matching === 'many' || estimate > ESTIMATE_MARGIN * EXACT_UP_TO
      ? EXACT_UP_TO + 1
      : await counted(`limit ${EXACT_UP_TO + 1}`)
  if (atLeast <= EXACT_UP_TO) return { total: atLeast, total_is_estimate: false }
  return { total: Math.max(atLeast, estimate), total_is_estimate: true }
}

/** The row count that the planner estimates. */
async function planned(tx: Tenant, kind: Kind, where: Fragment): Promise<number> {
  const rows = await queryRows<{ 'QUERY PLAN': { Plan: { 'Plan Rows': number } }[] }>(
    tx,
    `explain (format json) select from ${searchView(kind)} where ${where.sql}`,
    where.bindings,
  )
  return rows[0]!['QUERY PLAN'][0]!.Plan['Plan Rows']
}
