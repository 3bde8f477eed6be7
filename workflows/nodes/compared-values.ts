import { isObject } from '../shared/is-object.ts'
import type { Comparison } from './define.ts'

/** The comparisons of a list of conditions, `{operator, right}` and what `of` says. */
export function comparedValues(
  conditions: unknown,
  of: (condition: Record<string, unknown>) => Comparison['of'] | undefined,
): Comparison[] {
  if (!Array.isArray(conditions)) return []
  return conditions.flatMap((condition, index): Comparison[] => {
    if (!isObject(condition)) return []
    const tested = of(condition)
    const { right, operator } = condition
    const path = ['conditions', index, 'right']
    if (!tested || right === undefined || typeof operator !== 'string') return []
    return [
      {
        of: tested,
        operator,
        with: Array.isArray(right)
          ? right.map((value, at) => ({ value, path: [...path, at] }))
          : [{ value: right, path }],
      },
    ]
  })
}
