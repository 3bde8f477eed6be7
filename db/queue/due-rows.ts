import type { System } from '../postgres/tenancy.ts'

/** Rows of a table for which something is due once a time has come. */
export interface DueRows {
  table: string
  /** SQL: the column with the time. */
  at: string
  /**
   * SQL: whether a row waits for its time, or is due: the condition of a partial index on the organization and the time.
   */
  waits: string
  /** SQL: whether it is due. */
  due: string
}

/** Up to `limit` due rows, by organization; organizations take turns, each with its oldest first. */
export async function listDueRows(
  system: System,
  { table, at, waits, due }: DueRows,
  limit: number,
): Promise<{ organization_id: string; ids: string[] }[]> {
  const { rows } = await system.raw<{ rows: { organization_id: string; ids: string[] }[] }>(
    // A skip scan of the partial index: the rows of one organization are not read to find the next.
    `with recursive organizations as (
       (select organization_id from ${table} where ${waits} order by organization_id limit 1)
       union all
       select next.* from organizations o cross join lateral (
         select r.organization_id from ${table} r where ${waits} and r.organization_id > o.organization_id
         order by r.organization_id limit 1) next
     ), due as (
       select o.organization_id, d.id, d.turn from organizations o cross join lateral (
         select r.id, row_number() over (order by r.${at}) as turn from ${table} r
         where r.organization_id = o.organization_id and ${due} order by r.${at} limit :limit) d
       order by d.turn limit :limit)
     select organization_id, array_agg(id order by turn) as ids from due group by organization_id`,
    { limit },
  )
  return rows
}
