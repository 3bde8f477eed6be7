import { isNegation } from '../../workflows/shared/operators.ts'
import type { Filter } from '../model/records/filters.ts'
import type { Fragment } from '../model/records/fragment.ts'
import type { Kind, KindName } from '../model/records/kind.ts'

/**
 * Filters by other records. The columns of `associations` are renamed, so that `id` and `organization_id` are those of
 * the listed record, whatever its table is called in the statement.
 */

const ENDS = 'associations as link (link_org, a_kind, a, b_kind, b)'

/** The condition of `associations.<target>`. */
export function associationCondition(
  organizationId: string,
  { entity }: Kind,
  target: KindName,
  { operator, values }: Pick<Filter, 'operator' | 'values'>,
): Fragment {
  if (operator === 'is_null')
    return {
      sql: `(not exists (select from ${ENDS} where link_org = organization_id and a = id and b_kind = ?)
        and not exists (select from ${ENDS} where link_org = organization_id and b = id and a_kind = ?)) = ?::boolean`,
      bindings: [target, target, ...values],
    }
  // Independent of the listed record, so that PostgreSQL can begin with the named ones.
  const ids = `(${values.map(() => '?::uuid').join(', ')})`
  const sql = `id ${isNegation(operator) ? 'not in' : 'in'} (
    select b from ${ENDS} where link_org = ? and a in ${ids} and a_kind = ? and b_kind = ?
    union all
    select a from ${ENDS} where link_org = ? and b in ${ids} and b_kind = ? and a_kind = ?)`
  const oneEnd = [organizationId, ...values, target, entity]
  return { sql, bindings: [...oneEnd, ...oneEnd] }
}

/** The condition of `import_id`. Independent of the listed record, too. */
export function importCondition(
  organizationId: string,
  { operator, values }: Pick<Filter, 'operator' | 'values'>,
): Fragment {
  const isEmpty = operator === 'is_null'
  const of = isEmpty
    ? 'job_id = any(array(select i.id from imports i where i.organization_id = ?))'
    : `job_id in (${values.map(() => '?::uuid').join(', ')})`
  const written = `id in (select record_id from record_history where organization_id = ? and ${of})`
  return isEmpty
    ? { sql: `(not ${written}) = ?::boolean`, bindings: [organizationId, organizationId, ...values] }
    : {
        sql: isNegation(operator) ? `not ${written}` : written,
        bindings: [organizationId, ...values],
      }
}

/** SQL: the time of the last completed activity of the listed record. */
export const LAST_ACTIVITY_SQL = `(select max(done.at) from (
    select link_org, b as linked from ${ENDS} where link_org = organization_id and a = id and b_kind = 'activities'
    union all
    select link_org, a from ${ENDS} where link_org = organization_id and b = id and a_kind = 'activities'
  ) linked_activities
  join (select organization_id as done_org, id as done_id, occurred_at as at from activities
    where deleted_at is null and status = 'completed' and occurred_at <= now()) done
    on done_org = link_org and done_id = linked)`
