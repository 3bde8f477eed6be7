import { CLASS_LEAST, CLASS_RATIO } from '../model/analytics/cell.ts'
import type { Measure } from '../model/analytics/metric.ts'
import type { ResolvedQuery } from '../model/analytics/query.ts'
import type { Fragment } from '../records/fragment.ts'

/**
 * The statement of a query. Each bucket is a range of a covering index, so the table is not read. That takes half the
 * time of a single scan that computes the bucket of each row.
 */
export function statementOf(resolved: ResolvedQuery, organizationId: string): Fragment {
  const { measure } = resolved.metric
  const { sql, bindings } = groupsOf(resolved, organizationId)
  if (measure.type !== 'percentile') return { sql, bindings }
  // The lowest class that reaches the percentile, in each group and bucket and in total.
  const reached = `min(class) filter (where reached >= ${measure.p} * whole)::integer as class, sum(n)::bigint as n, null as a`
  return {
    sql: `
      with folded as materialized (${sql}),
      counted as (
        select *, sum(n) over (partition by bucket, place order by class) as reached,
          sum(n) over (partition by bucket, place) as whole
        from folded
      ),
      classes as (select class, sum(n) as n from folded group by class),
      summed as (select *, sum(n) over (order by class) as reached, sum(n) over () as whole from classes)
      select bucket, place, d1, d2, currency, ${reached} from counted group by 1, 2, 3, 4, 5
      union all
      select 0, null, null, null, null, ${reached} from summed having count(*) > 0`,
    bindings,
  }
}

/** The sums by group and bucket; for a percentile also by class. */
function groupsOf(resolved: ResolvedQuery, organizationId: string): Fragment {
  const { metric, groupBy, buckets } = resolved
  const columns = [
    ...groupBy.map((name, i) => `t.${name} as d${i + 1}`),
    ...(metric.currency ? [`t.${metric.currency} as currency`] : []),
    ...(metric.measure.type === 'percentile' ? [`${classOf(metric.measure.of)} as class`] : []),
  ]
  const names = columns.map((column) => column.split(' as ').at(-1)!)
  const scan = (range: string) => `
    select ${[...columns, 'count(*) as n', `${sumOf(metric.measure)} as a`].join(', ')}
    from ${metric.source.table} t
    where t.organization_id = ? and ${range} and ${conditionsOf(resolved)}
    ${names.length > 0 ? `group by ${names.map((_, i) => i + 1).join(', ')}` : ''}`
  const scanned = [organizationId]
  const filters = resolved.filter.map(([, , values]) => values.filter((value) => value !== null))
  const shown = (name: string, type = 'text') => (names.includes(name) ? name : `null::${type} as ${name}`)
  const dimension = (name: string) => (names.includes(name) ? `${name}::text` : `null::text as ${name}`)
  const cells = `
    select bucket, ${groupBy.length === 0 ? '1 as place, ' : ''}${dimension('d1')}, ${dimension('d2')}, ${shown('currency')}, ${shown('class', 'integer')}, n, a
    from ${
      buckets
        ? `unnest(?::${typeOf(resolved)}[], ?::${typeOf(resolved)}[]) with ordinality as b (start, until, bucket),
           lateral (${scan(`t.${metric.time} >= b.start and t.${metric.time} < b.until`)}) c`
        : `(select 1 as bucket) b, (${scan(rangeOf(resolved))}) c`
    }`
  const bounds = buckets
    ? [edges(resolved).slice(0, -1), edges(resolved).slice(1)]
    : [resolved.from, resolved.to].flatMap((moment) => (moment === null ? [] : [boundOf(resolved, moment)]))
  // In the statement, buckets precede the organization, and other bounds follow it.
  const bindings = buckets ? [...bounds, ...scanned, ...filters] : [...scanned, ...bounds, ...filters]
  if (groupBy.length === 0) return { sql: cells, bindings }
  // The groups with the most rows, each with its rank; the other groups are added up.
  return {
    sql: `
      with cells as materialized (${cells}),
      keyed as (select *, jsonb_build_array(d1, d2) as key from cells),
      shown as (
        select key, row_number() over (order by sum(n) desc, key) as place
        from keyed group by key order by place limit ?
      )
      select bucket, place, case when place is not null then d1 end as d1, case when place is not null then d2 end as d2,
        currency, class, sum(n)::bigint as n, sum(a) as a
      from keyed left join shown using (key) group by 1, 2, 3, 4, 5, 6`,
    bindings: [...bindings, resolved.limit],
  }
}

/** SQL: the conditions of the metric and the filters. Values are bound. */
function conditionsOf({ metric, filter }: ResolvedQuery): string {
  const { measure, source, where, currency } = metric
  const filters = filter.map(([name, { type }, values]) => {
    const some = `t.${name} = any(?::${type === 'id' ? 'uuid' : 'text'}[])`
    return values.includes(null) ? `(${some} or t.${name} is null)` : some
  })
  // The measure is null exactly if one of its columns is.
  const measured =
    'of' in measure
      ? [...new Set(measure.of.match(/\bt\.\w+/g))].map((column) => `${column} is not null`)
      : []
  const priced = currency ? [`t.${currency} is not null`] : []
  return [source.where, ...(where ? [where] : []), ...measured, ...priced, ...filters].join(' and ')
}

function sumOf(measure: Measure): string {
  switch (measure.type) {
    case 'count':
    case 'percentile':
      return 'null::bigint'
    case 'rate':
      return `count(*) filter (where ${measure.is})`
    default:
      return `sum(${measure.of})`
  }
}

/** SQL: the class of a value, for percentiles. An exact percentile would sort all rows. */
const classOf = (of: string) =>
  `ceil(ln(greatest(${of}, ${CLASS_LEAST})) * ${1 / Math.log(CLASS_RATIO)}::double precision)::integer`

const typeOf = ({ metric }: ResolvedQuery) => (metric.time === 'id' ? 'uuid' : 'timestamptz')

/** The bounds of the buckets: the first and the last are the bounds of the period. */
function edges(resolved: ResolvedQuery): string[] {
  const [, ...inner] = resolved.buckets!
  return [resolved.from ?? resolved.buckets![0]!, ...inner, resolved.to].map((moment) =>
    boundOf(resolved, moment),
  )
}

function rangeOf(resolved: ResolvedQuery): string {
  const { metric, from } = resolved
  const bound = (operator: string) => `t.${metric.time} ${operator} ?::${typeOf(resolved)}`
  return [...(from === null ? [] : [bound('>=')]), bound('<')].join(' and ')
}

/** A moment as a value of the time column: the first UUIDv7 of its millisecond, or a time. */
function boundOf({ metric }: ResolvedQuery, moment: number): string {
  if (metric.time !== 'id') return new Date(moment).toISOString()
  const hex = Math.max(0, moment).toString(16).padStart(12, '0')
  return `${hex.slice(0, 8)}-${hex.slice(8)}-0000-0000-000000000000`
}
