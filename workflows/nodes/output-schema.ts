import { z } from 'zod'
import { checkShape } from '../language/config.ts'
import { countValues } from '../language/measure.ts'
import { NodeError } from '../language/node-error.ts'
import { REMOVE } from '../language/problems.ts'
import { UNKNOWN, type ValueType } from '../language/value-types.ts'
import { isObject } from '../shared/is-object.ts'
import { OUTPUT_SCHEMA } from '../shared/limits.ts'
import { nearest } from '../shared/nearest.ts'
import type { ConfigProblem } from './define.ts'

/** `output_schema`: the JSON Schema of an output, in the subset that language models support. */

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

type Place = Pick<ConfigProblem, 'path' | 'message' | 'hint' | 'atKey'>

/** The problems of a schema. Patterns are refused: on a long answer they could block the process. */
export function schemaProblems(schema: unknown): Place[] {
  if (!isObject(schema)) return []
  if (JSON.stringify(schema).length > OUTPUT_SCHEMA.characters)
    return [{ path: [], message: `output_schema has more than ${OUTPUT_SCHEMA.characters} characters` }]
  const found = keywordProblems(schema, [])
  if (found.length > 0) return found
  try {
    z.fromJSONSchema(schema as Parameters<typeof z.fromJSONSchema>[0])
    return []
  } catch (error) {
    return [{ path: [], message: `output_schema is not valid: ${(error as Error).message.slice(0, 200)}` }]
  }
}

function keywordProblems(schema: unknown, path: PropertyKey[], depth = 0): Place[] {
  if (typeof schema === 'boolean') return []
  if (!isObject(schema)) return [{ path, message: `${path.join('.')} is not a schema` }]
  if (depth > OUTPUT_SCHEMA.depth) return [{ path, message: 'output_schema is nested too deeply' }]
  const inner = (name: string) =>
    isObject(schema[name])
      ? Object.entries(schema[name]).flatMap(([key, one]) =>
          keywordProblems(one, [...path, name, key], depth + 1),
        )
      : []
  const anyOf = Array.isArray(schema.anyOf) ? schema.anyOf : []
  return [
    ...Object.keys(schema)
      .filter((keyword) => !KEYWORDS.includes(keyword))
      .map((keyword) => ({
        path: [...path, keyword],
        message: `output_schema cannot have ${keyword.slice(0, 100)}`,
        hint: meant(keyword, schema),
        atKey: true,
      })),
    ...inner('properties'),
    ...(schema.items === undefined ? [] : keywordProblems(schema.items, [...path, 'items'], depth + 1)),
    ...anyOf.flatMap((one, index) => keywordProblems(one, [...path, 'anyOf', index], depth + 1)),
  ]
}

/** Other keywords only restrict values further: without them the schema describes the same members. */
function meant(keyword: string, schema: object): string {
  const near = nearest(
    keyword,
    KEYWORDS.filter((one) => !Object.hasOwn(schema, one)),
  )
  return near === undefined ? REMOVE : `did you mean ${near}?`
}

/** The problems of a schema as those of `output_schema` in a config. */
export const outputSchemaProblems = (problems: readonly Place[]): ConfigProblem[] =>
  problems.map(({ path, ...problem }) => ({
    code: 'invalid_config',
    ...problem,
    path: ['output_schema', ...path],
  }))

/**
 * The type that a schema declares; unknown if it has problems. Placeholders read the members that it names, unless
 * `additionalProperties` allows others: at run time others are no mistake, since services add members.
 */
export const declaredType = (schema: unknown): ValueType =>
  isObject(schema) && schemaProblems(schema).length === 0 ? closed(schema as ValueType) : UNKNOWN

function closed(type: ValueType): ValueType {
  const { properties, items, anyOf } = type
  return {
    ...type,
    ...(properties && {
      properties: Object.fromEntries(
        Object.entries(properties).map(([name, one]) => {
          // Without `required`, its author has not said which members are always there.
          const isOptional = type.required !== undefined && !type.required.includes(name)
          return [name, { ...closedMember(one), ...(isOptional && { mayBeAbsent: true as const }) }]
        }),
      ),
      additionalProperties: type.additionalProperties ?? false,
    }),
    ...(isObject(items) && { items: closed(items) }),
    ...(Array.isArray(anyOf) && { anyOf: anyOf.map(closedMember) }),
  }
}

/** `true` is a schema too: it accepts every value. */
const closedMember = (type: ValueType | boolean): ValueType => (isObject(type) ? closed(type) : UNKNOWN)

/** Throws NodeError if a value does not fit. `what` names the value: `output.result`. */
export function requireFit(schema: Record<string, unknown> | undefined, value: unknown, what: string): void {
  if (schema === undefined) return
  const [problem] = schemaProblems(schema)
  if (problem) throw new NodeError('invalid_config', problem.message)
  const mismatch = mismatchOf(schema, value)
  if (mismatch !== undefined)
    throw new NodeError('output_invalid', `${what} does not fit output_schema: ${mismatch.slice(0, 500)}`)
}

/** Where a value differs from a schema without problems; undefined if it does not. */
export function mismatchOf(schema: object, value: unknown): string | undefined {
  if (countValues(value) * (1 + countOptions(schema)) > OUTPUT_SCHEMA.checks)
    return 'it has too many values for a schema with so many alternatives'
  const issues = checkShape(z.fromJSONSchema(schema as Parameters<typeof z.fromJSONSchema>[0]), value)
  if (issues.length === 0) return undefined
  return issues
    .slice(0, 5)
    .map(({ path, message }) => [path.join('.'), message].filter(Boolean).join(' '))
    .join('; ')
}

/** The alternatives of a schema: each value may be compared with all of them. */
function countOptions(schema: unknown): number {
  if (Array.isArray(schema)) return schema.reduce((sum: number, one) => sum + countOptions(one), 0)
  if (!isObject(schema)) return 0
  const { anyOf, enum: values, ...others } = schema
  const own = [anyOf, values].reduce((sum: number, list) => sum + (Array.isArray(list) ? list.length : 0), 0)
  return own + countOptions(anyOf) + countOptions(Object.values(others))
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
