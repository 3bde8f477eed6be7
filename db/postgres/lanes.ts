import { HAS_LOCK } from './queue-lock.ts'

/**
 * SQL: the recursive CTE `lanes (organization_id, <column>)` of a claim, for `with recursive`. A lane is a part of a
 * queue that has a limit of its own. A skip scan of the partial index (organization_id, <column>, …) of the queued rows
 * finds the lanes that have any: a long queue costs no more than a short one.
 */
export const queuedLanes = (table: string, column: string): string => `lanes as (
    (select organization_id, ${column} from ${table} where status = 'queued' and ${HAS_LOCK}
     order by organization_id, ${column} limit 1)
    union all
    select next.* from lanes cross join lateral (
      select q.organization_id, q.${column} from ${table} q
      where q.status = 'queued' and (q.organization_id, q.${column}) > (lanes.organization_id, lanes.${column})
      order by q.organization_id, q.${column} limit 1) next
  )`
