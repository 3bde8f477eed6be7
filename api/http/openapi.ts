import { MAX_BODY } from './body.ts'
import { errorResponses, errorShapes } from './openapi-errors.ts'
import { withExamples } from './openapi-examples.ts'
import { type Parameter, parametersOf, shareParameters } from './openapi-parameters.ts'
import { DESCRIPTION, responseHeaders, securitySchemes } from './openapi-parts.ts'
import { RECEIVER_PATH, receiverOperation, receiverShapes } from './openapi-receiver.ts'
import { type Json, type Reference, Shapes } from './openapi-schemas.ts'
import { describeTag } from './openapi-tags.ts'
import { type AppRoute, isIdempotent, type Route } from './route.ts'

/** The parts of an OpenAPI document that the reference page reads. */
export interface OpenApi {
  openapi: '3.1.0'
  info: { title: string; version: string; description: string }
  servers: { url: string }[]
  tags: { name: string; description: string }[]
  paths: Record<string, Record<string, Operation>>
  components: {
    securitySchemes: Json
    schemas: Json
    parameters: Record<string, Parameter>
    responses: Json
    headers: Json
  }
}

export interface Operation {
  operationId: string
  tags: string[]
  summary: string
  description?: string
  /** What the key needs; a list that depends on the path is said in words. */
  'x-scopes'?: string[]
  'x-role'?: string
  security: Json[]
  /** Those that others have, too, are references. */
  parameters: (Parameter | Reference)[]
  requestBody?: { description?: string; required: boolean; content: Json }
  responses: Record<string, Json>
}

/** The OpenAPI 3.1 document of the route tables: everything in it is what the gateway itself reads. */
export function openApi(v1: readonly Route[], app: readonly AppRoute[], url: string): OpenApi {
  const shapes = new Shapes()
  const paths: OpenApi['paths'] = {}
  const add = (path: string, method: string, operation: Operation) => {
    paths[path] = { ...paths[path], [method.toLowerCase()]: operation }
  }
  for (const route of v1)
    add(`/v1${route.path}`, route.method, {
      ...describe(route, shapes),
      'x-scopes': scopesOf(route),
      security: [{ key: [] }],
    })
  for (const route of app)
    add(`/app${route.path}`, route.method, {
      ...describe(route, shapes),
      'x-role': route.role,
      security: route.role === 'public' ? [] : [{ session: [] }],
    })
  add(RECEIVER_PATH, 'POST', receiverOperation)
  const operations = Object.values(paths).flatMap((methods) => Object.values(methods))
  return {
    openapi: '3.1.0',
    info: {
      title: 'agx',
      version: '1',
      description: DESCRIPTION,
    },
    servers: [{ url }],
    tags: [...new Set(operations.flatMap(({ tags }) => tags))].map((name) => ({
      name,
      description: describeTag(name),
    })),
    paths,
    components: {
      securitySchemes,
      schemas: {
        ...errorShapes,
        ...receiverShapes,
        ...withExamples(shapes.components, shapes.answers),
      },
      parameters: shareParameters(operations),
      responses: errorResponses,
      headers: responseHeaders,
    },
  }
}

function describe(route: Route | AppRoute, shapes: Shapes): Omit<Operation, 'security'> {
  const { response } = route
  const name = `${route.id[0]!.toUpperCase()}${route.id.slice(1)}`
  return {
    operationId: route.id,
    tags: [route.tag],
    summary: route.summary,
    ...(route.description ? { description: route.description } : {}),
    parameters: parametersOf(route, shapes),
    ...(route.body ? { requestBody: requestBody(route, shapes.body(route.body, `${name}Body`)) } : {}),
    ...(route.accepts ? { requestBody: fileBody(route.accepts, route.bodyLimit) } : {}),
    responses: {
      [response.status]: {
        description: response.description ?? 'Done',
        headers: headersOf(route),
        content:
          'file' in response
            ? { [response.file]: { schema: FILE } }
            : { 'application/json': { schema: shapes.answer(response.schema, `${name}Result`) } },
      },
      ...Object.fromEntries(
        errorsOf(route).map((status) => [status, { $ref: `#/components/responses/${status}` }]),
      ),
    },
  }
}

/** Those that the interface promises of every operation, and what else its nature brings with it. */
function errorsOf(route: Route | AppRoute): string[] {
  const statuses = ['400', '401', '403', '404', '422', '429', '500', '503']
  const writes = route.method !== 'GET'
  if (writes) statuses.push('409', '413', '415')
  // It is not made yet.
  else if ('file' in route.response) statuses.push('409')
  if (route.ifMatch) statuses.push('412')
  return statuses.sort()
}

function requestBody(route: Route | AppRoute, schema: Json): { required: boolean; content: Json } {
  const example = route.example === undefined ? {} : { example: route.example }
  return {
    required: !route.body!.safeParse(undefined).success,
    content: { 'application/json': { schema, 'x-max-bytes': route.bodyLimit ?? MAX_BODY, ...example } },
  }
}

const FILE: Json = { type: 'string', contentMediaType: 'text/csv' }

const fileBody = (type: string, limit = MAX_BODY) => ({
  required: true,
  content: {
    [type]: { schema: FILE, 'x-max-bytes': limit, example: 'email,first_name\nann@example.com,Ann\n' },
  },
})

function headersOf(route: Route | AppRoute): Json {
  const names = [
    'X-Request-Id',
    ...('role' in route ? [] : ['X-RateLimit-Limit', 'X-RateLimit-Remaining', 'X-RateLimit-Reset']),
    ...(route.etag ? ['ETag'] : []),
    ...(isIdempotent(route) ? ['Idempotency-Replayed'] : []),
    ...(route.waits ? ['Preference-Applied'] : []),
  ]
  return Object.fromEntries(names.map((name) => [name, { $ref: `#/components/headers/${name}` }]))
}

/** A scope that depends on the path is named by its parameter: `{target}:read`. */
function scopesOf(route: Route): string[] {
  if (typeof route.scope === 'object' && !Array.isArray(route.scope))
    return [`{entity}:${route.scope.ofRecords}`]
  if (typeof route.scope !== 'function') return [route.scope].flat().filter((scope) => scope !== 'any')
  const names = [...route.path.matchAll(/\{(\w+)\}/g)].map(([, name]) => name!)
  return [...route.scope(Object.fromEntries(names.map((name) => [name, `{${name}}`])))]
}
