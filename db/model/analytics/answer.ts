import type { AnalyticsResult, AnalyticsRow } from '../../../workflows/shared/analytics.ts'
import {
  add,
  type Decimal,
  decimalText,
  divide,
  integer,
  multiply,
  parseDecimal,
} from '../../../workflows/shared/decimal.ts'
import { placesOf } from '../../../workflows/shared/exchange-rates.ts'
import type { Rates } from '../records/exchange-rates.ts'
import { type Cell, valueOfClass } from './cell.ts'
import type { Metric } from './metric.ts'
import type { ResolvedQuery } from './query.ts'

/** The sums from which a value is computed, added up over any number of cells. */
interface Sums {
  n: number
  a: Decimal
  /** The class, for a percentile. */
  class: number
}

interface Group {
  place: number | null
  values: (string | null)[]
  currency: string | null
  buckets: Map<number, Sums>
}

/**
 * The rows of the result: each group in each bucket, including empty ones, and the totals by currency. `converted`: of
 * money, all of them in the currency of the organization, which is also that of nothing.
 */
export function answerOf(resolved: ResolvedQuery, cells: Cell[], exchange: Rates) {
  const currency = exchange.base
  const { metric, groupBy, buckets } = resolved
  const groups = new Map<string, Group>()
  const totals = new Map<string | null, Sums>()
  for (const cell of cells) {
    if (metric.measure.type !== 'percentile' || cell.bucket === 0) addTo(totals, cell.currency, cell)
    if (cell.bucket === 0) continue
    const key = `${cell.place} ${cell.currency}`
    const group: Group = groups.get(key) ?? {
      place: cell.place,
      currency: cell.currency,
      buckets: new Map(),
      values: [cell.d1, cell.d2].slice(0, groupBy.length),
    }
    groups.set(key, group)
    addTo(group.buckets, cell.bucket, cell)
  }
  if (groupBy.length === 0 && (groups.size === 0 || onlyEmpty(metric, cells))) {
    const fallback = metric.currency ? currency : null
    groups.clear()
    totals.clear()
    groups.set('', { place: 1, values: [], currency: fallback, buckets: new Map() })
    totals.set(fallback, NOTHING())
  }
  const ordered = [...groups.values()].sort(byPlace)
  const rows = (buckets ?? [undefined]).flatMap((start, index) =>
    ordered.map(
      (group): AnalyticsRow => ({
        bucket: start === undefined ? null : new Date(start).toISOString(),
        group: Object.fromEntries(groupBy.map((name, i) => [name, group.values[i] ?? null])),
        other: group.place === null,
        ...(metric.currency && { currency: group.currency! }),
        value: valueIn(metric, group.buckets.get(index + 1) ?? NOTHING()),
      }),
    ),
  )
  const all = [...totals]
    .sort(([a], [b]) => (String(a) < String(b) ? -1 : 1))
    .map(([of, sums]) => ({
      ...(metric.currency && { currency: of! }),
      value: valueIn(metric, sums),
    }))
  if (all.length === 0) all.push({ ...(metric.currency && { currency }), value: valueIn(metric, NOTHING()) })
  return {
    rows,
    totals: all,
    total: all.length === 1 ? all[0]!.value : null,
    ...(metric.currency && { converted: convertedOf(metric, totals, exchange) }),
  }
}

/** The total in the currency of the organization, rounded once; null if one of its currencies has no rate. */
function convertedOf(
  metric: Metric,
  totals: ReadonlyMap<string | null, Sums>,
  { base, rates }: Rates,
): NonNullable<AnalyticsResult['converted']> | null {
  const whole = NOTHING()
  for (const [currency, { n, a }] of totals) {
    const rate = currency === base ? integer(1) : parseDecimal(rates[String(currency)])
    if (!rate) return null
    whole.n += n
    whole.a = add(whole.a, multiply(a, rate))
  }
  const isAverage = metric.measure.type === 'average'
  if (isAverage && whole.n === 0) return { currency: base, value: null }
  const above = metric.measure.type === 'sum' && metric.measure.hundredths ? 100 : 1
  const parts = isAverage ? whole.n : above
  return { currency: base, value: money(divide(whole.a, integer(parts), placesOf(base))) }
}

/** A scan of no rows still returns a cell if there are no groups. */
const onlyEmpty = ({ currency }: Metric, cells: Cell[]) => !currency && cells.every(({ n }) => n === 0)

function byPlace(a: Group, b: Group): number {
  const [left, right] = [a.place ?? Number.POSITIVE_INFINITY, b.place ?? Number.POSITIVE_INFINITY]
  if (left !== right) return left - right
  return String(a.currency) < String(b.currency) ? -1 : 1
}

const NOTHING = (): Sums => ({ n: 0, a: integer(0), class: 0 })

function addTo<Key>(sums: Map<Key, Sums>, key: Key, cell: Cell): void {
  const found = sums.get(key) ?? NOTHING()
  sums.set(key, found)
  found.n += cell.n
  if (cell.a !== null) found.a = add(found.a, parseDecimal(cell.a)!)
  if (cell.class !== null) found.class = cell.class
}

/** Null if there are no rows for an average, a rate or a percentile. */
function valueIn({ measure, unit }: Metric, sums: Sums): number | string | null {
  const { n, a } = sums
  if (measure.type === 'count') return n
  if (measure.type === 'sum') {
    const sum = measure.hundredths ? { ...a, places: a.places + 2 } : a
    return unit === 'money' ? money(sum) : Number(decimalText(sum))
  }
  if (n === 0) return null
  switch (measure.type) {
    case 'rate':
      return rounded((100 * Number(decimalText(a))) / n, 2)
    case 'average':
      return unit === 'money' ? money(divide(a, integer(n), 2)) : rounded(Number(decimalText(a)) / n, 3)
    case 'percentile':
      return rounded(valueOfClass(sums.class), 3)
  }
}

/** Amounts have at least two decimals, as in the API. */
function money(value: Decimal): string {
  const [whole, places = ''] = decimalText(value).split('.')
  return `${whole}.${places.replace(/0+$/, '').padEnd(2, '0')}`
}

const rounded = (value: number, places: number) => Math.round(value * 10 ** places) / 10 ** places
