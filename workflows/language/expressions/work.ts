import type { Context, FilterImplOptions, Operators } from 'liquidjs'
import { EXPRESSION } from '../../shared/limits.ts'

/**
 * Counts the work of filters and operators. LiquidJS's memory limit counts only part of what its filters read and
 * allocate; here every input and every resulting text is charged to the same limit.
 */

type Handler = (this: { context: Context }, ...values: unknown[]) => unknown

/** Filters that iterate over a list; the others convert a list to text, or read its size only. */
const BY_ITEM = new Set([
  'compact',
  'concat',
  'find',
  'find_index',
  'group_by',
  'has',
  'map',
  'pop',
  'push',
  'reject',
  'reverse',
  'shift',
  'sum',
  'uniq',
  'unshift',
  'where',
])
const SORTING = new Set(['sort', 'sort_natural'])
/** Filters that take the same time for every value. */
const CONSTANT = new Set(['default', 'first', 'last', 'size'])
const DATES = new Set([
  'date',
  'date_to_xmlschema',
  'date_to_rfc822',
  'date_to_string',
  'date_to_long_string',
])

/** The work of one item or one directive of a date format, in characters of the slowest text filters. */
const ITEM = 40
const SORTED_ITEM = 80
const DIRECTIVE = 500

/** The same filter, which charges the work of what it reads and writes. */
export function boundedFilter(name: string, filter: FilterImplOptions): FilterImplOptions {
  const handler = (typeof filter === 'function' ? filter : filter.handler) as Handler
  const bounded: Handler = function (value, ...given) {
    const { memoryLimit } = this.context
    const values = given.map((argument) =>
      Array.isArray(argument) && isPair(argument) ? argument[1] : argument,
    )
    for (const argument of values)
      if (typeof argument === 'string' && argument.length > EXPRESSION.argument)
        throw new Error(`an argument of ${name} may have ${EXPRESSION.argument} characters at most`)
    if (name === 'date') checkFormat(values[0])
    memoryLimit.use(costOf(name, value, values, EXPRESSION.work))
    const result = handler.call(this, value, ...given)
    if (typeof result === 'string') memoryLimit.use(result.length)
    return result
  }
  return typeof filter === 'function'
    ? (bounded as FilterImplOptions)
    : ({ ...filter, handler: bounded as typeof handler } as FilterImplOptions)
}

/** The same operators, which charge the texts and lists that they compare. */
export function boundedOperators(operators: Operators): Operators {
  return Object.fromEntries(
    Object.entries(operators).map(([name, operator]) => {
      const bounded = (left: unknown, right: unknown, context: Context) => {
        // A unary operator gets its context in second place.
        const [other, { memoryLimit }] = context ? [right, context] : [undefined, right as Context]
        memoryLimit.use(lengthOf(left) + lengthOf(other))
        return (operator as (...values: unknown[]) => unknown)(left, right, context)
      }
      return [name, bounded]
    }),
  ) as Operators
}

/** LiquidJS passes a named argument as a pair of name and value. */
const isPair = (argument: unknown[]) => argument.length === 2 && typeof argument[0] === 'string'

function costOf(name: string, value: unknown, args: unknown[], most: number): number {
  if (CONSTANT.has(name)) return 1
  if (DATES.has(name)) return DIRECTIVE * (1 + directivesIn(args[0])) + weightOf(value, most)
  const perItem = BY_ITEM.has(name) ? ITEM : SORTING.has(name) ? SORTED_ITEM : undefined
  if (perItem === undefined)
    return args.reduce<number>((sum, one) => sum + weightOf(one, most), weightOf(value, most))
  const written = args.reduce<number>((sum, one) => sum + (typeof one === 'string' ? one.length : 0), 0)
  return lengthOf(value) * (perItem + written)
}

const directivesIn = (format: unknown) => (typeof format === 'string' ? format.split('%').length : 1)

const lengthOf = (value: unknown) => (typeof value === 'string' || Array.isArray(value) ? value.length : 1)

/** The approximate characters of a value as text; stops counting beyond `most`. */
export function weightOf(value: unknown, most: number): number {
  if (typeof value === 'string') return value.length
  if (typeof value !== 'object' || value === null) return 10
  let weight = 10
  for (const [key, member] of Array.isArray(value) ? value.entries() : Object.entries(value)) {
    weight += (typeof key === 'string' ? key.length : 0) + weightOf(member, most - weight)
    if (weight > most) break
  }
  return weight
}

function checkFormat(format: unknown): void {
  if (format === undefined || format === null) return
  const text = typeof format === 'string' ? format : ''
  if (typeof format === 'object' || text.length > EXPRESSION.dateFormat)
    throw new Error(`the format of a date may have ${EXPRESSION.dateFormat} characters at most`)
  for (const [, width] of text.matchAll(/%[^a-z%\d]*0*(\d+)/gi))
    if (Number(width) > EXPRESSION.datePadding)
      throw new Error(`the format of a date may pad to ${EXPRESSION.datePadding} characters at most`)
}
