import assert from 'node:assert/strict'
import { compare } from '../../../workflows/nodes/compare.ts'
import {
  CONDITION_OPERATORS,
  FILTER_OPERATORS,
  isNegation,
  operandsOf,
} from '../../../workflows/shared/operators.ts'

describe('operators', () => {
  it('take the same operands in filters and in conditions, by both names', () => {
    assert.deepEqual([operandsOf('nin'), operandsOf('not_in'), operandsOf('in')], ['list', 'list', 'list'])
    assert.deepEqual(
      [operandsOf('between'), operandsOf('is_null'), operandsOf('is_empty')],
      ['two', 'boolean', 'nothing'],
    )
  })

  it('have negations', () => {
    const negations = [...FILTER_OPERATORS, ...CONDITION_OPERATORS].filter(isNegation)
    assert.deepEqual([...new Set(negations)].sort(), [
      'has_not',
      'is_not_empty',
      'ne',
      'nin',
      'not_contains',
      'not_in',
      'not_since',
    ])
  })

  it('that are negations hold for null, as in filters', () => {
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
