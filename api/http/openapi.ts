import { z } from 'zod'
import { MAX_BODY } from './body.ts'
import { envelopeSchema, errorResponses, responseHeaders } from './openapi-parts.ts'
import { RECEIVER_PATH, receiverOperation } from './openapi-receiver.ts'
import type { AppRoute, Route } from './route.ts'

type Json = Record<string, unknown>

/** The parts of an OpenAPI document that the reference page reads. */
export interface OpenApi {
  openapi: '3.1.0'
  info: { title: string; version: string; description: string }
  servers: { url: string }[]
  tags: { name: string }[]
  paths: Record<string, Record<string, Operation>>
  components: { securitySchemes: Json; schemas: Json; responses: Json; headers: Json }
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
  parameters: Parameter[]
  requestBody?: { required: boolean; content: Json }
  responses: Record<string, Json>
}

interface Parameter {
  name: string
  in: 'path' | 'query' | 'header'
  required: boolean
  description?: string
  style?: string
  explode?: boolean
  schema: Json
}

/** The OpenAPI 3.1 document of the route tables: everything in it is what the gateway itself reads. */
export function openApi(v1: readonly Route[], app: readonly AppRoute[], url: string): OpenApi {
  const schemas: Json = { Error: envelopeSchema }
  const paths: OpenApi['paths'] = {}
  const add = (path: string, method: string, operation: Operation) => {
    paths[path] = { ...paths[path], [method.toLowerCase()]: operation }
  }
  for (const route of v1)
    add(`/v1${route.path}`, route.method, {
      ...describe(route, schemas, true),
      'x-scopes': scopesOf(route),
      security: [{ key: [] }],
    })
  for (const route of app)
    add(`/app${route.path}`, route.method, {
      ...describe(route, schemas, false),
      'x-role': route.role,
      security: route.role === 'public' ? [] : [{ session: [] }],
    })
  add(RECEIVER_PATH, 'POST', receiverOperation)
  const tags = Object.values(paths).flatMap((methods) =>
    Object.values(methods).flatMap((operation) => operation.tags),
  )
  return {
    openapi: '3.1.0',
    info: {
      title: 'agx',
      version: '1',
      description:
        'Business records and durable workflows. /v1 takes an API key; /app, for the settings, a session.',
    },
    servers: [{ url }],
    tags: [...new Set(tags)].map((name) => ({ name })),
    paths,
    components: {
      securitySchemes: {
        key: { type: 'http', scheme: 'bearer', description: 'An API key: agx_…' },
        webhook: {
          type: 'apiKey',
          in: 'header',
          name: 'X-Webhook-Secret',
          description: 'The secret of one incoming webhook.',
        },
        session: {
          type: 'apiKey',
          in: 'cookie',
          name: 'agx_session',
          description: 'POST /app/session sets it. Writes send its csrf_token as X-CSRF-Token too.',
        },
      },
      schemas,
      responses: errorResponses,
      headers: responseHeaders,
    },
  }
}

type Described = Omit<Operation, 'security'>

function describe(route: Route | AppRoute, schemas: Json, limited: boolean): Described {
  const writes = route.method !== 'GET'
  const statuses = ['400', '401', '403', '404', '422', '429', '500', '503']
  if (writes) statuses.push('409', '413', '415')
  // It is not made yet.
  else if ('file' in route.response) statuses.push('409')
  if (route.ifMatch) statuses.push('412')
  const schema = (source: z.ZodType, io: 'input' | 'output') => jsonSchema(source, io, route.id, schemas)
  const { response } = route
  return {
    operationId: route.id,
    tags: [route.tag],
    summary: route.summary,
    ...(route.description ? { description: route.description } : {}),
    parameters: [
      ...pathParameters(route, schema),
      ...(route.query ? queryParameters(schema(route.query, 'input')) : []),
      ...((route.idempotent ?? (writes && !route.accepts)) ? [IDEMPOTENCY_KEY] : []),
      ...(route.ifMatch ? [IF_MATCH] : []),
      ...(!limited && writes && (route as AppRoute).role !== 'public' ? [CSRF_TOKEN] : []),
    ],
    ...(route.body ? { requestBody: requestBody(route, schema(route.body, 'input')) } : {}),
    ...(route.accepts ? { requestBody: fileBody(route.accepts, route.bodyLimit) } : {}),
    responses: {
      [response.status]: {
        description: response.description ?? 'Done',
        headers: { ...headersOf(limited), ...(route.etag ? ETAG : {}) },
        content:
          'file' in response
            ? { [response.file]: { schema: FILE } }
            : { 'application/json': { schema: schema(response.schema, 'output') } },
      },
      ...Object.fromEntries(
        statuses.sort().map((code) => [code, { $ref: `#/components/responses/${code}` }]),
      ),
    },
  }
}

const IDEMPOTENCY_KEY: Parameter = {
  name: 'Idempotency-Key',
  in: 'header',
  required: false,
  description: 'The same key and body within 24 hours are answered as the first time, and done once.',
  schema: { type: 'string', minLength: 1, maxLength: 255 },
}

const IF_MATCH: Parameter = {
  name: 'If-Match',
  in: 'header',
  required: false,
  description: 'The ETag that was read: another version is answered 412.',
  schema: { type: 'string' },
}

const ETAG: Json = { ETag: { description: 'The version, in quotes', schema: { type: 'string' } } }

const CSRF_TOKEN: Parameter = {
  name: 'X-CSRF-Token',
  in: 'header',
  required: true,
  description: 'The csrf_token of the session.',
  schema: { type: 'string' },
}

function pathParameters(
  route: Route | AppRoute,
  schema: (source: z.ZodType, io: 'input') => Json,
): Parameter[] {
  const known = (route.params ? schema(route.params, 'input').properties : {}) as Record<string, Json>
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
      ...(takesObject(rest) ? { style: 'deepObject', explode: true } : {}),
      schema: rest,
    }
  })
}

/** Its members are then sent in brackets: `amount[gte]=5`. */
const takesObject = ({ anyOf }: Json): boolean =>
  Array.isArray(anyOf) && anyOf.some((one: Json) => '$ref' in one || one.type === 'object')

function requestBody(route: Route | AppRoute, schema: Json): { required: boolean; content: Json } {
  const limit = route.bodyLimit ?? MAX_BODY
  const example = route.example === undefined ? {} : { example: route.example }
  return {
    required: !route.body!.safeParse(undefined).success,
    content: { 'application/json': { schema: { ...schema, 'x-max-bytes': limit }, ...example } },
  }
}

const FILE: Json = { type: 'string', contentMediaType: 'text/csv' }

const fileBody = (type: string, limit = MAX_BODY) => ({
  required: true,
  content: { [type]: { schema: { ...FILE, 'x-max-bytes': limit } } },
})

const headersOf = (limited: boolean) =>
  Object.fromEntries(
    Object.keys(responseHeaders)
      .filter((name) => limited || name === 'X-Request-Id')
      .map((name) => [name, { $ref: `#/components/headers/${name}` }]),
  )

/** A scope that depends on the path is named by its parameter: `{target}:read`. */
function scopesOf(route: Route): string[] {
  if (typeof route.scope === 'object' && !Array.isArray(route.scope))
    return [`{entity}:${route.scope.ofRecords}`]
  if (typeof route.scope !== 'function') return [route.scope].flat().filter((scope) => scope !== 'any')
  const names = [...route.path.matchAll(/\{(\w+)\}/g)].map(([, name]) => name!)
  return [...route.scope(Object.fromEntries(names.map((name) => [name, `{${name}}`])))]
}

/** JSON Schema as OpenAPI wants it: shared definitions move to the document's components. */
function jsonSchema(source: z.ZodType, io: 'input' | 'output', operation: string, schemas: Json): Json {
  const {
    $schema: _,
    $defs,
    ...schema
  } = z.toJSONSchema(source, {
    io,
    unrepresentable: 'any',
    override({ zodSchema, jsonSchema }) {
      if (zodSchema._zod.def.type === 'date')
        Object.assign(jsonSchema, { type: 'string', format: 'date-time' })
      // The format says it; the pattern behind it is hundreds of characters.
      if (jsonSchema.format) delete jsonSchema.pattern
    },
  }) as Json
  const rename = (name: string) => (name.startsWith('__') ? `${operation}_${io}${name}` : name)
  const move = (part: unknown) =>
    JSON.parse(
      JSON.stringify(part).replace(
        /"\$ref":"#\/\$defs\/([^"]+)"/g,
        (_ref, name: string) => `"$ref":"#/components/schemas/${rename(name)}"`,
      ),
    ) as Json
  for (const [name, definition] of Object.entries(($defs ?? {}) as Json))
    schemas[rename(name)] = move(definition)
  const moved = move(schema)
  if (!JSON.stringify(moved).includes('"$ref":"#"')) return moved
  // A schema that contains itself needs a name.
  const name = `${operation}_${io}`
  schemas[name] = JSON.parse(
    JSON.stringify(moved).replaceAll('"$ref":"#"', `"$ref":"#/components/schemas/${name}"`),
  )
  return { $ref: `#/components/schemas/${name}` }
}
