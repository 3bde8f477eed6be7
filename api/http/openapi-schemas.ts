import { z } from 'zod'
import { strict } from './validate.ts'

export type Json = Record<string, unknown>
export type Reference = { $ref: string }

type Io = 'input' | 'output'

/**
 * The shapes of an OpenAPI document: what has an id in its zod schema becomes a component of that name, which is then
 * referred to. Throws where two shapes have one name.
 */
export class Shapes {
  readonly components: Json = {}
  /** The names of those that are whole answers. */
  readonly answers = new Set<string>()

  /** JSON Schema as OpenAPI wants it. */
  of(source: z.ZodType, io: Io): Json {
    const { $schema: _, $defs, ...schema } = z.toJSONSchema(source, conversion(io)) as Json
    for (const [name, definition] of Object.entries(($defs ?? {}) as Json)) {
      if (name.startsWith('__')) throw new Error('a shape that contains itself needs an id')
      this.name(name, relocated(definition))
    }
    return relocated(schema)
  }

  /** As `of`, but always a reference: what has no id is called `name`. */
  body(source: z.ZodType, name: string): Json {
    const schema = this.of(source, 'input')
    if ('$ref' in schema) return schema
    // The gateway makes it strict, where it does not say so itself.
    return this.name(name, strict(source) === source ? schema : { ...schema, additionalProperties: false })
  }

  /** As `body`, of what is answered. */
  answer(source: z.ZodType, name: string): Reference {
    const schema = this.of(source, 'output')
    const $ref = typeof schema.$ref === 'string' ? schema.$ref : this.name(name, schema).$ref
    this.answers.add($ref.split('/').at(-1)!)
    return { $ref }
  }

  /** @returns the reference. */
  private name(name: string, schema: Json): Reference {
    const before = this.components[name]
    if (before && JSON.stringify(before) !== JSON.stringify(schema)) throw new Error(`two shapes are ${name}`)
    this.components[name] = schema
    return { $ref: `#/components/schemas/${name}` }
  }
}

const conversion = (io: Io): z.core.ToJSONSchemaParams => ({
  io,
  unrepresentable: 'any',
  override({ zodSchema, jsonSchema }) {
    const { def } = zodSchema._zod
    if (def.type === 'date') Object.assign(jsonSchema, { type: 'string', format: 'date-time' })
    // The format says it; the pattern behind it is hundreds of characters.
    if (jsonSchema.format) delete jsonSchema.pattern
    // Clients are to ignore what they do not know, for answers may grow.
    if (io === 'output' && def.type === 'object' && !(def as z.core.$ZodObjectDef).catchall)
      delete jsonSchema.additionalProperties
    if (def.type === 'nullable') flatten(jsonSchema)
    // What JSON's whole numbers can be at all is no rule of ours.
    if (jsonSchema.minimum === Number.MIN_SAFE_INTEGER) delete jsonSchema.minimum
    if (jsonSchema.maximum === Number.MAX_SAFE_INTEGER) delete jsonSchema.maximum
  },
})

/** `{"type": ["string", "null"], …}` where a choice of two would say no more; else the choice has the description. */
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

const relocated = (part: unknown): Json =>
  JSON.parse(JSON.stringify(part).replaceAll('"#/$defs/', '"#/components/schemas/'))
