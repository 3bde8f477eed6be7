import assert from 'node:assert/strict'
import { proposeMapping } from '../../../../db/model/imports/propose.ts'
import { columnsOf, readRow } from '../../../../db/model/imports/read-row.ts'
import { targetsOf } from '../../../../db/model/imports/targets.ts'

const targets = targetsOf('contacts', { definitions: {}, strict: false } as never)

/** What a row of a file with these columns says about contacting the person. */
function read(cells: Record<string, string>) {
  const header = Object.keys(cells)
  const columns = columnsOf(header, proposeMapping('contacts', header, targets).mapping, targets)
  const reading = {
    columns,
    width: header.length,
    delimiter: ',',
    currencies: {},
    currency: 'EUR',
    timezone: 'UTC',
    values: new Map(),
    users: [],
  }
  const { fields, issues } = readRow(reading, Object.values(cells))
  return issues.length > 0 ? issues.map(({ column }) => column) : fields.do_not_contact
}

describe('columns about being contacted', () => {
  for (const [column, cell] of [
    ['Unsubscribed from all email', 'true'],
    ['Opted out of email: Marketing Information', 'TRUE'],
    ['Email Opt Out', '1'],
    ['HasOptedOutOfEmail', 'true'],
    ['HasOptedOutOfFax', 'true'],
    ['Do Not Call', 'Yes'],
    ['DoNotCall', '1'],
    ['Unsubscribe Date', '2024-03-01'],
    ['UNSUB', ''],
    ['Marketing status', 'No consent'],
    ['Email subscription status', 'Unsubscribed'],
    ['Abgemeldet', 'ja'],
    ['Désabonné', 'oui'],
    ['Werbesperre', 'x'],
    ['Email Opt In', 'no'],
    ['Accepts Email Marketing', 'no'],
    ['Marketing consent', 'revoked'],
    ['Werbeeinwilligung', 'nein'],
  ] as const)
    it(`${column}: ${cell || '(blank)'}`, () => {
      assert.equal(read({ Email: 'a@x.example', [column]: cell }), cell ? true : undefined)
    })

  it('never clear an opt-out', () => {
    for (const [column, cell] of [
      ['Unsubscribed from all email', 'false'],
      ['Email subscription status', 'Subscribed'],
      ['Email Opt In', 'yes'],
    ] as const)
      assert.equal(read({ Email: 'a@x.example', [column]: cell }), undefined, column)
  })

  it('may be several: one that says so is enough, whatever the others say', () => {
    const row = { Email: 'a@x.example', 'Do Not Call': 'no', 'Email Opt Out': 'yes', do_not_contact: 'no' }
    assert.equal(read(row), true)
    assert.equal(read({ ...row, 'Email Opt Out': 'no' }), false)
  })

  it('are a problem of the row where they say neither', () => {
    assert.deepEqual(read({ Email: 'a@x.example', 'Email Opt Out': 'perhaps' }), ['Email Opt Out'])
  })

  it('are not other columns', () => {
    const header = ['Notes', 'Note', 'Subscription plan', 'Option', 'Status', 'Newsletter', 'Contact']
    const proposed = Object.values(proposeMapping('contacts', header, targets).mapping)
    assert.deepEqual(
      proposed.filter((target) => target?.startsWith('opted')),
      [],
    )
  })
})
