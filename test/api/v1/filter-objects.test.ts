import assert from 'node:assert/strict'
import { recordQuery } from '../../../api/v1/record-query.ts'

const parsed = (query: Record<string, string>) => recordQuery('deals').safeParse(query)
const filters = (query: Record<string, string>) =>
  parsed(query).data?.filters.map(({ field, operator, values }) => [field, operator, ...values])

describe('filters as clients for Python send them', () => {
  it('are the same as filters with their operators in brackets', () => {
    assert.deepEqual(
      filters({
        amount: "{'gte': '1000', 'is_null': False}",
        probability: "{'lt': 50}",
        name: `{'contains': "O'Brien, Ltd", 'ne': 'a\\'b'}`,
      }),
      [
        ['amount', 'gte', '1000'],
        ['amount', 'is_null', 'false'],
        ['probability', 'lt', '50'],
        ['name', 'contains', "O'Brien, Ltd"],
        ['name', 'ne', "a'b"],
      ],
    )
  })

  it('are values where they are no dictionary, and refused with an unknown operator', () => {
    for (const name of ["{'gte': '1'", '{x}', "{'gte': '1'} or more", "{'gte': ['1']}"])
      assert.deepEqual(filters({ name }), [['name', 'eq', name]])
    const { error } = parsed({ amount: "{'above': '1'}" })
    assert.match(error?.issues[0]?.message ?? '', /above is not an operator of amount/)
  })
})
