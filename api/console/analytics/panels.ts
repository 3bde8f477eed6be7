import type { AnalyticsResult } from '../../../workflows/shared/analytics.ts'
import type { Value } from './values.ts'

/** A group of a result, with its value in each bucket. */
export interface Series {
  group: Record<string, string | null>
  /** Whether it is the sum of the groups that are not shown. */
  isOther: boolean
  values: Value[]
}

/** What one chart shows: of money one currency, because amounts of several are never added. */
export interface Panel {
  currency: string | undefined
  /** The starts of the buckets; one that is null without an interval. */
  buckets: (string | null)[]
  series: Series[]
}

/** The charts of a result: one, or one for each currency. */
export function panelsOf({ rows }: AnalyticsResult): Panel[] {
  const buckets = [...new Set(rows.map(({ bucket }) => bucket))]
  const place = new Map(buckets.map((bucket, i) => [bucket, i]))
  const panels = new Map<string | undefined, Map<string, Series>>()
  for (const { bucket, group, other, currency, value } of rows) {
    const all = panels.get(currency) ?? new Map<string, Series>()
    panels.set(currency, all)
    const key = JSON.stringify([group, other])
    const series = all.get(key) ?? { group, isOther: other, values: buckets.map((): Value => null) }
    all.set(key, series)
    series.values[place.get(bucket)!] = value
  }
  return [...panels].map(([currency, all]) => ({ currency, buckets, series: [...all.values()] }))
}

/** What a group is called: the values of its dimensions, ids by their names. */
export function groupText({ group, isOther }: Series, names: ReadonlyMap<string, string>): string {
  if (isOther) return 'others'
  const texts = Object.values(group).map((value) => (value === null ? '(none)' : (names.get(value) ?? value)))
  return texts.join(', ') || 'all'
}
