import { type Token, TypeGuards } from 'liquidjs'
import { formatProblem } from '../language/expressions/date-format.ts'
import { BY_FIELD, resultOf } from '../language/expressions/filters.ts'
import { numberFormatProblem } from '../language/expressions/number-filters.ts'
import { TIME_UNITS } from '../language/expressions/time-filters.ts'
import { meantBy, writeInstead } from '../language/problems.ts'
import { parseDecimal } from '../shared/decimal.ts'

/** How a filter is written with arguments, and how many it takes. LiquidJS ignores what is too much. */
const USES: Record<string, { least: number; most: number; example: string }> = {
  ...all(['plus', 'minus', 'times', 'divided_by', 'modulo', 'at_least', 'at_most'], 1, 1, '5'),
  ...all(['round', 'to_fixed'], 0, 1, '2'),
  ...all(['format_number'], 1, 1, '"1,234.00"'),
  ...all(['abs', 'ceil', 'floor', 'to_integer'], 0, 0, ''),
  ...all(['append', 'prepend', 'remove', 'remove_first', 'remove_last', 'split'], 1, 1, "'text'"),
  ...all(['replace', 'replace_first', 'replace_last'], 2, 2, "'from', 'to'"),
  ...all(['strip', 'lstrip', 'rstrip'], 0, 1, ''),
  ...all(['truncate', 'truncatewords'], 0, 2, '20'),
  ...all(['slice'], 1, 2, '0, 3'),
  ...all(['upcase', 'downcase', 'capitalize', 'squish', 'strip_newlines', 'newline_to_br'], 0, 0, ''),
  ...all(['escape', 'escape_once', 'cgi_escape', 'uri_escape', 'xml_escape', 'sha256'], 0, 0, ''),
  ...all(['url_encode', 'url_decode', 'base64_encode', 'base64_decode'], 0, 0, ''),
  ...all(['first', 'last', 'size', 'reverse', 'compact', 'pop', 'shift'], 0, 0, ''),
  ...all(['push', 'unshift', 'concat'], 1, 1, 'inputs.x'),
  ...all(['join', 'array_to_sentence_string'], 0, 1, "', '"),
  ...all(['sort', 'sort_natural', 'sum', 'uniq'], 0, 1, "'field'"),
  ...all(['map', 'group_by'], 1, 1, "'field'"),
  ...all(['where', 'reject', 'find', 'find_index', 'has'], 1, 2, "'field', 'value'"),
  ...all(['default'], 1, 1, "'text'"),
  ...all(['omit_if_empty'], 0, 0, ''),
  ...all(['date'], 0, 2, "'%Y-%m-%d'"),
  ...all(['add_time'], 2, 2, "3, 'days'"),
  ...all(['time_until'], 2, 2, "run.started_at, 'days'"),
}

function all(names: string[], least: number, most: number, arguments_: string) {
  return Object.fromEntries(
    names.map((name) => [name, { least, most, example: arguments_ ? `${name}: ${arguments_}` : name }]),
  )
}

const MONTHS_AND_YEARS = ['months', 'years']

interface ArgumentProblem {
  problem: string
  hint?: string
}

/** What is wrong with the arguments of a filter; undefined if nothing is. Named arguments do not count. */
export function argumentProblem(
  filter: string,
  given: readonly (Token | undefined)[],
): ArgumentProblem | undefined {
  const use = Object.hasOwn(USES, filter) ? USES[filter]! : undefined
  if (!use) return undefined
  const { least, most, example } = use
  if (given.length < least || given.length > most) {
    const count = least === most ? `${least}` : `${least} to ${most}`
    const problem = `${filter} takes ${count} argument${most === 1 ? '' : 's'}, but gets ${given.length}: \`| ${example}\``
    return { problem }
  }
  const [name] = given
  if (
    BY_FIELD.includes(filter) &&
    name &&
    TypeGuards.isLiteralToken(name) &&
    /^(true|false)$/.test(name.getText())
  )
    return { problem: `${filter} takes the name of a field, and not ${name.getText()}: \`| ${example}\`` }
  const [first, second] = given.map((token) =>
    token && TypeGuards.isQuotedToken(token) ? token.content : undefined,
  )
  if (first !== undefined) {
    const problem = textArgumentProblem(filter, first)
    if (problem !== undefined) return problem
  }
  if (filter !== 'add_time' && filter !== 'time_until') return undefined
  if (second === undefined) return undefined
  const units = TIME_UNITS.filter((one) => filter === 'add_time' || !MONTHS_AND_YEARS.includes(one))
  if (units.some((one) => one === second || one === `${second}s`)) return undefined
  const meant = meantBy(second, units)
  return {
    problem: `the unit of ${filter} must be one of ${units.join(', ')}: \`| ${example}\``,
    ...(meant !== undefined && { hint: writeInstead(meant, second) }),
  }
}

/** What is wrong with a first argument that is a text in quotes. */
function textArgumentProblem(filter: string, text: string): ArgumentProblem | undefined {
  if (filter === 'date') {
    const wrong = formatProblem(text)
    if (!wrong) return undefined
    return wrong.meant === undefined
      ? { problem: wrong.problem, hint: 'write such as `"%d.%m.%Y %H:%M"`' }
      : { problem: wrong.problem, hint: writeInstead(wrong.meant, text) }
  }
  if (filter === 'format_number') {
    const problem = numberFormatProblem(text)
    return problem === undefined ? undefined : { problem }
  }
  if (resultOf(filter) === 'computed' && parseDecimal(text) === undefined)
    return { problem: `${filter} computes with a number, and ${JSON.stringify(text.slice(0, 50))} is none` }
  if (BY_FIELD.includes(filter)) {
    if (/^(asc|desc)(ending)?$/i.test(text) && filter.startsWith('sort'))
      return {
        problem: `${filter} takes the name of a field, and not ${text}`,
        hint: `to turn the order, write \`| ${filter} | reverse\``,
      }
    if (/[<>=!]|\s(and|or)\s/.test(text))
      return {
        problem: `${filter} takes the name of a field, and a value that it equals`,
        hint: 'a node that filters items compares in other ways',
      }
  }
  if (REPLACES.includes(filter) && /\\[dswDSW]|\[[^\]]+\][+*]|\.[*+]/.test(text))
    return {
      problem: `${filter} searches plain text, and knows no patterns`,
      hint: 'a node `code` replaces by a pattern',
    }
  return undefined
}

const REPLACES = ['replace', 'replace_first', 'replace_last', 'remove', 'remove_first', 'remove_last']
