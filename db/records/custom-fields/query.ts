import { type Issue, invalid } from '../../errors.ts'
import type { Tenant } from '../../postgres/tenancy.ts'
import {
  type CustomFieldType,
  customTypes,
  type Definition,
  readValue,
} from '../model/custom-fields/types.ts'
import { asKept, CUSTOM, type Filter } from '../model/filters.ts'
import type { EntityName } from '../model/kind.ts'
import { readDefinitions } from './rules.ts'

/** What a list is asked for, as far as custom fields may be in it. */
interface Asked {
  sort: string
  filters: Filter[]
}

interface Read {
  filters: Filter[]
  /** Of what is sorted by, where it has a definition. */
  sortType: CustomFieldType | undefined
}

/**
 * Reads the filters and the sort by the definitions of the custom fields that they name; what has none stays text.
 * Throws `validation_error` for values, operators and sorts that a field's type does not have.
 */
export async function readByType(tx: Tenant, entity: EntityName, asked: Asked): Promise<Read> {
  const { issues, ...read } = await triedByType(tx, entity, asked)
  if (issues.length > 0) throw invalid(issues)
  return read
}

/** The same, with what is wrong in place of an error. */
export async function triedByType(
  tx: Tenant,
  entity: EntityName,
  { sort, filters }: Asked,
): Promise<Read & { issues: Issue[] }> {
  const named = [sort, ...filters.map(({ field }) => field)].some((field) => CUSTOM.test(field))
  if (!named) return { filters, sortType: undefined, issues: [] }
  const definitions = await readDefinitions(tx, entity)
  const definitionOf = (field: string): Definition | undefined => {
    const name = CUSTOM.exec(field)?.[1]
    return name !== undefined && Object.hasOwn(definitions, name) ? definitions[name] : undefined
  }
  const issues: Issue[] = []
  const read = filters.map((filter) => {
    const definition = definitionOf(filter.field)
    const typed = definition ? filterByType(filter, definition) : filter
    if ('field' in typed) return typed
    issues.push(typed)
    return filter
  })
  const sortType = definitionOf(sort)?.type
  if (sortType && !customTypes[sortType].sortable)
    issues.push({
      loc: ['query', 'sort'],
      msg: `${sort} is of type ${sortType}, which cannot be sorted by`,
      type: 'invalid_value',
      input: sort,
    })
  return { filters: read, sortType, issues }
}

function filterByType(filter: Filter, definition: Definition): Filter | Issue {
  const { type, options } = definition
  const { field, operator, values } = filter
  const { operators, filterValue, expects, sql } = customTypes[type]
  const loc = ['query', operator === 'eq' ? field : `${field}[${operator}]`]
  const hint = `${field} is of type ${type} and has the operators ${operators.join(', ')}`
  if (!operators.includes(operator))
    return { loc, msg: `${operator} is no operator of a ${type}`, type: 'unknown_operator', hint }
  if (operator === 'is_null') return { ...filter, type }
  const refused = (value: string, msg: string, hint: string): Issue => ({
    ...{ loc, msg, type: 'invalid_value', input: value.slice(0, 200), hint },
  })
  const read = values.map(filterValue)
  const wrong = read.indexOf(undefined)
  if (wrong >= 0) return refused(values[wrong]!, `must be ${expects}`, hint)
  const accepted = options?.map((option) => option.toLowerCase())
  const stranger = accepted && values.find((value) => !accepted.includes(value.toLowerCase()))
  if (stranger !== undefined)
    return refused(stranger, `is no value of ${field}`, `values are ${options!.join(', ')}`)
  if (sql !== 'text') return { ...filter, values: read as string[], type }
  const kept = asKept(operator, read as string[], (value) => {
    const reading = readValue(definition, value)
    return 'value' in reading ? reading.value : undefined
  })
  return { ...filter, values: kept, type }
}
