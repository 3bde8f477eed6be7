import assert from 'node:assert/strict'
import fc from 'fast-check'
import { bucketStarts } from '../../../../db/model/analytics/buckets.ts'
import { INTERVALS, type Interval } from '../../../../workflows/shared/analytics.ts'
import { stepsOf } from '../../../support/steps.ts'

const HOUR = 3_600_000

/** Zones with changes at midnight, of half an hour, by a whole day, with odd offsets, and without any. */
const ZONES = [
  'UTC',
  'Europe/Zurich',
  'America/New_York',
  'America/Havana',
  'America/Sao_Paulo',
  'Asia/Beirut',
  'Asia/Kolkata',
  'Asia/Kathmandu',
  'Australia/Lord_Howe',
  'Pacific/Apia',
  'Africa/Cairo',
]

/** Labels of the local clock and calendar from Intl: `2026-03-29 02`, the date, its Monday, the month. */
function labelOf(interval: Interval, zone: string): (moment: number) => string {
  const format = new Intl.DateTimeFormat('sv', {
    timeZone: zone,
    year: 'numeric',
    month: '2-digit',
    day: '2-digit',
    hour: '2-digit',
    hourCycle: 'h23',
  })
  return (moment) => {
    const text = format.format(moment)
    if (interval === 'hour') return text
    if (interval === 'month') return text.slice(0, 7)
    const day = new Date(`${text.slice(0, 10)}T00:00:00Z`)
    if (interval === 'week') day.setUTCDate(day.getUTCDate() - ((day.getUTCDay() + 6) % 7))
    return day.toISOString().slice(0, 10)
  }
}

const starts = (from: string, to: string, interval: Interval, zone: string) =>
  bucketStarts(Date.parse(from), Date.parse(to), interval, zone, 1_000)!.map((start) =>
    new Date(start).toISOString().slice(0, 16),
  )

describe('buckets', () => {
  it('of days have 23 and 25 hours where clocks change', () => {
    assert.deepEqual(starts('2026-03-28T23:00Z', '2026-03-30T10:00Z', 'day', 'Europe/Zurich'), [
      '2026-03-28T23:00',
      '2026-03-29T22:00',
    ])
    assert.deepEqual(starts('2026-10-24T22:00Z', '2026-10-26T10:00Z', 'day', 'Europe/Zurich'), [
      '2026-10-24T22:00',
      '2026-10-25T23:00',
    ])
  })

  it('of days begin at the first moment of a date whose midnight is skipped or comes twice', () => {
    // In Beirut 2026-03-29 begins at 01:00; in Havana the hour after midnight of 2026-11-01 comes twice.
    assert.deepEqual(starts('2026-03-28T22:30Z', '2026-03-29T01:00Z', 'day', 'Asia/Beirut'), [
      '2026-03-28T22:00',
    ])
    assert.deepEqual(starts('2026-11-01T04:30Z', '2026-11-01T06:00Z', 'day', 'America/Havana'), [
      '2026-11-01T04:00',
    ])
  })

  it('of hours are those of the local clock, twice where it is set back', () => {
    assert.deepEqual(starts('2026-10-25T00:10Z', '2026-10-25T02:00Z', 'hour', 'Europe/Zurich'), [
      '2026-10-25T00:00',
      '2026-10-25T01:00',
    ])
    assert.deepEqual(starts('2026-01-01T00:10Z', '2026-01-01T01:00Z', 'hour', 'Asia/Kolkata'), [
      '2025-12-31T23:30',
      '2026-01-01T00:30',
    ])
  })

  it('of weeks begin on Monday, of months on the first', () => {
    assert.deepEqual(starts('2026-01-01T00:00Z', '2026-01-13T00:00Z', 'week', 'UTC'), [
      '2025-12-29T00:00',
      '2026-01-05T00:00',
      '2026-01-12T00:00',
    ])
    assert.deepEqual(starts('2026-02-10T00:00Z', '2026-04-01T00:00Z', 'month', 'UTC'), [
      '2026-02-01T00:00',
      '2026-03-01T00:00',
    ])
  })

  it('are none above the limit, after few steps also for a period of thousands of years', async () => {
    assert.equal(bucketStarts(0, 1_001 * HOUR, 'hour', 'Europe/Zurich', 1_000), undefined)
    assert.equal(bucketStarts(0, 1_000 * HOUR, 'hour', 'UTC', 1_000)?.length, 1_000)
    const [first, last] = [Date.parse('0001-01-02'), Date.parse('9999-12-30')]
    const steps = await stepsOf(() =>
      assert.equal(bucketStarts(first, last, 'month', 'Europe/Zurich', 1_000), undefined),
    )
    assert.ok(steps < 1_000, `${steps} steps`)
  })

  it('cover a period without gaps, each with the moments of one local hour, day, week or month', () => {
    const first = Date.parse('2010-01-01T00:00:00Z')
    const moments = fc.integer({ min: first / 60_000, max: Date.parse('2027-01-01') / 60_000 })
    fc.assert(
      fc.property(
        fc.constantFrom(...INTERVALS),
        fc.constantFrom(...ZONES),
        moments,
        fc.integer({ min: 1, max: 300 }),
        (interval, zone, minute, count) => {
          const from = minute * 60_000
          const length = { hour: HOUR, day: 24 * HOUR, week: 7 * 24 * HOUR, month: 30 * 24 * HOUR }[interval]
          const to = from + Math.ceil((count / 10) * length)
          const found = bucketStarts(from, to, interval, zone, 1_000)!
          const label = labelOf(interval, zone)
          assert.ok(found[0]! <= from)
          assert.ok(found.at(-1)! < to)
          for (const [index, start] of found.entries()) {
            const end = found[index + 1] ?? to
            assert.ok(end > start)
            // Moments within the bucket: the first, the last, and some in between.
            const within = [start, Math.max(start, end - 60_000), (start + end) / 2, from]
            for (const moment of within)
              if (moment >= start && moment < end) assert.equal(label(moment), label(start))
            const before = label(start - 60_000)
            // An hour that occurs twice has the same label.
            if (interval !== 'hour') assert.notEqual(before, label(start))
          }
        },
      ),
      { numRuns: 1_500 },
    )
  })
})
