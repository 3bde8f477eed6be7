import assert from 'node:assert/strict'
import { recordQuery } from '../../../api/v1/record-query.ts'
import { check } from '../../../db/model/validate.ts'

describe('the query of a list of records', () => {
  const issues = (query: Record<string, string | string[]>) => {
    const checked = check(recordQuery('contacts'), query, 'query')
    return 'issues' in checked ? checked.issues : []
  }

  it('refuses unknown parameters, also names that every object has', () => {
    for (const name of ['nope', 'constructor', 'toString', 'hasOwnProperty', 'valueOf'])
      assert.deepEqual(
        issues({ [name]: '1' }).map(({ loc, type }) => ({ loc, type })),
        [{ loc: ['query', name], type: 'unrecognized_key' }],
        name,
      )
  })

  it('limits the filters and values to those of one statement', () => {
    const msgs = (query: Record<string, string[]>) => issues(query).map(({ msg }) => msg)
    assert.deepEqual(msgs({ nope: Array(100_000).fill('') }).at(-1), 'at most 50 filters')
    assert.equal(msgs({ nope: Array(100_000).fill('') }).length, 51)
    const values = 'a,'.repeat(2_500)
    assert.deepEqual(msgs({ 'email[in]': [values, values, values] }), [])
    assert.deepEqual(msgs({ 'email[in]': [values, values, values, values] }), [
      'at most 10,000 values in all filters',
    ])
  })

  it('echoes an invalid number as sent', () => {
    for (const given of ['abc', '1.5', '0', '201'])
      assert.deepEqual(
        issues({ limit: given }).map(({ input }) => input),
        [given],
      )
    for (const limit of ['abc', '0', '201'])
      assert.equal(issues({ limit })[0]?.msg, 'must be an integer from 1 to 200')
  })

  it('refuses a repeated control, and accepts repeated filters', () => {
    for (const name of ['limit', 'offset', 'cursor', 'sort', 'order', 'q', 'match', 'count', 'fields'])
      assert.deepEqual(
        issues({ [name]: ['1', '1'] }).map(({ loc, msg }) => [loc[1], msg]),
        [[name, 'was sent 2 times, but accepts one value']],
      )
    assert.deepEqual(issues({ email: ['a@b.co', 'b@b.co'] }), [])
    assert.equal(issues({ 'version[gte]': ['1', 'x'] })[0]?.input, 'x')
  })

  it('names all unknown fields, each with a suggestion', () => {
    const [issue, ...others] = issues({ fields: 'emial,zzzzzz,email,zzzzzz,lastname,constructor' })
    assert.deepEqual(others, [])
    assert.equal(issue?.msg, 'has no fields emial, zzzzzz, lastname, constructor')
    assert.match(issue!.hint!, /^did you mean email, last_name\? fields are object, id, first_name, /)
    assert.equal(issues({ fields: 'zz' })[0]?.msg, 'has no field zz')
    assert.match(issues({ fields: 'x'.repeat(1_000) })[0]!.msg, /^has no field x{100}$/)
    const many = Array.from({ length: 500 }, (_, i) => `f${i}`)
    assert.match(issues({ fields: many.join() })[0]!.msg, /f19 and 480 more$/)
  })

  it('reports all issues of controls and filters', () => {
    const wrong = {
      limit: '0',
      sort: 'nope',
      order: 'up',
      fields: 'nope',
      nope: '1',
      tags: 'vip',
      lead_status: 'hot',
      created_at: 'soon',
      'version[gte]': ['x', '1'],
      'custom_fields.tier[nope]': 'gold',
    }
    assert.deepEqual(
      issues(wrong)
        .map(({ loc }) => loc[1])
        .sort(),
      Object.keys(wrong).sort(),
    )
  })

  it('lists the operators of a field that has no equality filter', () => {
    for (const [name, operators] of Object.entries({ tags: 'has, has_not, is_null', address: 'is_null' })) {
      const [issue, ...others] = issues({ [name]: 'vip' })
      assert.deepEqual([issue!.msg, others], [`eq is not an operator of ${name}`, []])
      assert.equal(issue!.hint, `${name} supports the operators ${operators}`)
    }
  })

  it('lists the sort fields as a hint', () => {
    assert.match(
      issues({ sort: 'tags' })[0]!.hint!,
      /^sort fields are .*\blast_name\b.*, custom_fields\.<name>$/,
    )
    assert.doesNotMatch(issues({ sort: '-name' })[0]!.hint!, /\baddress\b|\btags\b/)
  })
})
