import assert from 'node:assert/strict'
import { randomUUID } from 'node:crypto'
import type { Client, CompleteRequestParams } from '@modelcontextprotocol/client'
import { createKey } from '../../support/api.ts'
import { createOrganization } from '../../support/database.ts'
import { connectMcp, type Json, rawMcp } from '../../support/mcp.ts'
import { withApi } from '../../support/with-api.ts'

/** Calls a tool. Throws unless it succeeds. */
async function call(client: Client, name: string, given: Json): Promise<Json> {
  const { isError, content, structuredContent } = await client.callTool({ name, arguments: given })
  assert.ok(!isError, JSON.stringify(content))
  return structuredContent as Json
}

/** Calls a tool that must refuse. @returns the error of /v1. */
async function refused(client: Client, name: string, given: Json): Promise<Json> {
  const { isError, structuredContent } = await client.callTool({ name, arguments: given })
  assert.ok(isError, JSON.stringify(structuredContent))
  return structuredContent as Json
}

describe('the tools of the Model Context Protocol', () => {
  const suite = withApi()
  const connect = (key = suite.api.key) => connectMcp(suite.api.url, { key })

  for (const era of ['2026-07-28', '2025-11-25'] as const)
    it(`write, find, change and link records, with a client of ${era}`, async () => {
      const client = await connectMcp(suite.api.url, { era, key: suite.api.key })
      const name = `Ada ${era}`
      const { tools } = await client.listTools()
      assert.equal(tools.length, 20)
      const { id } = await call(client, 'create_record', {
        kind: 'contacts',
        fields: { first_name: name, tags: ['vip'], custom_fields: { tier: 'gold, silver' } },
      })
      const company = await call(client, 'create_record', { kind: 'companies', fields: { name } })
      await call(client, 'link_records', {
        entity: 'contacts',
        entity_id: id,
        target: 'companies',
        target_id: company.id,
        label: 'founder',
      })
      const found = await call(client, 'search_records', {
        kind: 'contacts',
        q: name,
        filters: {
          'tags[has]': 'vip',
          'custom_fields.tier[in]': ['gold, silver', 'bronze'],
          created_at: { gte: '2020-01-01' },
        },
        fields: ['first_name', 'company_id'],
        limit: 2,
      })
      assert.deepEqual(found.data, [{ object: 'contact', id, first_name: name, company_id: company.id }])
      const related = await call(client, 'search_records', {
        kind: 'contacts',
        related_to: { kind: 'companies', id: company.id },
      })
      assert.equal(related.data[0].association.label, 'founder')
      const updated = await call(client, 'update_record', {
        kind: 'contacts',
        id,
        fields: { last_name: 'King' },
        if_version: 2,
      })
      assert.equal(updated.last_name, 'King')
      assert.equal(updated.updated_by.type, 'key')
      const history = await call(client, 'search_records', { kind: 'contacts', action: 'history', id })
      assert.ok(history.data.length >= 3)
      await client.close()
    })

  it('refuse as /v1 does, with what to do next, as errors of the tool', async () => {
    const client = await connect()
    const misspelt = await refused(client, 'create_record', {
      kind: 'contacts',
      fields: { emial: 'a@example.com' },
    })
    const same = await suite.api.request('POST', '/v1/objects/contacts', { body: { emial: 'a@example.com' } })
    const { request_id: _, ...error } = misspelt.error
    const { request_id: __, ...expected } = same.body.error
    assert.deepEqual(error, expected)
    assert.deepEqual(misspelt.detail, same.body.detail)
    const answers: [name: string, given: Json, type: string, text: RegExp][] = [
      ['get_record', { kind: 'contacts', id: randomUUID() }, 'not_found', /contact/],
      ['get_record', { kind: 'contacts', id: '../deals' }, 'not_found', /contact/],
      ['get_record', { kind: 'contacts' }, 'validation_error', /id.*is required/],
      ['get_record', { kind: 'contacts', id: 5 }, 'validation_error', /id.*must be a string/],
      ['get_record', { kind: 'contact', id: 'x' }, 'validation_error', /kind.*one of .*contacts/],
      ['get_record', { id: 'x' }, 'validation_error', /kind.*is required/],
      [
        'update_record',
        { kind: 'contacts', action: 'explode' },
        'validation_error',
        /action.*one of batch, bulk, erase, merge, restore, reveal, revert, update/,
      ],
      ['create_record', { kind: 'contacts', fields: 'Ada' }, 'validation_error', /fields.*must be an object/],
      ['create_record', { kind: 'contacts', fields: { first_name: 'A\u0000' } }, 'validation_error', /NUL/],
      ['create_record', { kind: 'contacts', confirm: true }, 'validation_error', /confirm.*no effect/],
      ['search_records', { kind: 'contacts', filters: { shoe_size: 40 } }, 'validation_error', /shoe_size/],
      ['search_records', { kind: 'contacts', colour: 'red' }, 'validation_error', /colour/],
      [
        'search_records',
        { kind: 'contacts', related_to: 'Ada' },
        'validation_error',
        /related_to.*must be an object/,
      ],
      [
        'search_records',
        { kind: 'contacts', idempotency_key: 'a' },
        'validation_error',
        /idempotency_key.*no effect/,
      ],
      ['search_records', { kind: 'contacts', cursor: 'x' }, 'invalid_request', /cursor/],
      ['create_record', { kind: 'contacts', idempotency_key: 'a\nb' }, 'validation_error', /idempotency_key/],
      ['run_workflow', { name: 'none', wait_seconds: 900 }, 'validation_error', /wait_seconds/],
      ['list_workflows', { action: 'nothing' }, 'validation_error', /action.*get_workflow/],
      ['search_templates', { template_id: 'none' }, 'not_found', /template/],
      ['get_run', { run_id: '\ud800' }, 'validation_error', /run_id.*lone surrogate/],
    ]
    for (const [name, given, type, text] of answers) {
      const body = await refused(client, name, given)
      assert.equal(body.error.type, type, JSON.stringify({ name, given, body }))
      assert.match(JSON.stringify(body), text, name)
    }
    await assert.rejects(client.callTool({ name: 'drop_table', arguments: {} }), /drop_table.*tools\/list/)
    await client.close()
  })

  it('do what the scopes of the key allow, and nothing else', async () => {
    const { key } = await createKey(suite.db, suite.api.organizationId, {
      scopes: ['contacts:read', 'tasks:write'],
    })
    const client = await connect(key)
    const { error } = await refused(client, 'create_record', {
      kind: 'contacts',
      fields: { first_name: 'Eve' },
    })
    assert.deepEqual(
      [error.type, error.message],
      ['insufficient_scope', 'the key lacks the scope contacts:write'],
    )
    const hidden = await refused(client, 'query_analytics', { metric: 'deals.won_value' })
    assert.equal(hidden.error.message, 'the key lacks the scope analytics:read')
    const task = await call(client, 'create_record', { kind: 'tasks', fields: { title: 'Call' } })
    const other = await refused(client, 'link_records', {
      entity: 'tasks',
      entity_id: task.id,
      target: 'contacts',
      target_id: randomUUID(),
    })
    assert.equal(other.error.message, 'the key lacks the scope contacts:write')
    const me = await call(client, 'describe_records', { action: 'get_me' })
    assert.deepEqual(me.scopes, ['contacts:read', 'tasks:write'])
    await client.close()
  })

  it('see the records of the own organization only', async () => {
    const client = await connect()
    const { id } = await call(client, 'create_record', { kind: 'contacts', fields: { first_name: 'Mine' } })
    const { key } = await createKey(suite.db, await createOrganization(suite.db))
    const theirs = await connect(key)
    const { error } = await refused(theirs, 'get_record', { kind: 'contacts', id })
    assert.equal(error.type, 'not_found')
    await Promise.all([client.close(), theirs.close()])
  })

  it('take effect once for one idempotency_key', async () => {
    const client = await connect()
    const given = { kind: 'contacts', fields: { first_name: 'Once' }, idempotency_key: randomUUID() }
    const first = await call(client, 'create_record', given)
    assert.deepEqual(await call(client, 'create_record', given), first)
    const { error } = await refused(client, 'create_record', { ...given, fields: { first_name: 'Twice' } })
    assert.equal(error.type, 'idempotency_conflict')
    await client.close()
  })

  it('describe the kinds, and the arguments of what is no record', async () => {
    const client = await connect()
    const kinds = await call(client, 'describe_records', {})
    assert.match(JSON.stringify(kinds.data), /"contacts"/)
    const deals = await call(client, 'describe_records', { kind: 'deals' })
    assert.match(JSON.stringify(deals), /expected_close_date/)
    const webhooks = await call(client, 'describe_records', { kind: 'webhooks_outgoing' })
    const create = webhooks.actions.find(({ tool }: Json) => tool === 'create_record')
    assert.match(JSON.stringify(create.fields), /"events"/)
    await client.close()
  })

  it('manage webhooks, imports and the knowledge base', async () => {
    const client = await connect()
    const webhook = await call(client, 'create_record', {
      kind: 'webhooks_incoming',
      fields: { name: 'Form' },
    })
    const off = await call(client, 'update_record', {
      kind: 'webhooks_incoming',
      id: webhook.id,
      action: 'deactivate',
    })
    assert.equal(off.status, 'Inactive')
    const logs = await call(client, 'search_records', {
      kind: 'webhooks_incoming_logs',
      webhook_id: webhook.id,
    })
    assert.deepEqual(logs.data, [])
    const field = await call(client, 'create_record', {
      kind: 'custom_fields',
      entity: 'deals',
      fields: { name: 'size', type: 'number' },
    })
    assert.equal(field.name, 'size')
    const collection = await call(client, 'add_knowledge', {
      action: 'create_knowledge_collection',
      name: 'Policies',
    })
    await call(client, 'add_knowledge', {
      collection_id: collection.id,
      title: 'Refunds',
      body: '# Refunds\nA refund is possible within 30 days.',
      format: 'markdown',
    })
    const { data } = await call(client, 'search_knowledge', { q: 'refund', limit: 3 })
    assert.match(JSON.stringify(data), /within 30 days/)
    const { data: metrics } = await call(client, 'query_analytics', { action: 'list_metrics' })
    assert.ok(metrics.length > 5)
    await client.close()
  })

  it('come with resources to attach, as far as the key may read them', async () => {
    const client = await connect()
    const { resources } = await client.listResources()
    const uris = resources.map(({ uri }) => uri)
    assert.ok(uris.includes('agx://guide') && uris.includes('agx://schemas/deals'), uris.join())
    const { resourceTemplates } = await client.listResourceTemplates()
    assert.equal(resourceTemplates.length, 7)
    const read = async (uri: string, from = client) => {
      const { contents } = await from.readResource({ uri })
      return (contents[0] as { text: string }).text
    }
    assert.match(await read('agx://guide'), /nodes/)
    assert.match(await read('agx://schemas/deals'), /expected_close_date/)
    const { body: workflow } = await suite.api.request('POST', '/v1/workflows', {
      body: { spec: 'name: Attached\nnodes: {wait: {type: delay, config: {for: 1s}}}\n' },
    })
    assert.match(await read(`agx://workflows/${workflow.workflow_id}`), /^name: Attached/)
    for (const uri of [
      'agx://workflows/none',
      `agx://runs/${randomUUID()}`,
      'agx://schemas/none',
      'file:///etc/passwd',
      'agx://guide/%ff',
    ])
      await assert.rejects(read(uri), /not found/i, uri)
    const { key } = await createKey(suite.db, suite.api.organizationId, { scopes: ['contacts:read'] })
    const other = await connect(key)
    assert.deepEqual(
      (await other.listResources()).resources.map(({ uri }) => uri),
      ['agx://schemas/contacts'],
    )
    await assert.rejects(read(`agx://workflows/${workflow.workflow_id}`, other), /not found/i)
    await Promise.all([client.close(), other.close()])
  })

  it('come with prompts for which the key has the tools', async () => {
    const client = await connect()
    const { prompts } = await client.listPrompts()
    assert.equal(prompts.length, 5)
    const { messages } = await client.getPrompt({
      name: 'build_workflow',
      arguments: { goal: 'greet new contacts' },
    })
    assert.match((messages[0]!.content as { text: string }).text, /greet new contacts/)
    await assert.rejects(client.getPrompt({ name: 'build_workflow' }), /goal is required/)
    await assert.rejects(client.getPrompt({ name: 'none' }), /no prompt none/)
    const { key } = await createKey(suite.db, suite.api.organizationId, { scopes: ['knowledge:read'] })
    const other = await connect(key)
    assert.deepEqual(
      (await other.listPrompts()).prompts.map(({ name }) => name),
      ['answer_from_knowledge'],
    )
    await Promise.all([client.close(), other.close()])
  })

  it('come with proposals for arguments, as far as the key may read them', async () => {
    const client = await connect()
    const proposals = async (ref: CompleteRequestParams['ref'], name: string, value: string, by = client) =>
      (await by.complete({ ref, argument: { name, value } })).completion.values
    const template = (uri: string) => ({ type: 'ref/resource' as const, uri })
    const spec = 'name: Greet newcomers\nnodes: {wait: {type: delay, config: {for: 1s}}}'
    const { body } = await suite.api.request('POST', '/v1/workflows', { body: { spec } })
    assert.equal(body.error, undefined, JSON.stringify(body))
    const workflows = template('agx://workflows/{workflow_id}')
    assert.deepEqual(await proposals(workflows, 'workflow_id', 'newcomers'), [body.workflow_id])
    assert.deepEqual(await proposals(workflows, 'workflow_id', 'no such name'), [])
    const types = await proposals(template('agx://node-types/{node_type}'), 'node_type', 'mail')
    assert.ok(types.includes('send_email'), types.join())
    assert.ok((await proposals(template('agx://node-types/{node_type}'), 'node_type', '')).length > 30)
    const templates = await proposals(template('agx://templates/{template_id}'), 'template_id', 'discount')
    assert.deepEqual(templates, ['discount-approval'])
    assert.deepEqual(await proposals(template('agx://guide/{topic}'), 'topic', 'loo'), ['loops'])
    assert.deepEqual(await proposals(template('agx://schemas/{kind}'), 'kind', 'c'), [
      'contacts',
      'companies',
      'consents',
    ])
    const prompt = { type: 'ref/prompt' as const, name: 'debug_run' }
    const { body: run } = await suite.api.request('POST', `/v1/workflows/${body.workflow_id}/run`, {
      body: { confirm: true },
    })
    assert.deepEqual(await proposals(prompt, 'run_id', run.run_id.slice(0, 8)), [run.run_id])
    assert.deepEqual(await proposals({ type: 'ref/prompt', name: 'build_workflow' }, 'goal', 'a'), [])
    for (const [ref, name] of [
      [prompt, 'goal'],
      [{ type: 'ref/prompt', name: 'none' }, 'a'],
      [template('agx://workflows/{id}'), 'id'],
      [template('file:///etc/passwd'), 'kind'],
    ] as const)
      await assert.rejects(proposals(ref, name, ''), /no such argument/)
    const { key } = await createKey(suite.db, suite.api.organizationId, { scopes: ['contacts:read'] })
    const other = await connect(key)
    assert.deepEqual(await proposals(template('agx://schemas/{kind}'), 'kind', '', other), ['contacts'])
    await assert.rejects(proposals(workflows, 'workflow_id', 'Greet', other), /no such argument/)
    await Promise.all([client.close(), other.close()])
  })

  it('count against the limits of the organization, in which /v1 counts too', async () => {
    const organization = await createOrganization(suite.db, { limits: { requests_per_minute: 4 } })
    const { key } = await createKey(suite.db, organization)
    const ask = (path: string, body?: object) =>
      suite.api.request(body ? 'POST' : 'GET', path, { key, ...(body && { ...rawMcp('tools/list'), body }) })
    const { body: list } = rawMcp('tools/list')
    const answers = [
      await ask('/mcp', list),
      await ask('/v1/me'),
      await ask('/mcp', list),
      await ask('/v1/me'),
    ]
    const left = answers.map(({ headers }) => Number(headers.get('x-ratelimit-remaining')))
    assert.deepEqual(left, [3, 2, 1, 0])
    const { status, headers, body } = await ask('/mcp', list)
    assert.equal(status, 429)
    assert.ok(Number(headers.get('retry-after')) > 0)
    assert.equal(body.error.data.type, 'rate_limited')
    assert.equal(body.error.data.request_id, headers.get('x-request-id'))
  })
})
