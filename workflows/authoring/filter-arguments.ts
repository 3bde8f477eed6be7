import { type Token, TypeGuards } from 'liquidjs'
import { numberFormatProblem } from '../language/expressions/number-filters.ts'
import { TIME_UNITS } from '../language/expressions/time-filters.ts'

/** How a filter is written with arguments, and how many it takes. Filters that are not listed are not checked. */
const USES: Record<string, { least: number; most: number; example: string }> = {
  ...all(['plus', 'minus', 'times', 'divided_by', 'modulo', 'at_least', 'at_most'], 1, 1, '5'),
  ...all(['round', 'to_fixed'], 0, 1, '2'),
  ...all(['format_number'], 1, 1, '"1,234.00"'),
  ...all(['append', 'prepend', 'remove', 'split'], 1, 1, "'text'"),
  ...all(['replace'], 2, 2, "'from', 'to'"),
  ...all(['map', 'group_by'], 1, 1, "'field'"),
  ...all(['where', 'reject', 'find', 'find_index', 'has'], 1, 2, "'field', 'value'"),
  ...all(['default'], 1, 1, "'text'"),
  ...all(['omit_if_empty'], 0, 0, ''),
  ...all(['add_time'], 2, 2, "3, 'days'"),
  ...all(['time_until'], 2, 2, "run.started_at, 'days'"),
}

function all(names: string[], least: number, most: number, example: string) {
  return Object.fromEntries(names.map((name) => [name, { least, most, example: `${name}: ${example}` }]))
}

const MONTHS_AND_YEARS = ['months', 'years']

/** What is wrong with the arguments of a filter; undefined if nothing is. Named arguments do not count. */
export function argumentProblem(filter: string, given: readonly (Token | undefined)[]): string | undefined {
  const use = Object.hasOwn(USES, filter) ? USES[filter]! : undefined
  if (!use) return undefined
  const { least, most, example } = use
  if (given.length < least || given.length > most) {
    const count = least === most ? `${least}` : `${least} to ${most}`
    return `${filter} takes ${count} argument${most === 1 ? '' : 's'}, but gets ${given.length}: \`| ${example}\``
  }
  const [first] = given
  if (filter === 'format_number' && first && TypeGuards.isQuotedToken(first))
    return numberFormatProblem(first.content)
  if (filter !== 'add_time' && filter !== 'time_until') return undefined
  const unit = given[1]
  if (!unit || !TypeGuards.isQuotedToken(unit)) return undefined
  const units = TIME_UNITS.filter((one) => filter === 'add_time' || !MONTHS_AND_YEARS.includes(one))
  const written = unit.content
  if (units.some((one) => one === written || one === `${written}s`)) return undefined
  return `the unit of ${filter} must be one of ${units.join(', ')}: \`| ${example}\``
}
