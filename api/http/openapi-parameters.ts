import type { z } from 'zod'
import type { Json, Reference, Shapes } from './openapi-schemas.ts'
import { type AppRoute, isIdempotent, type Route } from './route.ts'

export interface Parameter {
  name: string
  in: 'path' | 'query' | 'header'
  required?: true
  description?: string
  style?: string
  explode?: boolean
  schema: Json
}

/** The parameters of an operation: in its path, its query and its headers. */
export function parametersOf(route: Route | AppRoute, shapes: Shapes): Parameter[] {
  return [
    ...pathParameters(route, shapes),
    ...(route.query ? queryParameters(shapes.of(documentedQuery(route.query), 'input')) : []),
    ...(isIdempotent(route) ? [IDEMPOTENCY_KEY] : []),
    ...(route.ifMatch ? [IF_MATCH] : []),
    ...(route.waits ? [PREFER] : []),
    ...('role' in route && route.role !== 'public' && route.method !== 'GET' ? [CSRF_TOKEN] : []),
  ]
}

const documentedQuery = (query: NonNullable<Route['query']>) => ('of' in query ? query.documented : query)

const IDEMPOTENCY_KEY: Parameter = {
  name: 'Idempotency-Key',
  in: 'header',
  description:
    'A key chosen by the client. Within 24 hours, the same key and body return the stored response; 409 while the first request is in progress. Responses with 403, 404, 412, 422, 429 and 5xx are not stored.',
  schema: { type: 'string', minLength: 1, maxLength: 255 },
}

const IF_MATCH: Parameter = {
  name: 'If-Match',
  in: 'header',
  description: 'The ETag of the version that you have read. 412 if the version has changed.',
  schema: { type: 'string' },
}

const PREFER: Parameter = {
  name: 'Prefer',
  in: 'header',
  description: '`wait=N` waits at most N seconds (up to 30) for the end of the run.',
  schema: { type: 'string' },
}

const CSRF_TOKEN: Parameter = {
  name: 'X-CSRF-Token',
  in: 'header',
  required: true,
  description: 'The `csrf_token` of the session.',
  schema: { type: 'string' },
}

function pathParameters(route: Route | AppRoute, shapes: Shapes): Parameter[] {
  const known = (route.params ? shapes.of(route.params as z.ZodType, 'input').properties : {}) as Record<
    string,
    Json
  >
  return [...route.path.matchAll(/\{(\w+)\}/g)].map(([, name]) => {
    const { description = idNote(name!), ...schema } = known[name!] ?? { type: 'string' }
    return { name: name!, in: 'path', required: true, description: String(description), schema }
  })
}

/** The description of a path parameter: "The id of the workflow." for `workflow_id`. */
const idNote = (name: string) =>
  `The ${name.endsWith('_id') ? `id of the ${name.slice(0, -3).replaceAll('_', ' ')}` : name.replaceAll('_', ' ')}.`

function queryParameters(schema: Json): Parameter[] {
  const required = (schema.required as string[] | undefined) ?? []
  return Object.entries((schema.properties ?? {}) as Record<string, Json>).map(([name, property]) => {
    const { description, ...rest } = property
    return {
      name,
      in: 'query',
      ...(required.includes(name) ? { required: true as const } : {}),
      ...(typeof description === 'string' ? { description } : {}),
      ...styleOf(rest),
      schema: rest,
    }
  })
}

/**
 * Members of an object parameter are sent as `amount[gte]=5` if a plain value is possible too, else by their own names.
 */
function styleOf({ type, anyOf, $ref }: Json): Pick<Parameter, 'style' | 'explode'> {
  if (type === 'object') return { style: 'form', explode: true }
  const takesObject =
    $ref !== undefined ||
    (Array.isArray(anyOf) && anyOf.some((one: Json) => '$ref' in one || one.type === 'object'))
  return takesObject ? { style: 'deepObject', explode: true } : {}
}

/**
 * Moves parameters that several operations share to the document's components. A component has the name of its
 * parameter, with the tag as prefix if several parameters have that name: `Contacts_stage`.
 *
 * @returns the components; the operations refer to them.
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
    // A second parameter with the same tag and name stays in its operation.
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
