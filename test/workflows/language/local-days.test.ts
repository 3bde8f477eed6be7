import { deepEqual, equal, throws } from 'node:assert/strict'
import fc from 'fast-check'
import { render } from '../../../workflows/language/expressions/liquid.ts'
import { compare, comparison } from '../../../workflows/nodes/compare.ts'
import type { ConditionOperator } from '../../../workflows/shared/operators.ts'
import { outputOf } from '../../support/execute-node.ts'

const ZURICH = 'Europe/Zurich'
const NEW_YORK = 'America/New_York'

describe('days, and times without an offset', () => {
  const value = (text: string, timezone = ZURICH, inputs: object = {}) =>
    render(`{{ ${text} }}`, { inputs, org: { timezone } })

  /** A moment, a day, the organization's time zone, and whether the moment is before (-1), in (0) or after (1) the day. */
  const ROWS: [moment: string, day: string, timezone: string, order: -1 | 0 | 1][] = [
    ['2026-01-30T22:59:59.999Z', '2026-01-31', ZURICH, -1],
    ['2026-01-30T23:00:00Z', '2026-01-31', ZURICH, 0],
    ['2026-01-31T22:59:59.999Z', '2026-01-31', ZURICH, 0],
    ['2026-01-31T23:00:00.000Z', '2026-01-31', ZURICH, 1],
    ['2026-02-01T04:59:59Z', '2026-01-31', NEW_YORK, 0],
    ['2026-01-31T04:59:59Z', '2026-01-31', NEW_YORK, -1],
    ['2026-01-31T23:30:00Z', '2026-01-31', 'UTC', 0],
    // A day of 25 hours.
    ['2026-10-25T22:30:00Z', '2026-10-25', ZURICH, 0],
    ['2026-01-31T23:30', '2026-01-31', NEW_YORK, 0],
    ['2026-02-01T00:30', '2026-01-31', NEW_YORK, 1],
    ['9999-12-31T12:00:00Z', '9999-12-31', ZURICH, 0],
  ]
  const SIGNS: [sign: string, operator: ConditionOperator, holds: (order: number) => boolean][] = [
    ['<', 'lt', (order) => order < 0],
    ['<=', 'lte', (order) => order <= 0],
    ['>', 'gt', (order) => order > 0],
    ['>=', 'gte', (order) => order >= 0],
    ['==', 'eq', (order) => order === 0],
    ['!=', 'ne', (order) => order !== 0],
  ]

  it('are compared with a moment as a search compares them, in expressions and in nodes', () => {
    for (const [moment, day, timezone, order] of ROWS)
      for (const [sign, operator, holds] of SIGNS) {
        const told = `${moment} ${sign} ${day} in ${timezone}`
        const inputs = { moment, day }
        equal(value(`inputs.moment ${sign} inputs.day`, timezone, inputs), holds(order), told)
        equal(value(`inputs.day ${sign} inputs.moment`, timezone, inputs), holds(-order), `reversed: ${told}`)
        equal(compare(moment, operator, day, timezone), holds(order), told)
        equal(compare(day, operator, moment, timezone), holds(-order), `reversed: ${told}`)
      }
  })

  it('are found in lists of days and of moments in constant time, as `eq` compares them', () => {
    const time = fc.oneof(
      fc.constantFrom('2026-03-29', '2026-03-30', '2026-03-29T01:30', '2026-03-29T02:30', 'x'),
      fc
        .date({ noInvalidDate: true, min: new Date('2026-03-28T20:00Z'), max: new Date('2026-03-30T02:00Z') })
        .map((date) => date.toISOString()),
    )
    fc.assert(
      fc.property(
        fc.constantFrom(ZURICH, NEW_YORK, 'UTC'),
        time,
        fc.array(time, { minLength: 1, maxLength: 4 }),
        (timezone, left, right) =>
          equal(comparison('in', right, timezone)(left), compare(left, 'in', right, timezone)),
      ),
      { numRuns: 2_000 },
    )
  })

  it('are the days of the organization in every node that compares', async () => {
    const at = '2026-01-30T23:30:00Z'
    const options = { timezone: ZURICH }
    const conditions = [{ left: at, operator: 'gte', right: '2026-01-31' }]
    deepEqual(await outputOf('condition', { conditions }, options), { result: true })
    deepEqual(await outputOf('condition', { conditions }), { result: false })
    const items = [{ at }, { at: '2026-01-30T22:30:00Z' }]
    const fields = [{ field: 'at', operator: 'eq', right: '2026-01-31' }]
    equal((await outputOf('filter_items', { items, conditions: fields }, options)).count, 1)
    const cases = { today: '2026-01-31' }
    equal((await outputOf('switch', { value: at, cases }, options)).case, 'today')
    const mixed = [{ at: '2026-01-31' }, { at: '2026-01-30T22:30:00Z' }, { at: '2026-01-30T23:30:00Z' }]
    const sorted = await outputOf('sort_items', { items: mixed, by: [{ field: 'at' }] }, options)
    deepEqual(
      (sorted.items as { at: string }[]).map((item) => item.at),
      ['2026-01-30T22:30:00Z', '2026-01-31', '2026-01-30T23:30:00Z'],
    )
    const values = { last: { function: 'max', field: 'at' } }
    deepEqual((await outputOf('aggregate_items', { items: mixed, values }, options)).values, {
      last: '2026-01-30T23:30:00Z',
    })
  })

  it('are moments with the offsets of databases and of languages', () => {
    const at = '2026-01-31T09:00:00Z'
    const next = '2026-01-31T09:00:01Z'
    for (const written of [
      '2026-01-31 09:00:00+00',
      '2026-01-31 10:00:00.000000+01',
      '2026-01-31T04:00:00-05',
      '2026-01-31 09:00:00 UTC',
      '2026-01-31 09:00:00 GMT',
      '2026-01-31 14:30:00 +0530',
    ]) {
      const inputs = { written, list: [next, written, '2026-01-31T08:00:00Z'] }
      equal(value(`inputs.written == '${at}'`, ZURICH, inputs), true, written)
      equal(value(`inputs.written < '${next}'`, ZURICH, inputs), true, written)
      equal(value('inputs.written < inputs.written', ZURICH, inputs), false, written)
      equal(compare(written, 'eq', at, ZURICH), true, written)
      equal(value('inputs.list | sort | last', ZURICH, inputs), next, written)
      equal(value("inputs.written | date: '%F %R'", ZURICH, inputs), '2026-01-31 10:00', written)
    }
  })

  it('have the order of their letters beside others of an unknown time zone', () => {
    const inputs = { one: '2026-01-31 09:00:00 CET', other: '2026-02-01 08:00:00 CET' }
    equal(value('inputs.one < inputs.other', ZURICH, inputs), true)
    equal(compare(inputs.one, 'lt', inputs.other, ZURICH), true)
    const noon = { one: '2026-01-31 12:30 PM', other: '2026-01-31 01:30 PM' }
    throws(() => value('inputs.one < inputs.other', ZURICH, noon), /cannot be compared with one/)
    throws(() => compare('2026-01-31 9:00', 'lt', '2026-01-31 10:00'), /cannot be compared with one/)
  })

  it('are those of the organization in the filters of lists', () => {
    const items = [{ at: '2026-01-30T23:30:00Z' }, { at: '2026-01-30T22:30:00Z' }]
    equal(value("inputs.items | where: 'at', '2026-01-31' | size", ZURICH, { items }), 1)
    equal(value("inputs.items | where: 'at', '2026-01-31' | size", 'UTC', { items }), 0)
    equal(value("inputs.items | map: 'at' | sort | first", ZURICH, { items }), items[1]!.at)
  })

  it('are counted as days of the calendar until another day', () => {
    const evening = '2026-11-27T22:30:00Z'
    equal(value(`'${evening}' | time_until: '2026-11-29', 'days'`), 2)
    equal(value(`'${evening}' | time_until: '2026-11-29', 'days'`, 'Asia/Tokyo'), 1)
    equal(value(`'2026-11-29' | time_until: '${evening}', 'days'`), -2)
    equal(value(`'${evening}' | time_until: '2026-11-28', 'minutes'`), 30)
    // A day of 23 hours is one day; two moments are as far apart as they are.
    equal(value("'2026-03-29' | time_until: '2026-03-30', 'days'"), 1)
    equal(value("'2026-03-29' | time_until: '2026-03-30', 'hours'"), 23)
    equal(value(`'${evening}' | time_until: '2026-11-29T21:00:00Z', 'days'`), 1)
  })

  it('are added to in the local calendar', () => {
    equal(value("'2026-03-28T08:00:00Z' | add_time: 1, 'day'"), '2026-03-29T07:00:00.000Z')
    equal(value("'2026-03-28T08:00:00Z' | add_time: 24, 'hours'"), '2026-03-29T08:00:00.000Z')
    equal(value("'2026-03-28' | add_time: 1, 'month'", NEW_YORK), '2026-04-28')
    equal(value("'2026-03-28' | add_time: 9, 'hours'"), '2026-03-28T08:00:00.000Z')
    equal(value("'2026-07-01T09:30' | add_time: 0, 'hours'"), '2026-07-01T07:30:00.000Z')
  })

  it('are written by `date` as they are, and moments in the time zone of the organization', () => {
    equal(value("'2026-07-01' | date: '%d.%m.%Y %R'", NEW_YORK), '01.07.2026 00:00')
    equal(value("'2026-07-01T09:30' | date: '%F %R'", NEW_YORK), '2026-07-01 09:30')
    equal(value("'2026-07-01T09:30' | date: '%F %R', 'UTC'", NEW_YORK), '2026-07-01 13:30')
    equal(value("'2026-07-01T22:30:00Z' | date: '%F %R'"), '2026-07-02 00:30')
    equal(value("'2026-07-01T22:30:00Z' | date: '%F', 'UTC'"), '2026-07-01')
    equal(value("'2026-07-01T22:30:00Z' | date: '%G-W%V-%u'"), '2026-W27-4')
    equal(value("1782945000 | date: '%F %R'"), '2026-07-02 00:30')
    equal(value("'2026-07-01' | date_to_string", NEW_YORK), '01 Jul 2026')
    equal(value("'2026-07-01' | date_to_xmlschema"), '2026-07-01T00:00:00+02:00')
  })

  it('are in UTC where the format names it', () => {
    for (const [format, text] of [
      ['%FT%TZ', '2026-07-01T22:30:00Z'],
      ['%Y-%m-%dT%H:%M:%S.000Z', '2026-07-01T22:30:00.000Z'],
      ['%F %R UTC', '2026-07-01 22:30 UTC'],
      ['%FT%T+00:00', '2026-07-01T22:30:00+00:00'],
      ['%d. %B, Zimmer 3', '02. July, Zimmer 3'],
      ['%F %Z', '2026-07-02 Europe/Zurich'],
      ['%H:%M, Gate Z', '00:30, Gate Z'],
      ['Gate Z, %H:%M', 'Gate Z, 00:30'],
      ['%H:%M GMT+1', '00:30 GMT+1'],
      ['%H:%M UTC+02:00', '00:30 UTC+02:00'],
      ['%H:%M%%M Z', '00:30%M Z'],
      ['%H:%MZ', '22:30Z'],
      ['%H:%M:%S.%LZ', '22:30:00.000Z'],
      ['%I:%M %p GMT', '10:30 PM GMT'],
      ['%F %R (UTC)', '2026-07-01 22:30 (UTC)'],
    ])
      equal(value(`'2026-07-01T22:30:00Z' | date: '${format}'`), text)
  })

  it('are those of the organization in nodes without a time zone of their own', async () => {
    const options = { timezone: ZURICH }
    const until = async (config: object) => (await outputOf('wait_until', { ...config }, options)).until
    equal(await until({ until: '2026-07-15' }), '2026-07-14T22:00:00.000Z')
    equal(await until({ until: '2026-07-15T09:00' }), '2026-07-15T07:00:00.000Z')
    equal(await until({ until: '2026-07-15', timezone: 'UTC' }), '2026-07-15T00:00:00.000Z')
    const written = async (config: object) => {
      const { text, iso } = await outputOf('format_date', { format: '%F %R', ...config }, options)
      return [text, iso]
    }
    deepEqual(await written({ value: '2026-07-15' }), ['2026-07-15 00:00', '2026-07-14T22:00:00.000Z'])
    deepEqual(await written({ value: '2026-07-15T22:30:00Z' }), [
      '2026-07-16 00:30',
      '2026-07-15T22:30:00.000Z',
    ])
    deepEqual(await written({ value: '2026-07-15', timezone: 'UTC' }), [
      '2026-07-15 00:00',
      '2026-07-15T00:00:00.000Z',
    ])
  })
})
