import { z } from 'zod'
import { checkShape } from '../language/config.ts'
import { UNKNOWN, type ValueType } from '../language/value-types.ts'
import { isObject } from '../shared/is-object.ts'
import type { ConfigProblem } from './define.ts'

/** The JSON Schema of a language model's answer, in the subset that models support. */

const KEYWORDS = [
  'type',
  'title',
  'description',
  'default',
  'examples',
  'enum',
  'const',
  'anyOf',
  'properties',
  'required',
  'additionalProperties',
  'items',
  'minItems',
  'maxItems',
  'minimum',
  'maximum',
  'exclusiveMinimum',
  'exclusiveMaximum',
  'multipleOf',
  'minLength',
  'maxLength',
]

const MAX_DEPTH = 20
const MAX_CHARACTERS = 32_768

type Place = Pick<ConfigProblem, 'path' | 'message' | 'hint' | 'atKey'>

/** The problems of a schema. Patterns are refused: on a long answer they could block the process. */
export function schemaProblems(schema: unknown): Place[] {
  if (!isObject(schema)) return []
  if (schema.type !== 'object')
    return [{ path: ['type'], message: 'output_schema must have `type: object`', hint: 'write type: object' }]
  if (JSON.stringify(schema).length > MAX_CHARACTERS)
    return [{ path: [], message: `output_schema has more than ${MAX_CHARACTERS} characters` }]
  const found = keywordProblems(schema, [])
  if (found.length > 0) return found
  try {
    z.fromJSONSchema(schema as Parameters<typeof z.fromJSONSchema>[0])
    return []
  } catch (error) {
    return [{ path: [], message: `output_schema is not valid: ${(error as Error).message.slice(0, 200)}` }]
  }
}

function keywordProblems(schema: unknown, path: PropertyKey[]): Place[] {
  if (typeof schema === 'boolean') return []
  if (!isObject(schema)) return [{ path, message: `${path.join('.')} is not a schema` }]
  if (path.length > MAX_DEPTH * 2) return [{ path, message: 'output_schema is nested too deeply' }]
  const inner = (name: string) =>
    isObject(schema[name])
      ? Object.entries(schema[name]).flatMap(([key, one]) => keywordProblems(one, [...path, name, key]))
      : []
  const anyOf = Array.isArray(schema.anyOf) ? schema.anyOf : []
  return [
    ...Object.keys(schema)
      .filter((keyword) => !KEYWORDS.includes(keyword))
      .map((keyword) => ({
        path: [...path, keyword],
        message: `output_schema cannot have ${keyword.slice(0, 100)}`,
        hint: `one of ${KEYWORDS.join(', ')}`,
        atKey: true,
      })),
    ...inner('properties'),
    ...(schema.items === undefined ? [] : keywordProblems(schema.items, [...path, 'items'])),
    ...anyOf.flatMap((one, index) => keywordProblems(one, [...path, 'anyOf', index])),
  ]
}

/** The type that a schema declares; unknown if it has problems. */
export const declaredType = (schema: unknown): ValueType =>
  isObject(schema) && schemaProblems(schema).length === 0 ? (schema as ValueType) : UNKNOWN

/** Where a value differs from a schema without problems; undefined if it does not. */
export function mismatchOf(schema: object, value: unknown): string | undefined {
  const issues = checkShape(z.fromJSONSchema(schema as Parameters<typeof z.fromJSONSchema>[0]), value)
  if (issues.length === 0) return undefined
  return issues
    .slice(0, 5)
    .map(({ path, message }) => [path.join('.'), message].filter(Boolean).join(' '))
    .join('; ')
}

/** Whether every object lists all its members as required, as the strict mode of endpoints demands. */
export function isStrict(schema: unknown): boolean {
  if (!isObject(schema)) return true
  const { type, properties = {}, required = [], additionalProperties, items, anyOf = [] } = schema
  const members = isObject(properties) ? properties : {}
  const closed =
    additionalProperties === false &&
    Object.keys(members).every((name) => Array.isArray(required) && required.includes(name))
  return (
    (type !== 'object' || closed) &&
    [...Object.values(members), items, ...(Array.isArray(anyOf) ? anyOf : [])].every(isStrict)
  )
}
