import { BINARY } from '../../workflows/shared/files.ts'
import { createTurns } from '../../workflows/shared/turns.ts'
import { APPROVAL_PATH, approvalOperations, approvalResponses } from '../approvals/openapi.ts'
import { MCP_PATH, mcpOperation, mcpShapes } from '../mcp/openapi.ts'
import { MAX_BODY } from './body.ts'
import { errorResponse, errorResponses, errorShapes } from './openapi-errors.ts'
import { Examples } from './openapi-examples.ts'
import { type Parameter, parametersOf, shareParameters } from './openapi-parameters.ts'
import { DESCRIPTION, responseHeaders, securitySchemes } from './openapi-parts.ts'
import { challengeOperation, RECEIVER_PATH, receiverOperation, receiverShapes } from './openapi-receiver.ts'
import { rolesSection } from './openapi-roles.ts'
import { type Json, type Reference, Shapes } from './openapi-schemas.ts'
import { describeTag, groupTags } from './openapi-tags.ts'
import { type AppRoute, isIdempotent, type Route, type RowScopes } from './route.ts'
import { type Accepted, ANY } from './upload.ts'

export interface OpenApi {
  openapi: '3.1.0'
  info: { title: string; version: string; description: string; license: object }
  servers: { url: string }[]
  tags: { name: string; description: string }[]
  'x-tagGroups': { name: string; tags: string[] }[]
  paths: Record<string, Record<string, Operation>>
  components: {
    securitySchemes: Json
    schemas: Json
    parameters: Record<string, Parameter>
    responses: Json
    headers: Json
    examples: Json
  }
}

export interface Operation {
  operationId: string
  tags: string[]
  summary: string
  description?: string
  /** The scopes that the key needs; `{entity}` stands for the path parameter. */
  'x-scopes'?: string[]
  /** The least role that the session needs. */
  'x-role'?: string
  security: Json[]
  /** Shared parameters are references. */
  parameters: (Parameter | Reference)[]
  requestBody?: { description?: string; required: boolean; content: Json }
  responses: Record<string, Json>
}

/**
 * The OpenAPI 3.1 document of the route tables, which the gateway reads too. It takes 0.4 s of computation, so other
 * requests have their turns between the operations.
 */
export async function openApi(v1: readonly Route[], app: readonly AppRoute[], url: string): Promise<OpenApi> {
  const turn = createTurns()
  const shapes = new Shapes()
  const examples = new Examples()
  const paths: OpenApi['paths'] = {}
  const add = (path: string, method: string, operation: Operation) => {
    paths[path] = { ...paths[path], [method.toLowerCase()]: operation }
  }
  for (const route of v1) {
    await turn()
    const scopes = scopesOf(route)
    add(`/v1${route.path}`, route.method, {
      ...describe(route, { shapes, examples, needs: scopesNote(scopes, route.rowScopes) }),
      'x-scopes': scopes,
      security: [{ apiKey: [] }],
    })
  }
  for (const route of app) {
    await turn()
    add(`/app${route.path}`, route.method, {
      ...describe(route, { shapes, examples, needs: roleNote(route) }),
      'x-role': route.role,
      security: route.role === 'public' ? [] : [{ session: [] }],
    })
  }
  // Copies: parameters that operations share are replaced in each document.
  add(RECEIVER_PATH, 'POST', { ...receiverOperation })
  add(RECEIVER_PATH, 'GET', { ...challengeOperation })
  add(MCP_PATH, 'POST', mcpOperation)
  for (const [method, operation] of Object.entries(approvalOperations(shapes, examples)))
    add(APPROVAL_PATH, method, operation)
  const operations = Object.values(paths).flatMap((methods) => Object.values(methods))
  const parameters = shareParameters(operations)
  const names = [...new Set(operations.flatMap(({ tags }) => tags))]
  const { document, schemas } = shapes.finish({ paths, parameters })
  return {
    openapi: '3.1.0',
    info: {
      title: 'agx API',
      version: '1',
      description: `${DESCRIPTION}\n\n${rolesSection(app)}`,
      license: { name: 'Apache-2.0', identifier: 'Apache-2.0' },
    },
    servers: [{ url }],
    tags: names.map((name) => ({ name, description: describeTag(name) })),
    'x-tagGroups': groupTags(names),
    paths: document.paths,
    components: {
      securitySchemes,
      schemas: { ...schemas, ...errorShapes, ...receiverShapes, ...mcpShapes },
      parameters: document.parameters,
      responses: { ...errorResponses, ...approvalResponses },
      headers: responseHeaders,
      examples: examples.components,
    },
  }
}

interface Parts {
  shapes: Shapes
  examples: Examples
  /** The required scopes or role. */
  needs: string
}

function describe(route: Route | AppRoute, { shapes, examples, needs }: Parts): Omit<Operation, 'security'> {
  const { id, exampleOf: exampled = id, response } = route
  const name = `${id[0]!.toUpperCase()}${id.slice(1)}`
  return {
    operationId: id,
    tags: [route.tag],
    summary: route.summary,
    description: [route.description, needs].filter(Boolean).join('\n\n'),
    parameters: parametersOf(route, shapes),
    ...(route.body ? { requestBody: requestBody(route, shapes.body(route.body, `${name}Request`)) } : {}),
    ...(route.accepts ? { requestBody: fileBody(route.accepts, route.bodyLimit) } : {}),
    responses: {
      [response.status]: {
        description: response.description ?? (response.status === 201 ? 'Created.' : 'Success.'),
        headers: headersOf(route),
        content:
          'file' in response
            ? {
                [response.file]: {
                  schema:
                    'schema' in response
                      ? shapes.answer(response.schema, `${name}Response`)
                      : fileOf(response.file),
                  ...examples.of(exampled),
                },
              }
            : 'stream' in response
              ? { [response.stream]: { schema: { type: 'string' }, ...examples.of(exampled) } }
              : {
                  'application/json': {
                    schema: shapes.answer(response.schema, `${name}Response`),
                    ...examples.of(exampled),
                  },
                  ...(response.markdown
                    ? { 'text/markdown': { schema: { type: 'string' }, example: '# A title' } }
                    : {}),
                },
      },
      ...('preview' in response && response.preview
        ? {
            200: {
              description: 'A preview: nothing has happened.',
              headers: headersOf(route),
              content: {
                'application/json': {
                  schema: shapes.answer(response.preview, `${name}Preview`),
                  ...examples.of(`${exampled}Preview`),
                },
              },
            },
          }
        : {}),
      ...Object.fromEntries(errorsOf(route).map((status) => [status, errorResponse(status)])),
    },
  }
}

/** The error statuses of every operation, and those that follow from the properties of this one. */
function errorsOf(route: Route | AppRoute): number[] {
  const statuses = [400, 401, 403, 404, 422, 429, 431, 500, 503]
  const writes = route.method !== 'GET'
  if (writes) statuses.push(409, 413, 415)
  // 409 until the file is complete.
  else if ('file' in route.response) statuses.push(409)
  if (route.gone) statuses.push(410)
  if (route.ifMatch) statuses.push(412)
  return statuses.sort()
}

function requestBody(route: Route | AppRoute, schema: Json): { required: boolean; content: Json } {
  const example = route.example === undefined ? {} : { example: route.example }
  return {
    required: !route.body!.safeParse(undefined).success,
    content: { 'application/json': { schema, 'x-max-bytes': route.bodyLimit ?? MAX_BODY, ...example } },
  }
}

const fileOf = (type: Accepted): Json =>
  type === ANY ? { type: 'string', format: 'binary' } : { type: 'string', contentMediaType: type }

const fileBody = (type: Accepted, limit = MAX_BODY) => ({
  required: true,
  content: {
    // Generators of clients know no body of any type.
    [type === ANY ? BINARY : type]: {
      schema: fileOf(type),
      'x-max-bytes': limit,
      ...(type === 'text/csv' && { example: 'email,first_name\nann@example.com,Ann\nalan@,Alan\n' }),
    },
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

/** A scope that depends on the path contains its parameter: `{target}:read`. */
function scopesOf(route: Route): string[] {
  if (typeof route.scope === 'object' && !Array.isArray(route.scope))
    return [`{entity}:${route.scope.ofRecords}`]
  if (typeof route.scope !== 'function') return [route.scope].flat().filter((scope) => scope !== 'any')
  const names = [...route.path.matchAll(/\{(\w+)\}/g)].map(([, name]) => name!)
  return [...route.scope(Object.fromEntries(names.map((name) => [name, `{${name}}`])))]
}

function scopesNote(scopes: string[], rowScopes?: RowScopes): string {
  if (scopes.length === 0) return 'Any API key.'
  const names = [...scopes.map((scope) => `\`${scope}\``), ...(rowScopes ? [rowScopes.description] : [])]
  return `Scope${names.length > 1 ? 's' : ''}: ${names.join(', ')}.`
}

const roleNote = ({ role }: AppRoute) => (role === 'public' ? '' : `Role: \`${role}\`.`)
