import { z } from 'zod'
import { appRoutes } from '../../app/route-table.ts'
import { routes } from '../../v1/route-table.ts'
import { type FieldKind, type FieldSpec, labelOf } from './field-spec.ts'

interface JsonSchema {
  $ref?: string
  $defs?: Record<string, JsonSchema>
  type?: string | string[]
  format?: string
  enum?: unknown[]
  anyOf?: JsonSchema[]
  items?: JsonSchema
  properties?: Record<string, JsonSchema>
  required?: string[]
  maxLength?: number
  description?: string
  default?: unknown
}

/** How several values are written. */
const HOW: Partial<Record<FieldKind, string>> = {
  lines: 'One per line.',
  numbers: 'One per line.',
  pairs: 'One `name: value` per line.',
}

/** Text with a greater limit gets several lines. */
const LONG = 300

/**
 * The fields of an operation's body, from the schema that validates it: label, help, choices and limits. `names` selects
 * and orders them; `labels` replaces a label.
 */
export function fieldsOf(
  operation: string,
  names: string[],
  labels: Record<string, string> = {},
): FieldSpec[] {
  const { schema, resolve } = bodyOf(operation)
  return specsOf(schema, resolve, { of: `the body of ${operation}`, names, labels })
}

/** The same for the items of a list in the body: the stages of a pipeline. */
export function itemFieldsOf(
  operation: string,
  list: string,
  names: string[],
  labels: Record<string, string> = {},
): FieldSpec[] {
  const { schema, resolve } = bodyOf(operation)
  const whole = schema.properties?.[list] && resolve(schema.properties[list])
  const { items } = whole ? resolve(withoutNull(whole)) : {}
  if (!items) throw new Error(`${list} of the body of ${operation} is no list`)
  return specsOf(resolve(items), resolve, { of: `an item of ${list}`, names, labels })
}

function bodyOf(operation: string) {
  const route = [...appRoutes, ...routes].find(({ id }) => id === operation)
  if (!route?.body) throw new Error(`the operation ${operation} has no body`)
  return jsonSchema(route.body)
}

function specsOf(
  { properties = {}, required = [] }: JsonSchema,
  resolve: (schema: JsonSchema) => JsonSchema,
  { of, names, labels }: { of: string; names: string[]; labels: Record<string, string> },
): FieldSpec[] {
  return names.map((name) => {
    const whole = properties[name] && resolve(properties[name])
    if (!whole) throw new Error(`${of} has no ${name}`)
    const one = resolve(withoutNull(whole))
    const type = kindOf(one)
    return {
      name,
      label: labels[name] ?? labelOf(name),
      help: [helpOf(whole, one), HOW[type]].filter(Boolean).join(' '),
      type,
      choices: (one.enum ?? one.items?.enum ?? []).map(String),
      required: required.includes(name),
      max: one.maxLength,
      references: undefined,
      nullable: isNullable(whole),
      initial: whole.default ?? null,
    }
  })
}

/** A schema for JSON, and what follows its references. */
function jsonSchema(body: z.ZodType) {
  const schema = z.toJSONSchema(body, { io: 'input', unrepresentable: 'any' }) as JsonSchema
  const resolve = ({ $ref, ...rest }: JsonSchema): JsonSchema =>
    $ref ? { ...resolve(schema.$defs![$ref.split('/').at(-1)!]!), ...rest } : rest
  return { schema: resolve(schema), resolve }
}

/** A form has no null: an empty field means it. */
const helpOf = (whole: JsonSchema, one: JsonSchema) =>
  (whole.description ?? one.description)?.replace(/\bnull:/g, 'Empty:')

const isNullable = ({ anyOf }: JsonSchema) => anyOf?.some(({ type }) => type === 'null') ?? false

function kindOfList(items: JsonSchema): FieldKind {
  if (items.enum) return 'choices'
  return items.type === 'integer' || items.type === 'number' ? 'numbers' : 'lines'
}

const withoutNull = (schema: JsonSchema): JsonSchema =>
  schema.anyOf?.find(({ type }) => type !== 'null') ?? schema

function kindOf(schema: JsonSchema): FieldKind {
  if (schema.enum) return 'choice'
  if (schema.type === 'boolean') return 'boolean'
  if (schema.type === 'integer') return 'integer'
  if (schema.type === 'number') return 'number'
  if (schema.type === 'array') return kindOfList(schema.items ?? {})
  if (schema.type === 'object' && !schema.properties) return 'pairs'
  if (schema.type === 'object') return 'json'
  if (schema.format === 'date-time') return 'datetime'
  if (schema.format === 'date') return 'date'
  if (schema.format === 'uri') return 'url'
  return (schema.maxLength ?? 0) > LONG ? 'long_text' : 'text'
}
