import { usePage } from '../context.ts'

const STEPS: [Intl.RelativeTimeFormatUnit, number][] = [
  ['year', 31_536_000],
  ['month', 2_592_000],
  ['day', 86_400],
  ['hour', 3_600],
  ['minute', 60],
]
const relative = new Intl.RelativeTimeFormat('en', { numeric: 'auto', style: 'short' })

/** A time, relative to now; its title has the absolute one with its zone. */
export function Time({ at, absolute }: { at: string | null | undefined; absolute?: boolean }) {
  const { timezone } = usePage().view
  if (!at) return <span class="muted">never</span>
  const whole = absoluteTime(at, timezone)
  return (
    <time dateTime={at} title={whole}>
      {absolute ? whole : fromNow(at)}
    </time>
  )
}

function fromNow(at: string): string {
  const seconds = (Date.parse(at) - Date.now()) / 1_000
  const [unit, size] = STEPS.find(([, size]) => Math.abs(seconds) >= size) ?? ['second', 1]
  return unit === 'second' ? 'now' : relative.format(Math.round(seconds / size), unit)
}

export const absoluteTime = (at: string, timeZone: string) =>
  `${new Intl.DateTimeFormat('en-GB', {
    dateStyle: 'medium',
    timeStyle: 'medium',
    timeZone,
  }).format(new Date(at))} ${timeZone}`

const UNITS: [number, string][] = [
  [3_600_000, 'h'],
  [60_000, 'min'],
  [1_000, 's'],
]

/** A duration in its largest unit: `4.5 s`. */
export function durationText(ms: number): string {
  const unit = UNITS.find(([size]) => ms >= size)
  if (!unit) return `${Math.round(ms)} ms`
  const amount = ms / unit[0]
  return `${amount.toFixed(amount < 10 ? 1 : 0)} ${unit[1]}`
}

export function Duration({ ms }: { ms: number | null | undefined }) {
  if (ms === null || ms === undefined) return <span class="muted">–</span>
  return <span class="number">{durationText(ms)}</span>
}
