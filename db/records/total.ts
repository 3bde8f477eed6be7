import type { Tenant } from '../postgres/tenancy.ts'
import type { Fragment } from './filter-sql.ts'
import type { ListQuery } from './list.ts'
import type { Kind } from './model/kind.ts'
import { all, ask, searched } from './pages.ts'
import type { Found } from './search.ts'

/** Up to so many matches are counted exactly even when an estimate was asked for. */
export const EXACT_UP_TO = 10_000

/** So many times higher than that an estimate must be to be believed without counting. */
const CERTAINLY = 1.5

interface Counted {
  kind: Kind
  among: Fragment
  conditions: Fragment[]
}

/** How many records match. `matching`: what finding the page has shown; `density`: which part of all seems to match. */
export async function total(
  tx: Tenant,
  { kind, among, conditions }: Counted,
  count: ListQuery['count'],
  { matching, density }: { matching: Found['matching'] | undefined; density: number | undefined },
): Promise<{ total: number | null; total_is_estimate: boolean }> {
  if (count === 'none') return { total: null, total_is_estimate: false }
  if (typeof matching === 'number') return { total: matching, total_is_estimate: false }
  const where = all([among, ...conditions])
  const counted = async (limit: string) => {
    const rows = await ask<{ total: number }>(
      tx,
      `select count(*) as total from (select from ${searched(kind)} where ${where.sql} ${limit}) matching`,
      where.bindings,
    )
    return rows[0]!.total
  }
  if (count === 'exact') return { total: await counted(''), total_is_estimate: false }
  const estimate =
    density === undefined
      ? await planned(tx, kind, where)
      : Math.round(density * (await planned(tx, kind, among)))
  // Counting ten thousand takes longer than the page did.
  const atLeast =
    matching === 'many' || estimate > CERTAINLY * EXACT_UP_TO
      ? EXACT_UP_TO + 1
      : await counted(`limit ${EXACT_UP_TO + 1}`)
  if (atLeast <= EXACT_UP_TO) return { total: atLeast, total_is_estimate: false }
  return { total: Math.max(atLeast, estimate), total_is_estimate: true }
}

/** What the planner expects. */
async function planned(tx: Tenant, kind: Kind, where: Fragment): Promise<number> {
  const rows = await ask<{ 'QUERY PLAN': { Plan: { 'Plan Rows': number } }[] }>(
    tx,
    `explain (format json) select from ${searched(kind)} where ${where.sql}`,
    where.bindings,
  )
  return rows[0]!['QUERY PLAN'][0]!.Plan['Plan Rows']
}
