import type { AnalyticsResult, AnalyticsRow, Interval } from '../../../workflows/shared/analytics.ts'
import { durationText } from '../components/time.tsx'

export type Value = AnalyticsRow['value']

const twoPlaces = new Intl.NumberFormat('en', { minimumFractionDigits: 2, maximumFractionDigits: 2 })
const compact = new Intl.NumberFormat('en', { notation: 'compact', maximumFractionDigits: 1 })

/** A decimal with its thousands apart, rounded to cents: a product of amount and probability has more places. */
const moneyText = (decimal: string) => twoPlaces.format(decimal as `${number}`)

/** A value beside an axis: as short as it can be. */
export function axisText(value: Value, unit: string, currency?: string): string {
  if (unit === 'money') return [compact.format(Number(value)), currency].filter(Boolean).join(' ')
  return unit === 'count' ? compact.format(Number(value)) : valueText(value, unit)
}

/** A value of a metric with its unit. */
export function valueText(value: Value, unit: string, currency?: string): string {
  if (value === null) return '–'
  if (unit === 'money') return [moneyText(String(value)), currency].filter(Boolean).join(' ')
  const number = Number(value)
  if (unit === 'percent') return `${number.toLocaleString('en', { maximumFractionDigits: 1 })} %`
  if (unit === 'seconds') return durationText(number * 1_000)
  if (unit === 'milliseconds') return durationText(number)
  const text = number.toLocaleString('en', { maximumFractionDigits: 1 })
  return unit === 'days' ? `${text} days` : text
}

const FORMATS: Record<Interval, Intl.DateTimeFormatOptions> = {
  hour: { day: 'numeric', month: 'short', hour: '2-digit', minute: '2-digit' },
  day: { day: 'numeric', month: 'short' },
  week: { day: 'numeric', month: 'short' },
  month: { month: 'short', year: 'numeric' },
}

/** The start of a bucket for people: `12 Nov`, in the time zone of the result. A week is named by its Monday. */
export function bucketText(start: string, { interval, time_zone: timeZone }: AnalyticsResult): string {
  const format = new Intl.DateTimeFormat('en-GB', { ...FORMATS[interval ?? 'day'], timeZone })
  return format.format(new Date(start))
}
