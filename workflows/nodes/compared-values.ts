import { isObject } from '../shared/is-object.ts'
import type { Comparison } from './define.ts'

/** The operators that can hold only for a value that the other side can have. */
const EQUALITIES: unknown[] = ['eq', 'ne', 'in', 'not_in']

/** The equality comparisons of a list of conditions, `{operator, right}` and what `of` says. */
export function comparedValues(
  conditions: unknown,
  of: (condition: Record<string, unknown>) => Comparison['of'] | undefined,
): Comparison[] {
  if (!Array.isArray(conditions)) return []
  return conditions.flatMap((condition, index): Comparison[] => {
    if (!isObject(condition) || !EQUALITIES.includes(condition.operator)) return []
    const tested = of(condition)
    const { right } = condition
    const path = ['conditions', index, 'right']
    if (!tested || right === undefined) return []
    return [
      {
        of: tested,
        with: Array.isArray(right)
          ? right.map((value, at) => ({ value, path: [...path, at] }))
          : [{ value: right, path }],
      },
    ]
  })
}
