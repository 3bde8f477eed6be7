import assert from 'node:assert/strict'
import { z } from 'zod'
import { appRoutes } from '../../api/app/route-table.ts'
import { type OpenApi, type Operation, openApi } from '../../api/http/openapi.ts'
import { Router } from '../../api/http/router.ts'
import { routes } from '../../api/v1/route-table.ts'
import type { Answer } from './answer.ts'

type Json = Record<string, unknown>

const document = await openApi(routes, appRoutes, '/')
const router = new Router<Operation>()
for (const [path, methods] of Object.entries(document.paths))
  for (const [method, operation] of Object.entries(methods)) router.add(method.toUpperCase(), path, operation)

const checkers = new Map<string, z.ZodType>()

/**
 * Checks an answer of the API against the OpenAPI document. Throws with the operation's name if the status, the content
 * type or the body differs, or if the body has an undeclared member. Paths without an operation pass.
 */
export function assertDeclared(method: string, path: string, { status, headers, body }: Answer): void {
  const { pathname, searchParams } = new URL(path, 'http://api')
  // The operations of /v1 for sessions.
  const match = router.match(method, pathname.replace(/^\/app(?=\/v1\/)/, ''))
  if (!match?.found) return
  const { operationId, parameters, responses } = match.value
  const what = `${operationId} answers ${status}`
  // Only a workflow answers what it wants.
  const isOfWorkflow = operationId === 'receiveWebhook' && headers.has('content-security-policy')
  const response = resolve(
    responses[status] ?? (isOfWorkflow ? responses[`${String(status)[0]}XX`] : undefined),
  )
  assert.ok(response, `${what}, which is not declared: ${JSON.stringify(body)}`)
  if (status === 204) return
  const type = headers.get('content-type')?.split(';')[0] ?? ''
  const contents = response.content as Record<string, { schema: Json }>
  const content = contents[type] ?? contents['*/*']
  assert.ok(content, `${what} with ${type}, which is not declared`)
  if (type !== 'application/json' || isOfWorkflow) return
  const takesFields = parameters.some((one) => resolve(one)!.name === 'fields')
  const isWhole = takesFields && !searchParams.has('fields') && status === 200
  const name = `${operationId} ${status} ${isWhole}`
  const checker = checkers.get(name) ?? toChecker(isWhole ? withAllFields(content.schema) : content.schema)
  checkers.set(name, checker)
  const issues = checker.safeParse(body).error?.issues ?? []
  assert.deepEqual(issues, [], `${what} with what is not declared: ${JSON.stringify(body)}`)
}

function resolve(part: unknown): Json | undefined {
  const { $ref } = (part ?? {}) as { $ref?: string }
  if (!$ref) return part as Json | undefined
  return $ref
    .slice(2)
    .split('/')
    .reduce<unknown>((whole, step) => (whole as Json)[step], document) as Json
}

/** Without `fields` a list returns every field; these only if the request or the list asks for them. */
const ASKED_FOR = ['expanded', 'deleted_at']

/** `association` is only in a list of associated records. */
function withAllFields(schema: Json): Json {
  const { properties, ...list } = resolve(schema) as { properties: Record<string, { items: Json }> }
  const { items } = properties.data!
  const whole = (item: Json, isAssociated: boolean) => {
    const record = resolve(item) as { properties: Json }
    const names = Object.keys(record.properties).filter((name) => !ASKED_FOR.includes(name))
    return { ...record, required: isAssociated ? names : names.filter((name) => name !== 'association') }
  }
  const item = items.anyOf
    ? { anyOf: (items.anyOf as Json[]).map((one) => whole(one, true)) }
    : whole(items, false)
  return { ...list, properties: { ...properties, data: { type: 'array', items: item } } }
}

const definitions = closed({
  ...document.components.schemas,
  ReceiverWorkflowAnswer: { not: {} },
}) as OpenApi['components']['schemas']

function toChecker(schema: Json): z.ZodType {
  const checked = closed(schema) as Json
  return z.fromJSONSchema({ ...checked, $defs: definitionsOf(checked) } as z.core.JSONSchema.JSONSchema)
}

/** The definitions that a schema refers to: Zod copies all that it gets, which took 6 % of the suite's CPU time. */
function definitionsOf(schema: unknown, found: Record<string, unknown> = {}): Record<string, unknown> {
  for (const [, name = ''] of JSON.stringify(schema).matchAll(/"#\/\$defs\/([^"]+)"/g)) {
    if (Object.hasOwn(found, name)) continue
    found[name] = definitions[name]
    definitionsOf(found[name], found)
  }
  return found
}

/**
 * Clients must ignore unknown members, but the API itself must declare all of its own. Descriptions are left out: Zod
 * would copy a schema for each.
 */
function closed(part: unknown): unknown {
  if (Array.isArray(part)) return part.map(closed)
  if (typeof part !== 'object' || part === null) return part
  const checked = Object.entries(part).filter(
    ([name, value]) => name !== 'description' || typeof value !== 'string',
  )
  const copy: Json = Object.fromEntries(checked.map(([name, value]) => [name, closed(value)]))
  if (typeof copy.$ref === 'string') copy.$ref = copy.$ref.replace('#/components/schemas/', '#/$defs/')
  if (copy.type === 'object' && copy.properties) copy.additionalProperties ??= false
  return copy
}
