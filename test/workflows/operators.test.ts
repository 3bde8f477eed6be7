import assert from 'node:assert/strict'
import { compare } from '../../workflows/nodes/compare.ts'
import { CONDITION_OPERATORS, FILTER_OPERATORS, isNegation, operandsOf } from '../../workflows/operators.ts'

describe('operators', () => {
  it('take as many values in filters as in conditions, by either of their names', () => {
    assert.deepEqual([operandsOf('nin'), operandsOf('not_in'), operandsOf('in')], ['list', 'list', 'list'])
    assert.deepEqual(
      [operandsOf('between'), operandsOf('is_null'), operandsOf('is_empty')],
      ['two', 'boolean', 'nothing'],
    )
  })

  it('have negations', () => {
    const negations = [...FILTER_OPERATORS, ...CONDITION_OPERATORS].filter(isNegation)
    assert.deepEqual([...new Set(negations)].sort(), ['is_not_empty', 'ne', 'nin', 'not_contains', 'not_in'])
  })

  it('that are negations hold of what has no value, as those of filters do', () => {
    const absent = [null, undefined]
    for (const left of absent) {
      assert.deepEqual(
        [compare(left, 'ne', 'acme'), compare(left, 'not_in', ['acme']), compare(left, 'not_contains', 'a')],
        [true, true, true],
      )
      assert.equal(compare(left, 'is_not_empty', undefined), false)
    }
    assert.deepEqual(
      [
        compare('ACME', 'ne', 'acme'),
        compare('ACME', 'not_in', ['acme']),
        compare('ACME', 'not_contains', 'c'),
      ],
      [false, false, false],
    )
  })
})
