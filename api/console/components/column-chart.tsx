import type { Value } from '../analytics/values.ts'
import { toneOf } from './status.tsx'

interface Charted {
  name: string
  values: readonly Value[]
}

/** Charts with more buckets have no text for each one: their table has it. */
const MOST_HOVERED = 130

/** The width of a bucket and of its column, in units of the drawing, whose height is 100. */
const WIDTH = 10
const COLUMN = 7

/**
 * Values over time, drawn on the server: stacked columns, or lines of what cannot be added up. The drawing stretches to
 * the width of its card; texts are HTML beside it, so that they keep their size.
 */
export function ColumnChart(props: {
  label: string
  buckets: readonly string[]
  series: readonly Charted[]
  text: (value: Value) => string
  /** The same beside the axis. */
  axis: (value: Value) => string
  /** `percent` ends at 100. */
  unit: string
  isStacked: boolean
}) {
  const { label, buckets, series, text, axis, unit, isStacked } = props
  const sums = buckets.map((_, i) =>
    series.reduce((sum, { values }) => {
      const value = Number(values[i] ?? 0)
      return isStacked ? sum + value : Math.max(sum, value)
    }, 0),
  )
  const top = unit === 'percent' ? 100 : roundedUp(Math.max(...sums))
  const width = buckets.length * WIDTH
  const tones = tonesOf(series)
  return (
    <figure class="chart">
      <div class="axis" aria-hidden="true">
        <span>{axis(top)}</span>
        <span>{axis(0)}</span>
      </div>
      <svg viewBox={`0 0 ${width} 100`} preserveAspectRatio="none" role="img" aria-label={label}>
        <path class="grid" d={`M0 0H${width}M0 50H${width}M0 100H${width}`} />
        {isStacked
          ? columnsOf(series, top).map((path, i) => <path class={`column ${tones[i]}`} d={path} key={i} />)
          : series.map((one, i) => (
              <path class={`line ${tones[i]}`} d={lineOf(one.values, top)} key={one.name} />
            ))}
        {buckets.length <= MOST_HOVERED &&
          buckets.map((bucket, i) => (
            <rect x={i * WIDTH} width={WIDTH} height="100" key={bucket}>
              <title>{`${bucket}: ${hovered(series, i, text)}`}</title>
            </rect>
          ))}
      </svg>
      <div class="ticks" aria-hidden="true">
        {ticksOf(buckets).map((tick, i) => (
          <span key={i}>{tick}</span>
        ))}
      </div>
      {series.length > 1 && (
        <figcaption class="legend">
          {series.map(({ name }, i) => (
            <span key={name}>
              <svg width="8" height="8" aria-hidden="true">
                <rect class={tones[i]} width="8" height="8" rx="2" />
              </svg>
              <span dir="auto">{name}</span>
            </span>
          ))}
        </figcaption>
      )}
    </figure>
  )
}

const hovered = (series: readonly Charted[], i: number, text: (value: Value) => string) =>
  series.length === 1
    ? text(series[0]!.values[i] ?? null)
    : series
        .filter(({ values }) => values[i] !== null && Number(values[i]) !== 0)
        .map(({ name, values }) => `${name} ${text(values[i]!)}`)
        .join(', ') || text(0)

/** The first, middle and last bucket. */
function ticksOf(buckets: readonly string[]): string[] {
  const last = buckets.length - 1
  return [...new Set([0, Math.floor(last / 2), last])].filter((i) => i >= 0).map((i) => buckets[i]!)
}

/** A round number, of one digit and zeros. */
function roundedUp(most: number): number {
  if (!(most > 0)) return 1
  const power = 10 ** Math.floor(Math.log10(most))
  return [1, 2, 3, 4, 5, 6, 8, 10].map((factor) => factor * power).find((one) => one >= most) ?? most
}

const rounded = (number: number) => Math.round(number * 10) / 10

/** One path for each series: its columns stand on those of the series before it. */
function columnsOf(series: readonly Charted[], top: number): string[] {
  const heights: number[] = []
  return series.map(({ values }) =>
    values
      .map((value, i) => {
        const below = heights[i] ?? 0
        const height = (Math.max(0, Number(value ?? 0)) / top) * 100
        heights[i] = below + height
        if (height === 0) return ''
        const x = i * WIDTH + (WIDTH - COLUMN) / 2
        return `M${x} ${rounded(100 - below)}h${COLUMN}v${rounded(-height)}h-${COLUMN}z`
      })
      .join(''),
  )
}

/** A line has a gap where there is no value. */
function lineOf(values: readonly Value[], top: number): string {
  let isDrawn = false
  return values
    .map((value, i) => {
      if (value === null) {
        isDrawn = false
        return ''
      }
      const move = isDrawn ? 'L' : 'M'
      isDrawn = true
      // A point without neighbours is a short line.
      const point = `${i * WIDTH + WIDTH / 2} ${rounded(100 - (Number(value) / top) * 100)}`
      return `${move}${point}${move === 'M' ? 'h.1' : ''}`
    })
    .join('')
}

const PALETTE = 8

/** A status has its colour, unless another one has it already; `others` is grey; the rest takes those of the palette. */
function tonesOf(series: readonly Charted[]): string[] {
  const taken = new Set<string>(series.some(({ name }) => name === 'others') ? ['grey'] : [])
  let next = 0
  return series.map(({ name }) => {
    const tone = toneOf(name)
    if (tone && !taken.has(tone)) {
      taken.add(tone)
      return `tone-${tone}`
    }
    if (name === 'others') return 'tone-grey'
    return `c${next++ % PALETTE}`
  })
}
