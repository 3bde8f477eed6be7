import assert from 'node:assert/strict'
import { daysOf } from '../../../../db/model/records/relative-days.ts'

describe('relative days', () => {
  const expected: [name: string, today: string, first: string, last: string][] = [
    ['today', '2024-02-29', '2024-02-29', '2024-02-29'],
    ['yesterday', '2024-03-01', '2024-02-29', '2024-02-29'],
    ['tomorrow', '2024-12-31', '2025-01-01', '2025-01-01'],
    ['last_7_days', '2024-03-03', '2024-02-26', '2024-03-03'],
    ['next_30_days', '2024-12-31', '2024-12-31', '2025-01-29'],
    // A Sunday belongs to the week that began six days before.
    ['this_week', '2024-03-03', '2024-02-26', '2024-03-03'],
    ['last_week', '2024-03-04', '2024-02-26', '2024-03-03'],
    ['next_week', '2024-03-03', '2024-03-04', '2024-03-10'],
    ['this_month', '2024-02-10', '2024-02-01', '2024-02-29'],
    ['last_month', '2024-01-31', '2023-12-01', '2023-12-31'],
    ['next_month', '2024-01-31', '2024-02-01', '2024-02-29'],
    ['this_quarter', '2024-05-31', '2024-04-01', '2024-06-30'],
    ['last_quarter', '2024-01-01', '2023-10-01', '2023-12-31'],
    ['next_year', '2024-02-29', '2025-01-01', '2025-12-31'],
  ]
  for (const [name, today, first, last] of expected)
    it(`${name} of ${today} is ${first} to ${last}`, () =>
      assert.deepEqual(daysOf(name, today), [first, last]))

  for (const name of ['', 'now', 'last_0_days', 'last_99999_days', 'last_7_weeks', 'this_days'])
    it(`${name || 'an empty text'} is none`, () => assert.equal(daysOf(name, '2024-01-01'), undefined))
})
