import type { Issue } from '../../errors.ts'
import { asStored, atItsKind, customName, type Filter } from '../filters.ts'
import type { Kind, KindName } from '../kind.ts'
import { namesOf, type Pipeline, stageNames } from '../pipelines/pipeline.ts'
import { isMisused, RELATIVE_OPERATORS } from '../relative-days.ts'
import { type Order, sortsOf } from '../sorts.ts'
import { type CustomFieldType, customTypes, type Definition, type Rules, readValue } from './types.ts'

/** The part of a list query that may name custom fields. */
export interface SortFilters {
  sort: string
  order: Order
  filters: Filter[]
}

export interface Typed {
  filters: Filter[]
  /** For each field of the sort, the type of the custom field, if it has a definition. */
  sortTypes: (CustomFieldType | undefined)[]
  issues: Issue[]
}

/** The kinds whose custom fields a query names: its own, and those of filters one hop away. */
export const kindsWithCustomFields = (kind: Kind, query: SortFilters): KindName[] => [
  ...new Set([
    ...sortsOf(query).flatMap(({ field }) => (customName(field) === undefined ? [] : kind.entity)),
    ...query.filters.flatMap((filter) => {
      const { kind: of, filter: own } = atItsKind(kind, filter)
      return customName(own.field) === undefined ? [] : of.entity
    }),
  ]),
]

/** Whether a filter names a pipeline or a stage, whose values the organization defines. */
export const namesStage = (kind: Kind, { filters }: SortFilters): boolean =>
  filters.some((filter) => {
    const { kind: of, filter: own } = atItsKind(kind, filter)
    return Object.hasOwn(of.fields, own.field) && of.fields[own.field]!.ofOrganization
  })

/** What the organization defines: the custom fields of each kind that the query names, and its pipelines. */
export interface QueryRules {
  definitions: Partial<Record<KindName, Rules['definitions']>>
  pipelines?: readonly Pipeline[] | undefined
}

/**
 * Reads filters and sorts with the definitions of their custom fields, and with the pipelines if a filter names a stage;
 * a field without a definition is a text.
 */
export function applyTypes(
  kind: Kind,
  { definitions, pipelines = [] }: QueryRules,
  query: SortFilters,
): Typed {
  const definitionOf = ({ entity }: Kind, field: string): Definition | undefined => {
    const name = customName(field)
    const own = definitions[entity] ?? {}
    return name !== undefined && Object.hasOwn(own, name) ? own[name] : undefined
  }
  const issues: Issue[] = []
  const read = query.filters.map((filter) => {
    const { kind: of, filter: own } = atItsKind(kind, filter)
    const definition = definitionOf(of, own.field)
    const typed = definition
      ? typedFilter(filter, definition)
      : (stageIssue(of, own, parameterOf(filter), pipelines) ?? filter)
    if ('field' in typed) return typed
    issues.push(typed)
    return filter
  })
  const sortTypes = sortsOf(query).map(({ field }) => {
    const definition = definitionOf(kind, field)
    const refuse = (why: string) =>
      issues.push({ loc: ['query', 'sort'], msg: `${field} ${why}`, type: 'invalid_value', input: field })
    if (definition?.sensitive) refuse(HIDDEN)
    if (definition && !customTypes[definition.type].sortable)
      refuse(`is of type ${definition.type}, which is not sortable`)
    return definition?.type
  })
  return { filters: read, sortTypes, issues }
}

const HIDDEN = 'is sensitive: the order or number of records would tell its value'

const parameterOf = ({ field, operator }: Filter) => (operator === 'eq' ? field : `${field}[${operator}]`)

/** A value that no pipeline or stage has would silently find nothing. */
function stageIssue(
  kind: Kind,
  { field, operator, values }: Filter,
  parameter: string,
  pipelines: readonly Pipeline[],
): Issue | undefined {
  if (!Object.hasOwn(kind.fields, field) || !kind.fields[field]!.ofOrganization || operator === 'is_null')
    return undefined
  const names = field === 'pipeline' ? namesOf(pipelines) : stageNames(pipelines)
  const unknown = values.find((value) => !names.includes(value.toLowerCase()) && !names.includes(value))
  if (unknown === undefined) return undefined
  return {
    loc: ['query', parameter],
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
  const loc = ['query', parameterOf(filter)]
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
