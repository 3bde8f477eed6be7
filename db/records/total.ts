import type { Tenant } from '../tenancy.ts'
import type { Fragment } from './filters.ts'
import type { EntityName } from './kind.ts'
import type { ListQuery } from './list.ts'

/** Up to so many matches are counted exactly even when an estimate was asked for. */
export const EXACT_UP_TO = 10_000

/**
 * How many records match. `known`: the page itself has shown how many; `many`: there are more than are counted for
 * an estimate.
 */
export async function total(
  tx: Tenant,
  entity: EntityName,
  count: ListQuery['count'],
  where: Fragment,
  { known, many = false }: { known: number | undefined; many: boolean | undefined },
): Promise<{ total: number | null; total_is_estimate: boolean }> {
  if (count === 'none') return { total: null, total_is_estimate: false }
  if (known !== undefined) return { total: known, total_is_estimate: false }
  const counted = async (limit: string) => {
    const { rows } = await tx.trx.raw<{ rows: { total: number }[] }>(
      `select count(*) as total from (select from ${entity} where ${where.sql} ${limit}) matching`,
      where.bindings as never,
    )
    return rows[0]!.total
  }
  if (count === 'exact') return { total: await counted(''), total_is_estimate: false }
  const atLeast = many ? EXACT_UP_TO + 1 : await counted(`limit ${EXACT_UP_TO + 1}`)
  if (atLeast <= EXACT_UP_TO) return { total: atLeast, total_is_estimate: false }
  const { rows } = await tx.trx.raw<{ rows: { 'QUERY PLAN': { Plan: { 'Plan Rows': number } }[] }[] }>(
    `explain (format json) select from ${entity} where ${where.sql}`,
    where.bindings as never,
  )
  return { total: Math.max(atLeast, rows[0]!['QUERY PLAN'][0]!.Plan['Plan Rows']), total_is_estimate: true }
}
