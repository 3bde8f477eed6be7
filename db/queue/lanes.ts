import { HAS_LOCK } from './queue-lock.ts'

/**
 * SQL: the recursive CTE `lanes (organization_id, <column>)` of a claim, for `with recursive`. A lane is a part of a
 * queue that has a limit of its own. A skip scan of the partial index (organization_id, <column>, …) of the queued rows
 * finds the lanes that have any: a long queue costs no more than a short one.
 */
export const queuedLanes = (table: string, column: string): string =>
  skipScan('lanes', table, column, "status = 'queued'")

/** SQL: the same for the rows for which `condition` holds, as the CTE `name`. */
export const skipScan = (
  name: string,
  table: string,
  column: string,
  condition: string,
): string => `${name} as (
    (select organization_id, ${column} from ${table} where ${condition} and ${HAS_LOCK}
     order by organization_id, ${column} limit 1)
    union all
    select next.* from ${name} cross join lateral (
      select q.organization_id, q.${column} from ${table} q
      where ${condition} and (q.organization_id, q.${column}) > (${name}.organization_id, ${name}.${column})
      order by q.organization_id, q.${column} limit 1) next
  )`
