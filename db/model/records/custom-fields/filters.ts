import type { Issue } from '../../errors.ts'
import { asStored, customName, type Filter } from '../filters.ts'
import type { Kind } from '../kind.ts'
import { namesOf, type Pipeline, stageNames } from '../pipelines/pipeline.ts'
import { isMisused, RELATIVE_OPERATORS } from '../relative-days.ts'
import { type CustomFieldType, customTypes, type Definition, type Rules, readValue } from './types.ts'

/** The part of a list query that may name custom fields. */
export interface SortFilters {
  sort: string
  filters: Filter[]
}

export interface Typed {
  filters: Filter[]
  /** The type of the custom field to sort by, if it has a definition. */
  sortType: CustomFieldType | undefined
  issues: Issue[]
}

export const namesCustomField = ({ sort, filters }: SortFilters): boolean =>
  [sort, ...filters.map(({ field }) => field)].some((field) => customName(field) !== undefined)

/** Whether a filter names a pipeline or a stage, whose values the organization defines. */
export const namesStage = (kind: Kind, { filters }: SortFilters): boolean =>
  filters.some(({ field }) => Object.hasOwn(kind.fields, field) && kind.fields[field]!.ofOrganization)

/**
 * Reads filters and sort with the definitions of their custom fields, and with the pipelines if a filter names a stage; a
 * field without a definition is a text.
 */
export function applyTypes(
  kind: Kind,
  { definitions, pipelines = [] }: Pick<Rules, 'definitions' | 'pipelines'>,
  { sort, filters }: SortFilters,
): Typed {
  const definitionOf = (field: string): Definition | undefined => {
    const name = customName(field)
    return name !== undefined && Object.hasOwn(definitions, name) ? definitions[name] : undefined
  }
  const issues: Issue[] = []
  const read = filters.map((filter) => {
    const definition = definitionOf(filter.field)
    const typed = definition
      ? typedFilter(filter, definition)
      : (stageIssue(kind, filter, pipelines) ?? filter)
    if ('field' in typed) return typed
    issues.push(typed)
    return filter
  })
  const sortType = definitionOf(sort)?.type
  if (definitionOf(sort)?.sensitive)
    issues.push({ loc: ['query', 'sort'], msg: `${sort} ${HIDDEN}`, type: 'invalid_value', input: sort })
  if (sortType && !customTypes[sortType].sortable)
    issues.push({
      loc: ['query', 'sort'],
      msg: `${sort} is of type ${sortType}, which is not sortable`,
      type: 'invalid_value',
      input: sort,
    })
  return { filters: read, sortType, issues }
}

const HIDDEN = 'is sensitive: the order or number of records would tell its value'
/** A value that no pipeline or stage has would silently find nothing. */
function stageIssue(
  kind: Kind,
  { field, operator, values }: Filter,
  pipelines: readonly Pipeline[],
): Issue | undefined {
  if (!Object.hasOwn(kind.fields, field) || !kind.fields[field]!.ofOrganization || operator === 'is_null')
    return undefined
  const names = field === 'pipeline' ? namesOf(pipelines) : stageNames(pipelines)
  const unknown = values.find((value) => !names.includes(value.toLowerCase()) && !names.includes(value))
  if (unknown === undefined) return undefined
  return {
    loc: ['query', operator === 'eq' ? field : `${field}[${operator}]`],
    msg: `is not a ${field} of the organization`,
    type: 'invalid_value',
    input: unknown.slice(0, 200),
    hint: `values are ${names.join(', ')}`,
  }
}

function typedFilter(filter: Filter, definition: Definition): Filter | Issue {
  const { type, options } = definition
  const { field, operator, values } = filter
  const { operators, filterValue, expects, isText } = customTypes[type]
  const loc = ['query', operator === 'eq' ? field : `${field}[${operator}]`]
  const hint = `${field} is of type ${type} and supports the operators ${operators.join(', ')}`
  if (!operators.includes(operator))
    return { loc, msg: `${operator} is not an operator of the type ${type}`, type: 'unknown_operator', hint }
  if (operator === 'is_null') return { ...filter, type }
  if (definition.sensitive)
    return { loc, msg: `${field} ${HIDDEN}`, type: 'invalid_value', hint: 'only is_null is possible' }
  const refused = (value: string, msg: string, hint: string): Issue => ({
    loc,
    msg,
    type: 'invalid_value',
    input: value.slice(0, 200),
    hint,
  })
  const read = values.map(filterValue)
  const wrong = read.indexOf(undefined)
  if (wrong >= 0) return refused(values[wrong]!, `must be ${expects}`, hint)
  if ((type === 'date' || type === 'datetime') && isMisused(operator, values))
    return refused(values.join(','), `must be ${expects}`, RELATIVE_OPERATORS)
  const accepted = options?.map((option) => option.toLowerCase())
  const unknown = accepted && values.find((value) => !accepted.includes(value.toLowerCase()))
  if (unknown !== undefined)
    return refused(unknown, `is not a value of ${field}`, `values are ${options!.join(', ')}`)
  if (!isText) return { ...filter, values: read as string[], type }
  const stored = asStored(operator, read as string[], (value) => {
    const reading = readValue(definition, value)
    return 'value' in reading ? reading.value : undefined
  })
  return { ...filter, values: stored, type }
}
