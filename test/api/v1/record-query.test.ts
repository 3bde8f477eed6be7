import assert from 'node:assert/strict'
import { check } from '../../../api/http/validate.ts'
import { recordQuery } from '../../../api/v1/record-query.ts'

describe('the query of a list of records', () => {
  const issues = (query: Record<string, string | string[]>) => {
    const checked = check(recordQuery('contacts'), query, 'query')
    return 'issues' in checked ? checked.issues : []
  }

  it('refuses a parameter that it does not know, also one that every object has', () => {
    for (const name of ['nope', 'constructor', 'toString', 'hasOwnProperty', 'valueOf'])
      assert.deepEqual(
        issues({ [name]: '1' }).map(({ loc, type }) => ({ loc, type })),
        [{ loc: ['query', name], type: 'unrecognized_key' }],
        name,
      )
  })

  it('shows a number that cannot be read as it was sent', () => {
    for (const given of ['abc', '1.5', '0', '201'])
      assert.deepEqual(
        issues({ limit: given }).map(({ input }) => input),
        [given],
      )
    assert.equal(issues({ limit: 'abc' })[0]?.msg, 'must be a whole number')
    assert.equal(issues({ offset: ['1', '2'] })[0]?.msg, 'must be a whole number')
  })
})
