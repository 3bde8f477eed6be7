import assert from 'node:assert/strict'
import { randomUUID } from 'node:crypto'
import { z } from 'zod'
import type { Route } from '../../../api/http/route.ts'
import { Router } from '../../../api/http/router.ts'
import { SCOPES, type Scope } from '../../../api/http/scopes.ts'
import { toRequest } from '../../../api/mcp/arguments.ts'
import { describeTools } from '../../../api/mcp/describe-tools.ts'
import { TOOL_NAMES } from '../../../api/mcp/grouping.ts'
import { type Operation, toOperations, visibleTo } from '../../../api/mcp/operations.ts'
import { routes } from '../../../api/v1/route-table.ts'
import { kindNames } from '../../../db/model/records/kinds/index.ts'

/** Clients put the list into the context of their model. */
const MAX_LIST = 40 * 1024
const MAX_TOOLS = 20

const nameOf = ({ method, path }: Route) => `${method} ${path}`

describe('the operations of the tools', () => {
  const { operations, excluded } = toOperations(routes)
  const router = new Router<Route>()
  for (const route of routes) router.add(route.method, route.path, route)

  it('are all operations of /v1, but for files and streams', () => {
    const reached = new Set(operations.map(({ route }) => route))
    const missing = routes.filter((route) => !reached.has(route)).map(nameOf)
    assert.deepEqual(
      missing,
      excluded.map(({ route }) => nameOf(route)),
      'an operation is neither reached by a tool nor excluded with a reason: see api/mcp/grouping.ts',
    )
    for (const { route, reason } of excluded) {
      assert.match(reason, /over HTTP|poll with/)
      assert.ok(route.accepts || 'file' in route.response || 'stream' in route.response, nameOf(route))
    }
  })

  it('are told apart by tool, kind and action', () => {
    const names = operations.map(({ tool, kind, action }) => `${tool} ${kind ?? ''} ${action}`)
    const duplicates = names.filter((name, i) => names.indexOf(name) !== i)
    assert.deepEqual(duplicates, [], 'give one of them a rule in api/mcp/grouping.ts')
  })

  it('are reached with all their parameters', () => {
    for (const operation of operations) {
      const { route, pathArguments, query, body } = operation
      const given = Object.fromEntries(
        Object.keys(pathArguments).map((name) => [name, exampleOf(pathArguments[name]!)]),
      )
      const request = toRequest(operation, given)
      const match = router.match(request.method, request.path.slice('/v1'.length))
      assert.ok(match?.found, nameOf(route))
      assert.equal(nameOf(match.value), nameOf(route))
      if (route.method !== 'GET') continue
      assert.deepEqual(
        query.filter((name) => body.includes(name)),
        [],
        nameOf(route),
      )
    }
  })

  it('take a new resource without a change here', () => {
    const made = ({ tool, kind, action }: Operation) => [tool, kind, action].filter(Boolean).join(' ')
    const added = (method: Route['method'], path: string, more: Partial<Route> = {}): Route =>
      ({
        ...routes.find(({ id }) => id === 'getMe')!,
        method,
        path,
        id: `${method.toLowerCase()}${path.replace(/\W+(\w)/g, (_, letter) => letter.toUpperCase()).replace(/\W/g, '')}`,
        scope: 'contacts:write',
        ...more,
      }) as Route
    const query = z.object({ limit: z.int().optional() })
    const more = toOperations([
      ...routes,
      added('GET', '/gadgets', { query }),
      added('POST', '/gadgets'),
      added('PATCH', '/gadgets/{gadget_id}'),
      added('DELETE', '/gadgets/{gadget_id}'),
      added('GET', '/objects/{entity}/{entity_id}/visits', { query }),
      added('POST', '/objects/{entity}/{entity_id}/files', { accepts: 'text/csv' }),
      added('GET', '/workflows/{workflow_id}/versions/{version}/diff'),
      added('POST', '/webhooks/outgoing/{webhook_id}/suppressions'),
      added('DELETE', '/webhooks/outgoing/{webhook_id}/suppressions/{address}'),
    ])
    const before = new Set(operations.map(made))
    const otherKinds = kindNames.filter((kind) => kind !== 'contacts')
    assert.deepEqual(
      more.operations
        .map(made)
        .filter((name) => !before.has(name) && !otherKinds.some((kind) => name.includes(kind))),
      [
        'search_records gadgets list',
        'create_record gadgets create',
        'update_record gadgets update',
        'delete_record gadgets delete',
        'search_records contacts visits',
        'list_workflows get_workflows_workflow_id_versions_version_diff',
        'create_record webhooks_outgoing_suppressions create',
        'delete_record webhooks_outgoing_suppressions delete',
      ],
    )
    assert.equal(more.excluded.length, excluded.length + 1)
  })
})

const NAMES: Record<string, string> = { entity: 'contacts', target: 'companies', name: 'tier' }
const exampleOf = (parameter: string) => NAMES[parameter] ?? randomUUID()

describe('the list of tools', () => {
  const { operations } = toOperations(routes)
  const toolsFor = (...scopes: Scope[]) => describeTools(visibleTo(new Set(scopes), operations))
  const kindsOf = (name: string, ...scopes: Scope[]) => {
    const { properties } = toolsFor(...scopes).find((tool) => tool.name === name)!.inputSchema
    return (properties!.kind as { enum: string[] }).enum
  }

  it('has at most 20 tools and 40 KB for a key with all scopes', () => {
    const tools = toolsFor(...SCOPES)
    assert.deepEqual(
      tools.map(({ name }) => name),
      [...TOOL_NAMES],
    )
    assert.ok(tools.length <= MAX_TOOLS)
    const bytes = Buffer.byteLength(JSON.stringify(tools))
    assert.ok(bytes < MAX_LIST, `${bytes} bytes: shorten the descriptions in api/mcp/describe-tools.ts`)
  })

  it('says of each tool when to use it, with an example, and whether it writes', () => {
    for (const { name, title, description, inputSchema, outputSchema, annotations } of toolsFor(...SCOPES)) {
      assert.ok(title && description && outputSchema, name)
      const [, example] = description.split('\nExample: ')
      const given = JSON.parse(example!)
      for (const argument of Object.keys(given))
        assert.ok(argument in inputSchema.properties!, `${name}: the example has ${argument}`)
      for (const required of inputSchema.required ?? []) assert.ok(required in given, `${name}: ${required}`)
      assert.equal(annotations!.readOnlyHint, /^(search|get|describe|validate|list|query)_/.test(name), name)
    }
    const hints = (name: string) => toolsFor(...SCOPES).find((tool) => tool.name === name)!.annotations!
    assert.equal(hints('delete_record').destructiveHint, true)
    assert.equal(hints('import_template').destructiveHint, false)
    assert.equal(hints('run_workflow').openWorldHint, true)
    assert.equal(hints('search_records').openWorldHint, false)
  })

  it('shows a key the tools and kinds that its scopes allow', () => {
    const names = (...scopes: Scope[]) => toolsFor(...scopes).map(({ name }) => name)
    const reader = names('contacts:read')
    for (const name of ['search_records', 'get_record', 'describe_records'])
      assert.ok(reader.includes(name), name)
    for (const name of ['delete_record', 'link_records', 'run_workflow', 'query_analytics'])
      assert.ok(!reader.includes(name), name)
    assert.ok(!kindsOf('create_record', 'contacts:read').includes('contacts'))
    assert.ok(kindsOf('create_record', 'contacts:read').includes('exports'))
    assert.deepEqual(names('analytics:read'), [
      'search_records',
      'get_record',
      'describe_records',
      'query_analytics',
    ])
    assert.ok(!names('workflows:read').includes('run_workflow'))
    assert.ok(!names('workflows:author').includes('test_node'))
    const records = (name: string, ...scopes: Scope[]) =>
      kindsOf(name, ...scopes).filter((kind) => (kindNames as readonly string[]).includes(kind))
    assert.deepEqual(records('get_record', 'contacts:read', 'deals:read'), ['contacts', 'deals'])
    assert.deepEqual(records('delete_record', 'contacts:read', 'deals:write'), ['deals'])
    assert.ok(!JSON.stringify(toolsFor('contacts:write')).includes('webhooks_'))
    assert.deepEqual(kindsOf('search_records'), ['users'])
  })
})
