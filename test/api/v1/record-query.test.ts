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
    for (const limit of ['abc', '0', '201'])
      assert.equal(issues({ limit })[0]?.msg, 'must be a whole number from 1 to 200')
    assert.equal(issues({ offset: ['1', '2'] })[0]?.msg, 'must be a whole number from 0 on')
  })

  it('says all that is wrong with controls and filters at once', () => {
    const wrong = {
      ...{
        limit: '0',
        sort: 'nope',
        order: 'up',
        fields: 'nope',
        nope: '1',
        tags: 'vip',
        lead_status: 'hot',
      },
      ...{ created_at: 'soon', 'version[gte]': ['x', '1'], 'custom_fields.tier[nope]': 'gold' },
    }
    assert.deepEqual(
      issues(wrong)
        .map(({ loc }) => loc[1])
        .sort(),
      Object.keys(wrong).sort(),
    )
  })

  it('hints at what can be sorted by', () => {
    assert.match(
      issues({ sort: 'tags' })[0]!.hint!,
      /^fields to sort by are .*\blast_name\b.*, custom_fields\.<name>$/,
    )
    assert.doesNotMatch(issues({ sort: '-name' })[0]!.hint!, /\baddress\b|\btags\b/)
  })
})
