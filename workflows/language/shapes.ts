import { z } from 'zod'
import type { FindingCode } from './finding-codes.ts'

/** The part of JSON Schema that hints read. */
export interface Shape {
  /** The word for such a value in the guide, instead of its members. */
  title?: string
  type?: string
  const?: unknown
  enum?: unknown[]
  examples?: unknown[]
  description?: string
  default?: unknown
  properties?: Record<string, Shape>
  required?: string[]
  additionalProperties?: Shape | boolean
  items?: Shape
  format?: string
  pattern?: string
  minimum?: number
  maximum?: number
  anyOf?: Shape[]
  oneOf?: Shape[]
  allOf?: Shape[]
  /** Not of JSON Schema: the mapping holds the custom fields of this kind of record. */
  customFieldsOf?: string
  /** Not of JSON Schema: the mask of a sensitive custom field of this kind of record. */
  maskOf?: string
  /** Not of JSON Schema: an `output_schema` names the member, but does not require it. */
  mayBeAbsent?: true
  /** Not of JSON Schema: why the mapping has no members, as a hint. */
  empty?: string
  /** Not of JSON Schema: the type is only likely. */
  origin?: Origin
}

/**
 * Where a type is from that is only likely: a sample, or what another workflow returns today. What does not fit it is a
 * warning, because the value can be another one.
 */
export interface Origin {
  /** The code of the warning. */
  code: FindingCode
  /** What has such values: `the sample of the webhook "Shop"`. */
  what: string
  /** Where there may be values of another type. */
  others?: string
  /** The hint if there is no name to write instead. */
  otherwise: string
}

/** Kept: schemas never change, and their conversion takes a millisecond. */
const known = new WeakMap<z.ZodType, Shape>()

/** The JSON Schema of the values that a schema accepts. */
export function shapeOf(schema: z.ZodType): Shape {
  const found = known.get(schema)
  if (found) return found
  const { $ref, $defs, ...root } = z.toJSONSchema(schema, {
    io: 'input',
    unrepresentable: 'any',
  }) as Shape & {
    $ref?: string
    $defs?: Record<string, Shape>
  }
  // A schema with a name is written as a reference to itself.
  const shape: Shape = $defs?.[$ref?.replace('#/$defs/', '') ?? ''] ?? root
  known.set(schema, shape)
  return shape
}

/** The shapes that the value at a path may have; in a union, those of the options whose constants match. */
export function shapesAt(shape: Shape, value: unknown, path: readonly PropertyKey[]): Shape[] {
  let shapes = optionsOf(shape, value)
  let at = value
  for (const key of path) {
    at = memberOf(at, key)
    shapes = shapes.flatMap((one) => memberShapes(one, key)).flatMap((one) => optionsOf(one, at))
  }
  return shapes
}

/** The names of the keys that the mapping at a path can have. */
export const keysAt = (shape: Shape, value: unknown, path: readonly PropertyKey[]): string[] => [
  ...new Set(shapesAt(shape, value, path).flatMap(({ properties = {} }) => Object.keys(properties))),
]

/** The member of a mapping or list; undefined if there is none. */
export function memberOf(value: unknown, key: PropertyKey): unknown {
  if (typeof value !== 'object' || value === null || !Object.hasOwn(value, key)) return undefined
  return (value as Record<PropertyKey, unknown>)[key]
}

function memberShapes({ properties = {}, additionalProperties, items }: Shape, key: PropertyKey): Shape[] {
  if (typeof key === 'number') return items ? [items] : []
  const name = String(key)
  if (Object.hasOwn(properties, name)) return [properties[name]!]
  if (items && /^\d+$/.test(name)) return [items]
  return typeof additionalProperties === 'object' ? [additionalProperties] : []
}

function optionsOf(shape: Shape, value: unknown): Shape[] {
  const inner = [...(shape.anyOf ?? []), ...(shape.oneOf ?? []), ...(shape.allOf ?? [])]
  // Beside properties, the options only say which of them are required.
  if (inner.length === 0 || shape.properties) return [shape]
  const options = inner.flatMap((one) => optionsOf(one, value))
  const fitting = options.filter(({ properties = {} }) =>
    Object.entries(properties).every(([name, one]) => {
      const given = memberOf(value, name)
      return one.const === undefined || given === undefined || given === one.const
    }),
  )
  return fitting.length > 0 ? fitting : options
}
