import { isObject } from '../shared/is-object.ts'
import type { Origin } from './shapes.ts'
import {
  BOOLEAN,
  isUnknown,
  listOf,
  MAPPING,
  members,
  NUMBER,
  optionsOf,
  TEXT,
  UNKNOWN,
  unionOf,
  type ValueType,
} from './value-types.ts'

/** Types that are only likely: those of samples, and of what another workflow returns today. */

/** Beyond it the types of a value are unknown. */
const MAX_DEPTH = 20
/** Items of a list that tell its type. */
const MAX_ITEMS = 50
/** Beyond it a mapping has other names each time, such as ids. */
const MAX_MEMBERS = 500

/**
 * The type of a value of which these are samples. What they do not tell is unknown: null, and the items of an empty list.
 */
export function typeOfSamples(samples: readonly unknown[], origin: Origin, depth = 0): ValueType {
  const values = samples.filter((sample) => sample !== null && sample !== undefined)
  if (values.length === 0 || depth > MAX_DEPTH) return UNKNOWN
  const lists = values.filter((value) => Array.isArray(value))
  const mappings = values.filter(isObject)
  const inner = (inside: readonly unknown[]) => typeOfSamples(inside, origin, depth + 1)
  const kinds: ValueType[] = [
    ...(lists.length > 0 ? [listOf(inner(lists.flatMap((list) => list.slice(0, MAX_ITEMS))))] : []),
    ...(mappings.length > 0 ? [typeOfMappings(mappings, inner)] : []),
    ...(['string', 'number', 'boolean'] as const).flatMap((kind) =>
      values.some((value) => typeof value === kind) ? [SCALARS[kind]] : [],
    ),
  ]
  return unionOf(kinds.map((kind) => ({ ...kind, origin })))
}

function typeOfMappings(
  mappings: readonly Record<string, unknown>[],
  inner: (values: readonly unknown[]) => ValueType,
): ValueType {
  const byName = new Map<string, unknown[]>()
  for (const mapping of mappings)
    for (const [name, value] of Object.entries(mapping)) {
      const known = byName.get(name)
      if (known) known.push(value)
      else byName.set(name, [value])
    }
  if (byName.size > MAX_MEMBERS) return MAPPING
  return members(Object.fromEntries([...byName].map(([name, values]) => [name, inner(values)])))
}

const SCALARS = { string: TEXT, number: NUMBER, boolean: BOOLEAN }

/** A type, all of whose parts are only likely. */
export function withOrigin(type: ValueType, origin: Origin, depth = 0): ValueType {
  if (isUnknown(type) || depth > MAX_DEPTH) return UNKNOWN
  const inner = (one: ValueType) => withOrigin(one, origin, depth + 1)
  const { properties, items, anyOf, oneOf, additionalProperties } = type
  return {
    ...type,
    origin,
    ...(properties && {
      properties: Object.fromEntries(Object.entries(properties).map(([name, one]) => [name, inner(one)])),
    }),
    ...(items && { items: inner(items) }),
    ...(anyOf && { anyOf: anyOf.map(inner) }),
    ...(oneOf && { oneOf: oneOf.map(inner) }),
    ...(typeof additionalProperties === 'object' && { additionalProperties: inner(additionalProperties) }),
  }
}

/** A type with the parts that it does not know taken from a likely one. */
export function filledFrom(type: ValueType, likely: ValueType | undefined, depth = 0): ValueType {
  if (!likely || depth > MAX_DEPTH) return type
  if (isUnknown(type)) return likely
  if (type.type === 'array' && type.items && likely.type === 'array' && likely.items)
    return { ...type, items: filledFrom(type.items, likely.items, depth + 1) }
  if (type.type !== 'object' || likely.type !== 'object' || type.customFieldsOf !== undefined) return type
  const { properties, additionalProperties } = type
  if (!properties && additionalProperties !== false) return likely
  return {
    ...type,
    properties: Object.fromEntries(
      Object.entries(properties ?? {}).map(([name, one]) => [
        name,
        filledFrom(one, likely.properties?.[name], depth + 1),
      ]),
    ),
  }
}

/** Where a type is from, if it is only likely. */
export const originOf = (type: ValueType): Origin | undefined =>
  type.origin ?? optionsOf(type).find(({ origin }) => origin)?.origin
