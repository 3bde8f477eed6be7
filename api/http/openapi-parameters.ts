import type { z } from 'zod'
import type { Json, Reference, Shapes } from './openapi-schemas.ts'
import { type AppRoute, isIdempotent, type Route } from './route.ts'

export interface Parameter {
  name: string
  in: 'path' | 'query' | 'header'
  required: boolean
  description?: string
  style?: string
  explode?: boolean
  schema: Json
}

/** Everything that an operation takes besides its body: in its path, its query and its headers. */
export function parametersOf(route: Route | AppRoute, shapes: Shapes): Parameter[] {
  return [
    ...pathParameters(route, shapes),
    ...(route.query ? queryParameters(shapes.of(route.query, 'input')) : []),
    ...(isIdempotent(route) ? [IDEMPOTENCY_KEY] : []),
    ...(route.ifMatch ? [IF_MATCH] : []),
    ...(route.waits ? [PREFER] : []),
    ...('role' in route && route.role !== 'public' && route.method !== 'GET' ? [CSRF_TOKEN] : []),
  ]
}

const IDEMPOTENCY_KEY: Parameter = {
  name: 'Idempotency-Key',
  in: 'header',
  required: false,
  description:
    'The same key and body within 24 hours are answered as the first time, and done once; 409 as long as the first request is not answered. A refusal with 403, 404, 412, 422 or 429, and a failure of ours, is not kept: once it is cured, the same key does it.',
  schema: { type: 'string', minLength: 1, maxLength: 255 },
}

const IF_MATCH: Parameter = {
  name: 'If-Match',
  in: 'header',
  required: false,
  description: 'The ETag that was read: another version is answered 412.',
  schema: { type: 'string' },
}

const PREFER: Parameter = {
  name: 'Prefer',
  in: 'header',
  required: false,
  description: '`wait=N`: the answer comes once the run has ended, or after N seconds, at most 30.',
  schema: { type: 'string' },
}

const CSRF_TOKEN: Parameter = {
  name: 'X-CSRF-Token',
  in: 'header',
  required: true,
  description: 'The csrf_token of the session.',
  schema: { type: 'string' },
}

function pathParameters(route: Route | AppRoute, shapes: Shapes): Parameter[] {
  const known = (route.params ? shapes.of(route.params as z.ZodType, 'input').properties : {}) as Record<
    string,
    Json
  >
  return [...route.path.matchAll(/\{(\w+)\}/g)].map(([, name]) => ({
    name: name!,
    in: 'path',
    required: true,
    schema: known[name!] ?? { type: 'string' },
  }))
}

function queryParameters(schema: Json): Parameter[] {
  const required = (schema.required as string[] | undefined) ?? []
  return Object.entries((schema.properties ?? {}) as Record<string, Json>).map(([name, property]) => {
    const { description, ...rest } = property
    return {
      name,
      in: 'query',
      required: required.includes(name),
      ...(typeof description === 'string' ? { description } : {}),
      ...styleOf(rest),
      schema: rest,
    }
  })
}

/** Members of an object are sent in brackets, `amount[gte]=5`; where it can be nothing else, by their own names. */
function styleOf({ type, anyOf, $ref }: Json): Pick<Parameter, 'style' | 'explode'> {
  if (type === 'object') return { style: 'form', explode: true }
  const takesObject =
    $ref !== undefined ||
    (Array.isArray(anyOf) && anyOf.some((one: Json) => '$ref' in one || one.type === 'object'))
  return takesObject ? { style: 'deepObject', explode: true } : {}
}

/**
 * Moves the parameters that several operations have to the document's components, where lists of records have most of
 * theirs. One is called by its name, and where others have that name too, by its tag and its name.
 *
 * @returns the components; the operations' parameters have become references to them.
 */
export function shareParameters(operations: { tags: string[]; parameters: (Parameter | Reference)[] }[]) {
  const uses = new Map<string, { tag: string; name: string; count: number }>()
  for (const { tags, parameters } of operations)
    for (const parameter of parameters) {
      if ('$ref' in parameter) continue
      const text = JSON.stringify(parameter)
      const use = uses.get(text) ?? { tag: tags[0]!, name: parameter.name, count: 0 }
      uses.set(text, { ...use, count: use.count + 1 })
    }
  const shared = [...uses].filter(([, { count }]) => count > 1)
  const components: Record<string, Parameter> = {}
  const references = new Map<string, Reference>()
  for (const [text, { tag, name }] of shared) {
    const alone = shared.filter(([, other]) => other.name === name).length === 1
    const key = alone ? name : `${tag.replaceAll(' ', '_')}_${name}`
    // One tag may have two of a name; the second stays where it is.
    if (key in components) continue
    components[key] = JSON.parse(text)
    references.set(text, { $ref: `#/components/parameters/${key}` })
  }
  for (const operation of operations)
    operation.parameters = operation.parameters.map(
      (parameter) => references.get(JSON.stringify(parameter)) ?? parameter,
    )
  return components
}
