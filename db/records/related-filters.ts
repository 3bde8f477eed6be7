import { isNegation } from '../../workflows/shared/operators.ts'
import type { Hop } from '../../workflows/shared/related-filters.ts'
import type { Operator } from '../model/records/field-types.ts'
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

/** The operator that finds the others, for each one that includes records without a value. */
const OPPOSITES: Partial<Record<Operator, Operator>> = {
  ne: 'eq',
  nin: 'in',
  has_not: 'has',
  not_since: 'gte',
}

/**
 * The condition of a field one hop away: some referred or associated record meets it. An operator that includes null
 * also finds records without such a record; of several associated ones none may have the value. `inner`: the condition
 * of a filter of the other kind, in a statement on its table.
 */
export function hopCondition(
  organizationId: string,
  { entity }: Kind,
  { kind: other, field, reference }: Hop,
  { operator, values, ...rest }: Filter,
  inner: (filter: Filter) => Fragment,
): Fragment {
  const isNull = operator === 'is_null' && values[0] === 'true'
  const opposite = isNull ? operator : OPPOSITES[operator]
  const met = inner({
    ...rest,
    field,
    operator: opposite ?? operator,
    values: isNull ? ['false'] : values,
  })
  const found = `select id from ${other} where organization_id = ? and deleted_at is null and ${met.sql}`
  const bindings = [organizationId, ...met.bindings]
  const some: Fragment = reference
    ? { sql: `${reference} in (${found})`, bindings }
    : anyOf(directionsOf(entity, other).map((end) => linkedIn(organizationId, end, found, bindings)))
  return opposite ? { ...some, sql: `(${some.sql}) is not true` } : some
}

/** An end of the links that a filter reads: the listed record is `own`, the other one `far`. */
interface Direction {
  own: 'a' | 'b'
  far: 'a' | 'b'
  kinds: [a: KindName, b: KindName]
}

/** The end with the smaller kind is `a`: only links within a kind can have the listed record at either end. */
function directionsOf(entity: KindName, other: KindName): Direction[] {
  const asA: Direction = { own: 'a', far: 'b', kinds: [entity, other] }
  const asB: Direction = { own: 'b', far: 'a', kinds: [other, entity] }
  return entity === other ? [asA, asB] : entity < other ? [asA] : [asB]
}

/** Uncorrelated, so that PostgreSQL can begin at either side. */
const linkedIn = (
  organizationId: string,
  { own, far, kinds }: Direction,
  found: string,
  bindings: unknown[],
): Fragment => ({
  sql: `id in (select ${own} from ${ENDS} where link_org = ? and a_kind = ? and b_kind = ? and ${far} in (${found}))`,
  bindings: [organizationId, ...kinds, ...bindings],
})

const anyOf = (fragments: Fragment[]): Fragment => ({
  sql: `(${fragments.map(({ sql }) => sql).join(' or ')})`,
  bindings: fragments.flatMap(({ bindings }) => bindings),
})

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

/** The condition of `list_id`. A list that was deleted has no members, even while workers remove them. */
export function listCondition(
  organizationId: string,
  { operator, values }: Pick<Filter, 'operator' | 'values'>,
): Fragment {
  const isEmpty = operator === 'is_null'
  const some = isEmpty ? '' : `and l.id in (${values.map(() => '?::uuid').join(', ')})`
  const member = `id in (select m.record_id from lists l join list_members m
    on m.organization_id = l.organization_id and m.list_id = l.id
    where l.organization_id = ? and l.deleted_at is null ${some})`
  return isEmpty
    ? { sql: `(not ${member}) = ?::boolean`, bindings: [organizationId, ...values] }
    : {
        sql: isNegation(operator) ? `not ${member}` : member,
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
