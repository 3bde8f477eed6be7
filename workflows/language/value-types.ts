import { z } from 'zod'
import type { Shape } from './shapes.ts'

/**
 * The types of values that placeholders read, as JSON Schema: what node types, record kinds and `output_schema` declare
 * is used as it is. `{}` means that nothing is known, so that nothing is reported.
 */
export type ValueType = Shape

export const UNKNOWN: ValueType = {}
export const TEXT: ValueType = { type: 'string' }
export const NUMBER: ValueType = { type: 'number' }
export const INTEGER: ValueType = { type: 'integer' }
export const BOOLEAN: ValueType = { type: 'boolean' }
export const NULL: ValueType = { type: 'null' }
/** A mapping with any members. */
export const MAPPING: ValueType = { type: 'object' }

export const listOf = (items: ValueType): ValueType => ({ type: 'array', items })
export const oneOf = (values: readonly string[]): ValueType => ({ type: 'string', enum: [...values] })
/** A mapping with these members and no others. */
export const members = (properties: Record<string, ValueType>): ValueType => ({
  type: 'object',
  properties,
  additionalProperties: false,
})

/** The type of the values that a schema results in. */
export function typeOfSchema(schema: z.ZodType): ValueType {
  const known = declared.get(schema)
  if (known) return known
  const type = withoutReferences(z.toJSONSchema(schema, { io: 'output', unrepresentable: 'any' }))
  declared.set(schema, type)
  return type
}

/** Kept: schemas never change, and their conversion takes a millisecond. */
const declared = new WeakMap<z.ZodType, ValueType>()

/** A JSON Schema with the definitions that it refers to in their places; a recursive one is unknown there. */
export function withoutReferences(schema: object): ValueType {
  const { $defs = {}, ...root } = schema as { $defs?: Record<string, object> }
  const resolve = (value: unknown, open: readonly string[]): unknown => {
    if (Array.isArray(value)) return value.map((one) => resolve(one, open))
    if (typeof value !== 'object' || value === null) return value
    const { $ref } = value as { $ref?: unknown }
    if (typeof $ref === 'string') {
      const name = $ref.replace('#/$defs/', '')
      return open.includes(name) ? UNKNOWN : resolve($defs[name] ?? UNKNOWN, [...open, name])
    }
    return Object.fromEntries(Object.entries(value).map(([key, one]) => [key, resolve(one, open)]))
  }
  return resolve(root, []) as ValueType
}

/** Beyond it a union says nothing. */
const MAX_OPTIONS = 40

/** The type of a value that has one of these types. */
export function unionOf(types: readonly ValueType[]): ValueType {
  const distinct = [...new Set(types)]
  if (distinct.length === 1) return distinct[0]!
  return distinct.length === 0 || distinct.some(isUnknown) ? UNKNOWN : { anyOf: distinct }
}

/** Kept: types are immutable, and each is read by many placeholders. */
const flattened = new WeakMap<ValueType, readonly ValueType[]>()

/** The types that a value can have apart from null, none of them a union; UNKNOWN among them if one is not known. */
export function optionsOf(type: ValueType): readonly ValueType[] {
  const known = flattened.get(type)
  if (known) return known
  const options = flatten(type, 0)
  const found = options.length > MAX_OPTIONS ? [UNKNOWN] : options
  flattened.set(type, found)
  return found
}

function flatten(type: ValueType, depth: number): ValueType[] {
  if (depth > 20 || type.allOf) return [UNKNOWN]
  const inner = type.anyOf ?? type.oneOf
  if (inner) return inner.flatMap((one) => flatten(one, depth + 1)).slice(0, MAX_OPTIONS + 1)
  const named: unknown = type.type
  if (Array.isArray(named)) return named.flatMap((one) => flatten({ ...type, type: String(one) }, depth + 1))
  if (named === 'null' || type.const === null) return []
  const values = valuesOf(type)
  if (named === undefined && values) return values.length > 0 ? [{ ...type, type: typeof values[0] }] : []
  return [typeof named === 'string' ? type : UNKNOWN]
}

export const isUnknown = (type: ValueType): boolean =>
  type === UNKNOWN || (type.type === undefined && !type.anyOf && !type.oneOf && !valuesOf(type))

/** The values of one option, if it has a list of them. */
const valuesOf = ({ enum: values, const: only }: ValueType): unknown[] | undefined =>
  values?.filter((value) => value !== null) ?? (only === undefined || only === null ? undefined : [only])

/** The values that a type allows apart from null; undefined if it also allows others. */
export function allowedValues(type: ValueType): string[] | undefined {
  const lists = optionsOf(type).map(valuesOf)
  if (lists.length === 0 || lists.some((values) => values === undefined)) return undefined
  return [...new Set(lists.flatMap((values) => values!.map(String)))]
}

/** The names of the types that a value can have, such as `string`; undefined if one is not known. */
export function kindsOf(type: ValueType): string[] | undefined {
  const options = optionsOf(type)
  if (options.some(isUnknown)) return undefined
  return [...new Set(options.map((one) => (one.type === 'integer' ? 'number' : String(one.type))))]
}

/** Whether a value can be null, as far as its type is known. */
export function mayBeNull(type: ValueType, depth = 0): boolean {
  if (depth > 20) return false
  const inner = type.anyOf ?? type.oneOf
  if (inner) return inner.some((one) => mayBeNull(one, depth + 1))
  const named: unknown = type.type
  return named === 'null' || (Array.isArray(named) && named.includes('null')) || type.const === null
}

/** The type of a value without null. */
export const notNull = (type: ValueType): ValueType => unionOf(optionsOf(type))

/** The type of the items of a list. */
export const itemsOf = (type: ValueType): ValueType => {
  const lists = optionsOf(type).map((one) => (one.type === 'array' ? (one.items ?? UNKNOWN) : UNKNOWN))
  return unionOf(lists)
}

/** The result of reading a member: its type, or what the value has instead. */
export type Member =
  /** `customFieldOf`: there is no custom field of that name of this kind of record. */
  | { type: ValueType; customFieldOf?: string; names?: readonly string[] }
  | { what: string; names: readonly string[]; items?: ValueType }

const OF_LISTS = ['first', 'last', 'size']

/** The type of a member, as placeholders read it: also `first`, `last` and `size`. */
export function memberType(type: ValueType, key: string | number): Member {
  const options = optionsOf(type)
  // Null has no members: a path through it is null.
  if (options.length === 0) return { type: NULL }
  const found: ValueType[] = []
  const names: string[] = []
  const whats = new Set<string>()
  let items: ValueType | undefined
  for (const option of options) {
    const { customFieldsOf, properties = {} } = option
    if (customFieldsOf !== undefined && !Object.hasOwn(properties, key))
      return { type: UNKNOWN, customFieldOf: customFieldsOf, names: Object.keys(properties) }
    const member = memberOfOption(option, String(key))
    if (member) {
      if (isUnknown(member)) return { type: UNKNOWN }
      found.push(member)
    } else if (option.type === 'object') {
      names.push(...Object.keys(option.properties ?? {}))
      whats.add('a mapping')
    } else if (option.type === 'array') {
      items = option.items
      names.push(...OF_LISTS)
      whats.add('a list')
    } else {
      if (option.type === 'string') names.push('size')
      whats.add(WHAT[String(option.type)] ?? 'a value')
    }
  }
  if (found.length > 0) return { type: unionOf(found) }
  return { what: [...whats].join(' or '), names: [...new Set(names)], ...(items && { items }) }
}

const WHAT: Record<string, string> = {
  string: 'a text',
  number: 'a number',
  integer: 'a number',
  boolean: 'a boolean',
}

function memberOfOption(option: ValueType, key: string): ValueType | undefined {
  if (isUnknown(option)) return UNKNOWN
  const { type, properties = {}, additionalProperties = {}, items = UNKNOWN } = option
  if (type === 'object') {
    if (Object.hasOwn(properties, key)) return properties[key]
    if (additionalProperties !== false) return additionalProperties === true ? UNKNOWN : additionalProperties
    return key === 'size' ? INTEGER : undefined
  }
  if (type === 'array') {
    if (/^-?\d+$/.test(key) || key === 'first' || key === 'last') return items
    return key === 'size' ? INTEGER : undefined
  }
  return type === 'string' && key === 'size' ? INTEGER : undefined
}

/** The kind of record whose sensitive custom field a value is. */
export const maskOf = (type: ValueType): string | undefined =>
  optionsOf(type).find((option) => option.maskOf !== undefined)?.maskOf

/** The type at a dotted path of fields; unknown where there is none. */
export function fieldType(type: ValueType, field: string): ValueType {
  let at = type
  for (const key of field.split('.')) {
    const found = memberType(at, key)
    if (!('type' in found)) return UNKNOWN
    at = found.type
  }
  return at
}
