import { OMIT } from '../language/expressions/omitted.ts'
import { parseTemplate, TemplateError } from '../language/expressions/template.ts'
import { write } from '../language/problems.ts'
import { flowText } from '../language/repair.ts'
import { isObject } from '../shared/is-object.ts'
import type { Authored, ConfigProblem } from './define.ts'

/** A setting that narrows what a node reads. */
interface ReadCondition {
  path: PropertyKey[]
  value: unknown
}

/** The conditions in a mapping by name, or in the placeholder that holds it. */
export const conditionsIn = (member: string, value: unknown): ReadCondition[] => {
  if (isObject(value))
    return Object.entries(value).map(([name, one]) => ({ path: [member, name], value: one }))
  return value === undefined ? [] : [{ path: [member], value }]
}

/** Reports conditions that `omit_if_empty` may leave out: with an empty value the node would read more. */
export const leftOutConditions = (conditions: ReadCondition[]): ConfigProblem[] =>
  conditions.filter(mayBeLeftOut).map((one) => ({
    code: 'condition_left_out',
    message: `with an empty value ${String(one.path.at(-1)).slice(0, 100)} is left out, and what it would exclude is read too`,
    path: one.path,
    hint: hintOf(one),
  }))

/**
 * The same of a search, which finds all records if nothing is left. With `match: any` a filter that is left out
 * excludes more, as long as another one stays.
 */
export function leftOutOfSearch({ filters, match, q }: Authored): ConfigProblem[] {
  const [filtered, words] = [conditionsIn('filters', filters), conditionsIn('q', q)]
  const all = [...filtered, ...words]
  if (all.every(mayBeLeftOut))
    return all.map((one) => ({
      code: 'search_without_condition',
      message: `${all.length === 1 ? 'the only condition' : 'each condition'} of the search may be left out: with empty values it would find all records`,
      path: one.path,
      hint: hintOf(one),
    }))
  const narrows = match === 'any' && !filtered.every(mayBeLeftOut)
  return leftOutConditions([...(narrows ? [] : filtered), ...words])
}

function mayBeLeftOut({ value }: ReadCondition): boolean {
  if (typeof value !== 'string') return false
  try {
    return parseTemplate(value).omits === true
  } catch (error) {
    // Validation reports it.
    if (error instanceof TemplateError) return false
    throw error
  }
}

const LAST_FILTER = new RegExp(`\\s*\\|\\s*${OMIT}\\s*\\}\\}`)

const hintOf = ({ value }: ReadCondition) => write(flowText(String(value).replace(LAST_FILTER, ' }}')))
