import type { Json } from './openapi-schemas.ts'

/** The same shapes; each whose name is in `wanted` has an example, made up of what its members can be, or its own. */
export function withExamples(shapes: Json, wanted: ReadonlySet<string>): Json {
  return Object.fromEntries(
    (Object.entries(shapes) as [string, Json][]).map(([name, shape]) => [
      name,
      wanted.has(name) ? { ...shape, examples: [exampleOf(shape, shapes)] } : shape,
    ]),
  )
}

/** A value that fits the schema. */
function exampleOf(schema: Json, shapes: Json): unknown {
  const { $ref, const: only, enum: choices, examples, default: usual, anyOf, oneOf } = schema
  if (typeof $ref === 'string') return exampleOf(shapes[$ref.split('/').at(-1)!] as Json, shapes)
  if (Array.isArray(examples)) return examples[0]
  if (only !== undefined) return only
  if (Array.isArray(choices)) return choices[0]
  if (usual !== undefined) return usual
  const options = anyOf ?? oneOf
  if (Array.isArray(options)) return exampleOf(options[0] as Json, shapes)
  switch ([schema.type].flat()[0]) {
    case 'object': {
      const members = Object.entries((schema.properties ?? {}) as Record<string, Json>)
      return Object.fromEntries(members.map(([name, member]) => [name, exampleOf(member, shapes)]))
    }
    case 'array':
      return [exampleOf((schema.items ?? {}) as Json, shapes)]
    case 'string':
      return TEXTS[String(schema.format)] ?? 'text'
    case 'integer':
    case 'number':
      return schema.minimum ?? 1
    case 'boolean':
      return true
    default:
      return null
  }
}

const TEXTS: Record<string, string> = {
  uuid: '01890a5d-ac96-774b-bcce-b302099a8057',
  'date-time': '2026-01-31T09:30:00.000Z',
  date: '2026-01-31',
  email: 'ada@example.com',
  uri: 'https://example.com',
}
