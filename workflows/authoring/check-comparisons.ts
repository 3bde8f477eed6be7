import { hasPlaceholder, parseTemplate } from '../language/expressions/template.ts'
import { didYouMean, type Problem, write } from '../language/problems.ts'
import { flowText } from '../language/repair.ts'
import { originOf } from '../language/sample-types.ts'
import { allowedValues, type ValueType } from '../language/value-types.ts'
import type { Comparison } from '../nodes/define.ts'
import { canBeEqual, orderProblem } from './comparable.ts'
import { LOCAL_DAY, shown } from './comparison-types.ts'
import { listed, oneOfThese } from './mistakes.ts'

type Found = Omit<Problem, 'path'> & { path: readonly PropertyKey[] }

const EQUALITIES = ['eq', 'ne', 'in', 'not_in']
const ORDERS = ['gt', 'gte', 'lt', 'lte']

/**
 * Checks the comparisons of a node that compares, such as a condition: a value must be able to be equal to those that it
 * is compared with, or have an order. Comparisons of nodes ignore case. `tested`: the type of the value.
 */
export function comparisonProblems(comparison: Comparison, tested: ValueType): Found[] {
  const { of, operator } = comparison
  const written = 'value' in of ? textTested(of.value) : undefined
  const found = comparison.with
    .filter(
      ({ value }) => !(typeof value === 'string' && hasPlaceholder(value)) && value !== '' && value !== null,
    )
    .flatMap(({ value, path }): Found[] => {
      if (typeof value === 'object') return []
      const plain = value as string | number | boolean
      if (ORDERS.includes(operator)) return orderProblems(tested, plain, path)
      if (!EQUALITIES.includes(operator)) return []
      return [...listProblems(operator, plain, path), ...equalityProblems(tested, plain, path)].slice(0, 1)
    })
  return written === undefined ? found : [written, ...found]
}

/** The problem of a value that is an expression outside of its braces: `{{ a }} > 5` is a text. */
function textTested(value: unknown): Found | undefined {
  if (typeof value !== 'string' || !hasPlaceholder(value)) return undefined
  let parts: (string | unknown)[] = []
  try {
    parts = parseTemplate(value).parts
  } catch {
    return undefined
  }
  if (
    !parts.some(
      (part) =>
        typeof part === 'string' && /^\s*(and|or|==|!=|<=?|>=?)\s|\s(and|or|==|!=|<=?|>=?)\s*$/.test(part),
    )
  )
    return undefined
  const whole = value.replaceAll(/\{\{-?\s*|\s*-?\}\}/g, '').trim()
  return {
    code: 'placeholder_syntax',
    message: 'the value is a text: operators belong within the placeholder',
    path: ['conditions'],
    hint: `write \`{{ ${whole.slice(0, 300)} }}\` as left`,
  }
}

/** A list that is written as a text. */
function listProblems(operator: string, value: string | number | boolean, path: PropertyKey[]): Found[] {
  if (operator !== 'in' && operator !== 'not_in') return []
  if (typeof value !== 'string' || !value.includes(',') || typeof path.at(-1) === 'number') return []
  return [
    {
      code: 'invalid_value',
      message: `${operator} takes a list: the text ${JSON.stringify(value.slice(0, 100))} is one value`,
      path,
      hint: write(flowText(value.split(',').map((one) => one.trim()))),
    },
  ]
}

function equalityProblems(tested: ValueType, value: string | number | boolean, path: PropertyKey[]): Found[] {
  if (canBeEqual({ type: tested }, { type: {}, literal: value }, { ignoreCase: true })) return []
  const allowed = allowedValues(tested)
  const what = JSON.stringify(typeof value === 'string' ? value.slice(0, 100) : value)
  return [
    {
      code: originOf(tested)?.code ?? 'impossible_comparison',
      message: `the value is never ${what}: it is ${allowed ? `one of ${listed(allowed)}` : shown({ type: tested })}`,
      path,
      hint: () => allowed && (didYouMean(String(value), allowed).hint ?? oneOfThese(allowed)),
    },
  ]
}

function orderProblems(tested: ValueType, value: string | number | boolean, path: PropertyKey[]): Found[] {
  const code = originOf(tested)?.code ?? 'impossible_comparison'
  if (typeof value === 'string' && LOCAL_DAY.test(value))
    return [
      {
        code: 'impossible_comparison',
        message: `${JSON.stringify(value.slice(0, 50))} is compared as a text, not as a day`,
        path,
        hint: 'write the day as 2026-01-31; a node that formats dates reads other forms (`read_as: dmy`)',
      },
    ]
  const found = orderProblem({ type: tested }, { type: {}, literal: value })
  if (!found) return []
  const than = found.with === undefined ? 'a value' : JSON.stringify(found.with)
  return [
    {
      code,
      message: `${found.what} is neither greater nor less than ${than}`,
      path,
      hint: () =>
        found.what === 'a time'
          ? 'write a time, such as 2026-01-31, or `{{ run.started_at | add_time: -7, "days" }}`'
          : undefined,
    },
  ]
}
