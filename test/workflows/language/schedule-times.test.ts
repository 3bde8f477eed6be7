import assert from 'node:assert/strict'
import { randomUUID } from 'node:crypto'
import { Client, Connection } from '@temporalio/client'
import {
  type Clock,
  countTimes,
  listTimes,
  localText,
  nextTimes,
  shortestGap,
} from '../../../workflows/language/schedule-times.ts'

const cron = (cron: string, timezone = 'UTC'): Clock => ({ cron, timezone })
const every = (every: string, offset?: string): Clock => ({
  every,
  timezone: 'UTC',
  ...(offset !== undefined && { offset }),
})
const iso = (times: Date[]) => times.map((time) => time.toISOString().slice(0, 16))

describe('the times of a schedule', () => {
  let client: Client
  before(async () => {
    client = new Client({
      connection: await Connection.connect({ address: process.env.TEST_TEMPORAL_ADDRESS! }),
    })
  })
  after(() => client.connection.close())

  /** The times of Temporal itself, which fires the schedules. */
  async function timesOfTemporal(clock: Clock, from: string, to: string): Promise<string[]> {
    const scheduleId = `times-${randomUUID()}`
    const handle = await client.schedule.create({
      scheduleId,
      spec: {
        ...(clock.cron !== undefined
          ? { cronExpressions: [clock.cron], timezone: clock.timezone }
          : {
              intervals: [
                { every: clock.every as '1m', ...(clock.offset && { offset: clock.offset as '1m' }) },
              ],
            }),
      },
      action: { type: 'startWorkflow', workflowType: 'unused', taskQueue: 'unused', args: [] },
      state: { paused: true },
    })
    const seconds = (time: number) => ({ seconds: time / 1_000 }) as never
    const { startTime } = await client.workflowService.listScheduleMatchingTimes({
      namespace: 'default',
      scheduleId,
      // Temporal's start is exclusive.
      startTime: seconds(Date.parse(from) - 1_000),
      endTime: seconds(Date.parse(to)),
    })
    await handle.delete()
    return startTime!.map((time) => new Date(Number(time.seconds) * 1_000).toISOString().slice(0, 16))
  }

  const cases: [name: string, clock: Clock, from: string, to: string][] = [
    ['weekdays at half past eight', cron('30 8 * * 1-5', 'Europe/Zurich'), '2026-03-20', '2026-04-10'],
    [
      'a time that clocks leave out in spring',
      cron('30 2 * * *', 'Europe/Zurich'),
      '2026-03-25',
      '2026-04-02',
    ],
    ['a time that clocks repeat in autumn', cron('30 2 * * *', 'Europe/Zurich'), '2026-10-20', '2026-10-30'],
    ['a repeated time west of Greenwich', cron('30 1 * * *', 'America/New_York'), '2026-10-28', '2026-11-05'],
    ['every hour across the autumn', cron('0 * * * *', 'Europe/Zurich'), '2026-10-24', '2026-10-27'],
    [
      'every 20 minutes across the autumn',
      cron('*/20 * * * *', 'America/New_York'),
      '2026-11-01',
      '2026-11-02',
    ],
    [
      'every 20 minutes across the spring',
      cron('*/20 0-4 * * *', 'America/New_York'),
      '2026-03-07',
      '2026-03-10',
    ],
    // Temporal skips almost two hours of these around the repeated hour.
    [
      'every other minute across the autumn',
      cron('*/2 * * * *', 'Europe/Zurich'),
      '2026-10-25',
      '2026-10-26',
    ],
    ['a change of clocks at midnight', cron('15 0 * * *', 'Africa/Cairo'), '2026-04-20', '2026-04-30'],
    [
      'a change of clocks by half an hour',
      cron('*/15 1-3 * * *', 'Australia/Lord_Howe'),
      '2026-04-03',
      '2026-04-07',
    ],
    [
      'a zone that is three quarters off',
      cron('0,45 */6 * * *', 'Asia/Kathmandu'),
      '2026-01-01',
      '2026-01-04',
    ],
    ['both day fields', cron('0 0 13 * 5'), '2026-01-01', '2029-01-01'],
    ['the seventh day of the week', cron('0 0 * * 7'), '2026-01-01', '2026-03-01'],
    ['leap days', cron('0 12 29 2 *', 'Asia/Tokyo'), '2026-01-01', '2036-01-01'],
    ['an interval', every('15m'), '2026-01-01', '2026-01-02'],
    ['an interval with an offset', every('90m', '10m'), '2026-01-01', '2026-01-03'],
  ]
  for (const [name, clock, from, to] of cases)
    it(`are those of Temporal: ${name}`, async () => {
      const expected = await timesOfTemporal(clock, `${from}T00:00:00Z`, `${to}T00:00:00Z`)
      assert.ok(expected.length > 0)
      const [start, end] = [new Date(from), new Date(to)]
      assert.deepEqual(iso(listTimes(clock, start, end)), expected)
      assert.equal(countTimes(clock, start, end), expected.length)
      assert.deepEqual(iso(nextTimes(clock, new Date(start.getTime() - 1), expected.length)), expected)
    })

  it('are counted for ten years of minutes', () => {
    const count = countTimes(
      cron('* * * * *', 'Europe/Zurich'),
      new Date('2016-01-01'),
      new Date('2026-01-01'),
    )
    // Without the two hours of each autumn that Temporal skips.
    assert.equal(count, 3_653 * 1_440 + 1 - 10 * 120)
  })

  it('have a shortest gap', () => {
    const gaps = [cron('*/15 * * * *'), cron('0 8,9 * * *'), cron('0 8 * * 1'), every('90m')].map(shortestGap)
    assert.deepEqual(
      gaps,
      [15, 60, 7 * 1_440, 90].map((minutes) => minutes * 60_000),
    )
  })

  it('are shown as the clocks of their zone show them', () => {
    const shown = (time: string, zone: string) => localText(new Date(time), zone)
    assert.deepEqual(
      [
        shown('2026-10-25T00:30:00Z', 'Europe/Zurich'),
        shown('2026-10-25T01:30:00Z', 'Europe/Zurich'),
        shown('2026-01-01T00:00:00Z', 'America/St_Johns'),
        shown('2026-01-01T00:00:00Z', 'UTC'),
      ],
      [
        '2026-10-25T02:30:00+02:00',
        '2026-10-25T02:30:00+01:00',
        '2025-12-31T20:30:00-03:30',
        '2026-01-01T00:00:00+00:00',
      ],
    )
  })
})
