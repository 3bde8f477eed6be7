import { z } from 'zod'
import { strict } from '../../db/model/validate.ts'

export type Json = Record<string, unknown>
export type Reference = { $ref: string }

type Io = 'input' | 'output'

const COMPONENTS = '#/components/schemas/'

/**
 * The schemas of an OpenAPI document. A zod schema with an id becomes a component of that name. If its request and
 * response shapes differ (a default makes a member optional in requests only), the request component is `NameInput`.
 * Until `finish`, references contain the direction: `#/components/schemas/input:Name`.
 */
export class Shapes {
  private readonly definitions: Record<Io, Map<string, Json>> = { input: new Map(), output: new Map() }

  /** The JSON Schema of a zod schema. Throws if two schemas have the same id. */
  of(source: z.ZodType, io: Io): Json {
    const { $schema: _, $defs, ...schema } = z.toJSONSchema(source, conversion(io)) as Json
    const located = (part: unknown) =>
      JSON.parse(JSON.stringify(part).replaceAll('"#/$defs/', `"${COMPONENTS}${io}:`)) as Json
    for (const [name, definition] of Object.entries(($defs ?? {}) as Json)) {
      if (name.startsWith('__')) throw new Error('a recursive schema needs an id')
      this.define(name, located(definition), io)
    }
    return located(schema)
  }

  /** The reference to the schema of a request body; `name` is for a schema without an id. */
  body(source: z.ZodType, name: string): Reference {
    const schema = this.of(source, 'input')
    if (isReference(schema)) return { $ref: schema.$ref }
    // The gateway refuses unknown members, also where the schema does not.
    const closed = strict(source) === source ? schema : { ...schema, additionalProperties: false }
    return this.define(name, closed, 'input')
  }

  /** The reference to the schema of a response; `name` is for a schema without an id. */
  answer(source: z.ZodType, name: string): Reference {
    const schema = this.of(source, 'output')
    if (isReference(schema)) return { $ref: schema.$ref }
    if (Array.isArray(schema.anyOf)) schema.anyOf = schema.anyOf.map((one) => this.alternative(one))
    return this.define(name, schema, 'output')
  }

  /** An alternative without an id is named after its `object`: client generators need a name. */
  private alternative(schema: Json): Json {
    const { object } = (schema.properties ?? {}) as { object?: { const?: string } }
    if (!object?.const) return schema
    const words = object.const.split('_').map((word) => word[0]!.toUpperCase() + word.slice(1))
    return this.define(words.join(''), schema, 'output')
  }

  /** Gives every component its final name, in `document` too. @returns the document and its components. */
  finish<T>(document: T): { document: T; schemas: Json } {
    const split = this.splitNames()
    const finalName = (io: string, name: string) =>
      io === 'input' && split.has(name) ? `${name}Input` : name
    const renamed = <Part>(part: Part): Part =>
      JSON.parse(
        JSON.stringify(part).replace(
          /"#\/components\/schemas\/(input|output):([^"]+)"/g,
          (_, io, name) => `"${COMPONENTS}${finalName(io, name)}"`,
        ),
      )
    const schemas = (['output', 'input'] as const).flatMap((io) =>
      [...this.definitions[io]].map(([name, schema]) => [finalName(io, name), renamed(schema)] as const),
    )
    return {
      document: renamed(document),
      schemas: Object.fromEntries(schemas.sort(([a], [b]) => (a < b ? -1 : 1))),
    }
  }

  private define(name: string, schema: Json, io: Io): Reference {
    const before = this.definitions[io].get(name)
    if (before && JSON.stringify(before) !== JSON.stringify(schema))
      throw new Error(`two schemas are ${name}`)
    this.definitions[io].set(name, schema)
    return { $ref: `${COMPONENTS}${io}:${name}` }
  }

  /** Components that differ between requests and responses, and components that refer to one. */
  private splitNames(): Set<string> {
    const { input, output } = this.definitions
    const text = (io: Io, schema: unknown) =>
      JSON.stringify(schema).replaceAll(`"${COMPONENTS}${io}:`, `"${COMPONENTS}`)
    const both = [...input]
      .filter(([name]) => output.has(name))
      .map(([name, schema]) => [name, text('input', schema), text('output', output.get(name))] as const)
    const split = new Set(both.filter(([, sent, returned]) => sent !== returned).map(([name]) => name))
    for (let before = -1; before !== split.size; ) {
      before = split.size
      for (const [name, sent] of both)
        if ([...split].some((other) => sent.includes(`"${COMPONENTS}${other}"`))) split.add(name)
    }
    return split
  }
}

const isReference = (schema: Json): schema is Json & Reference => typeof schema.$ref === 'string'

export const conversion = (io: Io): z.core.ToJSONSchemaParams => ({
  io,
  unrepresentable: 'any',
  override({ zodSchema, jsonSchema }) {
    const { def } = zodSchema._zod
    if (def.type === 'date') Object.assign(jsonSchema, { type: 'string', format: 'date-time' })
    // The format implies the pattern, which is hundreds of characters long.
    if (jsonSchema.format) delete jsonSchema.pattern
    // Responses may gain members, which clients ignore.
    if (io === 'output' && def.type === 'object' && !(def as z.core.$ZodObjectDef).catchall)
      delete jsonSchema.additionalProperties
    // A default is what the service assumes in a request.
    if (io === 'output') delete jsonSchema.default
    // Responses have recorded examples.
    if (io === 'output') delete jsonSchema.examples
    if (def.type === 'nullable') flatten(jsonSchema)
    // Client generators turn an object with alternatives into an untyped value. Its description states the rule.
    if (jsonSchema.properties && jsonSchema.anyOf) delete jsonSchema.anyOf
    // Every key of a JSON object is a string.
    if (JSON.stringify(jsonSchema.propertyNames) === '{"type":"string"}') delete jsonSchema.propertyNames
    // The bounds of safe integers are not a rule of the service.
    if (jsonSchema.minimum === Number.MIN_SAFE_INTEGER) delete jsonSchema.minimum
    if (jsonSchema.maximum === Number.MAX_SAFE_INTEGER) delete jsonSchema.maximum
  },
})

/** Nullable schemas: `{"type": ["string", "null"], …}` for simple types; `anyOf` with the description for others. */
function flatten(nullable: z.core.JSONSchema.BaseSchema): void {
  const [inner] = (nullable.anyOf ?? []) as z.core.JSONSchema.BaseSchema[]
  if (!inner) return
  const { type = 'object', description } = inner
  const isSimple = [type].flat().every((one) => one !== 'object' && one !== 'array')
  if (isSimple && !inner.enum && inner.const === undefined) {
    delete nullable.anyOf
    Object.assign(nullable, inner, { type: [type, 'null'].flat() })
  } else if (description !== undefined) {
    delete inner.description
    nullable.description ??= description
  }
}
