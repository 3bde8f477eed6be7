import assert from 'node:assert/strict'
import { ToUtf8 } from '../../../../db/model/csv/encoding.ts'
import { columnsOf, readRow } from '../../../../db/model/imports/read-row.ts'
import { targetsOf } from '../../../../db/model/imports/targets.ts'

const targets = targetsOf('contacts', { definitions: {}, strict: false } as never)
const reading = {
  columns: columnsOf(['Name', 'Place', 'Other'], { Name: 'last_name', Place: 'address.city' }, targets),
  width: 3,
  delimiter: ',',
  currencies: {},
  currency: 'EUR',
  timezone: 'UTC',
  values: new Map(),
  users: [],
}

describe('cells with bytes that are not UTF-8', () => {
  it('are a problem of their row, unless their column is ignored', () => {
    const decoder = new ToUtf8({ chosen: 'utf-8' })
    const cell = Buffer.concat([decoder.write(Buffer.from([0x5a, 0xeb, 0x72])), decoder.end()]).toString()
    const { fields, issues } = readRow(reading, ['Zoë', cell, ''])
    assert.deepEqual(fields, { last_name: 'Zoë' })
    assert.deepEqual(
      issues.map(({ column }) => column),
      ['Place'],
    )
    assert.deepEqual(readRow(reading, ['Zoë', '', cell]).issues, [])
  })
})
