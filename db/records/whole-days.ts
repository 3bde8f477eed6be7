import type { Operator } from './model/field-types.ts'

/**
 * Filters of times by days: a bare date is the whole day, in UTC. Times have milliseconds, so that a day ends with its
 * last one: it is a range, which an index on the times serves.
 */

/** Whether a value, as `filterValue` of times returns it, is a date without a time. */
export const isBareDate = (value: string): boolean => value.length === 10

const firstOf = (value: string) => (isBareDate(value) ? `${value}T00:00:00.000Z` : value)
const lastOf = (value: string) => (isBareDate(value) ? `${value}T23:59:59.999Z` : value)

/** The condition; `operand` is the SQL of one value. Takes every operator of times but `is_null`. */
export function byWholeDays(
  column: string,
  operand: string,
  operator: Operator,
  values: string[],
): { sql: string; bindings: string[] } {
  const [one, upTo] = values as [string, string]
  const range = `${column} between ${operand} and ${operand}`
  switch (operator) {
    case 'gt':
      return { sql: `${column} > ${operand}`, bindings: [lastOf(one)] }
    case 'gte':
      return { sql: `${column} >= ${operand}`, bindings: [firstOf(one)] }
    case 'lt':
      return { sql: `${column} < ${operand}`, bindings: [firstOf(one)] }
    case 'lte':
      return { sql: `${column} <= ${operand}`, bindings: [lastOf(one)] }
    case 'between':
      return { sql: range, bindings: [firstOf(one), lastOf(upTo)] }
  }
  const within = `(${values.map(() => range).join(' or ')})`
  return {
    // Null is not on any day.
    sql: operator === 'ne' || operator === 'nin' ? `${within} is not true` : within,
    bindings: values.flatMap((value) => [firstOf(value), lastOf(value)]),
  }
}
