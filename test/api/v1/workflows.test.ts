import { deepEqual, equal, match, ok, rejects } from 'node:assert/strict'
import { updateOrganization } from '../../../db/access/organization.ts'
import { putSecret } from '../../../db/access/secrets.ts'
import { findByReference } from '../../../db/workflows/workflows.ts'
import { nodeTypes } from '../../../workflows/nodes/index.ts'
import { createKey } from '../../support/api.ts'
import { testActor } from '../../support/database.ts'
import { withApi } from '../../support/with-api.ts'

const spec = (name = 'Greet', note = 'hello') => `name: ${name}
description: Says hello
inputs: {email: {type: string, required: true}}
nodes:
  save:
    type: crm_manager
    config: {operation: upsert, entity: contacts, by: email, fields: {email: "{{ inputs.email }}"}}
  say: {type: set_fields, config: {fields: {note: ${note}, id: "{{ nodes.save.output.record.id }}"}}}
outputs: {note: "{{ nodes.say.output.note }}"}
`

describe('workflows over HTTP', () => {
  const suite = withApi()

  const post = (path: string, body?: unknown, key?: string) =>
    suite.api.request('POST', `/v1/workflows${path}`, { body: body ?? {}, ...(key ? { key } : {}) })
  const create = async (name?: string) => (await post('', { spec: spec(name) })).body

  describe('validate', () => {
    it('reports no errors for a valid spec, and saves nothing', async () => {
      const { status, body } = await post('/validate', { spec: spec('Never saved') })
      equal(status, 200)
      deepEqual(body, { object: 'validation', valid: true, errors: [], warnings: [] })
      const list = await suite.api.request('GET', '/v1/workflows?name=Never%20saved')
      equal(list.body.total, 0)
    })

    it('answers 200 for YAML that does not parse, with line and column', async () => {
      const { status, body } = await post('/validate', { spec: 'name: x\nnodes: [' })
      equal(status, 200)
      equal(body.valid, false)
      equal(body.errors[0].code, 'yaml_syntax')
      equal(body.errors[0].line, 2)
    })

    it('marks findings with their source if both forms are sent', async () => {
      const { body } = await post('/validate', {
        spec: 'name: x\nnodes: {a: {type: nope}}',
        definition: { nodes: [{ id: 'a', type: 'nope' }] },
      })
      deepEqual(
        body.errors.map((found: { source: string; code: string }) => [found.source, found.code]),
        [
          ['spec', 'unknown_node_type'],
          ['definition', 'unknown_node_type'],
        ],
      )
    })

    it('warns of an error workflow that does not exist yet, is ambiguous, or is the workflow itself', async () => {
      const named = (name: string) =>
        `name: Watched\nsettings: {error_workflow: ${name}}\nnodes: {a: {type: stop}}\n`
      const warnings = async (name: string, path = '/validate') =>
        (await post(path, { spec: named(name) })).body.warnings
      const unknown = {
        code: 'unknown_workflow',
        message: 'there is no workflow "On error" yet',
        hint: 'create it, or write the exact name or the id of another workflow',
        path: '/settings/error_workflow',
        line: 2,
        column: 28,
      }
      deepEqual(await warnings('On error'), [unknown])
      deepEqual(await warnings('On error', ''), [unknown], 'as when it is saved')
      const { workflow_id } = await create('On error')
      for (const name of ['On error', workflow_id]) {
        const [draft] = await warnings(name)
        deepEqual(
          [draft.code, draft.message, draft.line],
          [
            'draft_workflow',
            `the workflow ${JSON.stringify(name)} is a draft: it runs, but may be unfinished`,
            2,
          ],
        )
      }
      await post(`/${workflow_id}/activate`)
      for (const name of ['On error', workflow_id]) deepEqual(await warnings(name), [])
      // A draft of the same name does not stop what starts the active one.
      const draft = await create('On error')
      deepEqual(await warnings('On error'), [])
      const meant = (name: string) =>
        suite.db.tenant(
          suite.api.organizationId,
          testActor,
          async (tx) => (await findByReference(tx, name)).id,
        )
      equal(await meant('On error'), workflow_id)
      await post(`/${draft.workflow_id}/activate`)
      await rejects(meant('On error'), { type: 'ambiguous_name' })
      const [twice] = await warnings('On error')
      equal(twice.message, '2 workflows are named "On error"')
      const definition = { name: 'X', nodes: [{ id: 'a', type: 'stop' }], settings: { error_workflow: 'X' } }
      const { body } = await post('/validate', { definition })
      deepEqual(
        body.warnings.map(({ code, path }: { code: string; path: string }) => [code, path]),
        [
          ['not_applicable', '/settings/error_workflow'],
          ['unknown_workflow', '/settings/error_workflow'],
        ],
      )
    })

    it('warns of secrets and settings that the organization does not have, with the nearest name', async () => {
      await suite.db.tenant(suite.api.organizationId, testActor, async (tx) => {
        await putSecret(tx, suite.api.secretsKey, 'acme_token', 'a long enough value')
        await updateOrganization(tx, { env: { base_url: 'https://x.test' } })
      })
      const reading = (secret: string, setting: string) =>
        [
          'name: Reads',
          `trigger: {type: event, events: [deal.won], when: "{{ env.${setting} }}"}`,
          'nodes:',
          '  a:',
          '    type: api_request',
          '    on_error: fail',
          '    config:',
          `      url: "{{ env.${setting} }}/a"`,
          `      headers: {A: "Bearer {{ secrets.${secret} }}"}`,
          '',
        ].join('\n')
      const warnings = async (secret: string, setting: string, path = '/validate') =>
        (await post(path, { spec: reading(secret, setting) })).body.warnings
      deepEqual(await warnings('acme_token', 'base_url'), [])
      const [atUrl, atHeader, atWhen] = await warnings('acme_tokn', 'base_uri')
      deepEqual(atHeader, {
        code: 'unknown_secret',
        message: 'there is no secret acme_tokn yet: the node fails until it is set',
        hint: 'did you mean acme_token?',
        path: '/nodes/a/config/headers/A',
        node_id: 'a',
        line: 9,
        column: 20,
      })
      deepEqual([atUrl.code, atUrl.hint, atUrl.line], ['unknown_env', 'did you mean base_url?', 8])
      deepEqual([atWhen.code, atWhen.path], ['unknown_env', '/trigger/when'])
      const saved = await warnings('other', 'elsewhere', '')
      deepEqual(
        saved.map(({ code, hint }: { code: string; hint: string }) => [code, hint.split(':')[0]]),
        [
          ['unknown_env', 'an owner or admin sets it in the settings'],
          ['unknown_secret', 'an owner or admin sets it in the settings'],
          ['unknown_env', 'an owner or admin sets it in the settings'],
        ],
      )
    })

    it('warns of a workflow to run that does not exist yet, at its name', async () => {
      const named = (name: string) =>
        `name: Parent\nnodes:\n  a:\n    type: run_workflow\n    config: {workflow: ${name}}\n`
      const { body } = await post('/validate', { spec: named('Not saved') })
      const [{ code, path, line, column, node_id }] = body.warnings
      deepEqual(
        [body.valid, code, path, line, column, node_id],
        [true, 'unknown_workflow', '/nodes/a/config/workflow', 5, 24, 'a'],
      )
      deepEqual((await post('/validate', { spec: named('"{{ run.workflow_name }}"') })).body.warnings, [])
    })

    it('names the workflow that was meant, also where it is run', async () => {
      equal((await post('', { spec: spec('Send the invoice') })).status, 201)
      const { body } = await post('/validate', {
        spec: 'name: Parent\nnodes:\n  a:\n    type: run_workflow\n    config: {workflow: Send the invoce}\n',
      })
      deepEqual(
        body.warnings.map(({ code, hint }: { code: string; hint: string }) => [code, hint]),
        [['unknown_workflow', 'did you mean Send the invoice?']],
      )
      const run = await post('/run-by-name', { name: 'Send the invoce' })
      equal(run.status, 404)
      match(run.body.error.hint, /: did you mean "Send the invoice"\?$/)
    })

    it('refuses a body with neither form, and unknown keys', async () => {
      equal((await post('/validate', {})).status, 422)
      equal((await post('/validate', { spec: spec(), save: true })).status, 422)
    })

    it('survives YAML bombs', async () => {
      for (const bomb of [
        '['.repeat(5000),
        'a: &a [x]\nb: [*a, *a]',
        `${'k: 1\n'.repeat(20000)}`,
        'x'.repeat(300_000),
      ]) {
        const { status, body } = await post('/validate', { spec: bomb })
        equal(status, 200)
        equal(body.valid, false)
      }
    })
  })

  describe('create', () => {
    it('saves a draft whose name the body overrides', async () => {
      const { status, body } = await post('', {
        spec: spec('In YAML'),
        name: 'Override',
        description: 'Mine',
      })
      equal(status, 201)
      equal(body.object, 'workflow')
      equal(body.status, 'DRAFT')
      equal(body.active, false)
      equal(body.name, 'Override')
      equal(body.description, 'Mine')
      equal(body.version, 1)
      equal(body.active_version, null)
      deepEqual(body.warnings, [])
      match(body.workflow_id, /^[0-9a-f-]{36}$/)
    })

    it('refuses blocking errors with the whole validation result, and saves nothing', async () => {
      const { status, body } = await post('', { spec: 'name: Broken\nnodes:\n  a: {type: crm_manger}\n' })
      equal(status, 400)
      equal(body.error.type, 'workflow_invalid')
      equal(body.error.validation.errors[0].line, 3)
      equal(body.error.validation.errors[0].hint, 'did you mean crm_manager?')
      equal((await suite.api.request('GET', '/v1/workflows?name=Broken')).body.total, 0)
    })

    it('refuses a spec above 256 KiB with 413, which validate reports as a finding', async () => {
      const large = { spec: `${spec('Large')}# ${'x'.repeat(262_144)}` }
      const refused = await post('', large)
      deepEqual([refused.status, refused.body.error.type], [413, 'payload_too_large'])
      const { workflow_id } = await create('Small')
      equal((await suite.api.request('PATCH', `/v1/workflows/${workflow_id}`, { body: large })).status, 413)
      const { status, body } = await post('/validate', large)
      deepEqual([status, body.valid, body.errors[0].code], [200, false, 'yaml_limit'])
    })

    it('refuses a raw definition and unknown keys', async () => {
      equal((await post('', { definition: {} })).status, 422)
      equal((await post('', { spec: spec(), active: true })).status, 422)
    })
  })

  describe('one workflow', () => {
    it('is returned with its spec and definition, in the written order', async () => {
      const created = await create()
      const { status, body } = await suite.api.request('GET', `/v1/workflows/${created.workflow_id}`)
      equal(status, 200)
      equal(body.spec, spec())
      deepEqual(
        body.definition.nodes.map((node: { id: string }) => node.id),
        ['save', 'say'],
      )
      deepEqual(body.definition.edges, [{ from: 'save', handle: 'success', to: 'say' }])
    })

    it('gets a new version with each save, and keeps the active version until the next activation', async () => {
      const { workflow_id: id } = await create()
      const active = await post(`/${id}/activate`)
      deepEqual([active.body.status, active.body.active, active.body.active_version], ['active', true, 1])
      const changed = await suite.api.request('PATCH', `/v1/workflows/${id}`, {
        body: { spec: spec('Renamed', 'hi') },
      })
      equal(changed.status, 200)
      deepEqual(
        [changed.body.name, changed.body.version, changed.body.active_version, changed.body.status],
        ['Renamed', 2, 1, 'active'],
      )
      equal((await post(`/${id}/activate`)).body.active_version, 2)
      const off = await post(`/${id}/deactivate`)
      deepEqual([off.body.status, off.body.active_version], ['inactive', null])
    })

    it('keeps an overridden name while the name in the spec is unchanged', async () => {
      const { body } = await post('', { spec: spec('A'), name: 'B' })
      const path = `/v1/workflows/${body.workflow_id}`
      equal((await suite.api.request('PATCH', path, { body: { spec: spec('A', 'x') } })).body.name, 'B')
      equal((await suite.api.request('PATCH', path, { body: { spec: spec('C') } })).body.name, 'C')
    })

    it('refuses an update or delete if If-Match is not the current version', async () => {
      const { workflow_id } = await create('Guarded')
      const path = `/v1/workflows/${workflow_id}`
      const read = await suite.api.request('GET', path)
      equal(read.headers.get('etag'), '"1"')
      const headers = { 'If-Match': read.headers.get('etag')! }
      const changed = await suite.api.request('PATCH', path, {
        body: { spec: spec('Guarded', 'x') },
        headers,
      })
      deepEqual([changed.status, changed.headers.get('etag')], [200, '"2"'])
      for (const method of ['PATCH', 'DELETE']) {
        const late = await suite.api.request(method, path, {
          ...(method === 'PATCH' && { body: { name: 'Late' } }),
          headers,
        })
        deepEqual([late.status, late.body.error.type], [412, 'version_conflict'])
      }
      equal((await suite.api.request('GET', path)).body.name, 'Guarded')
      equal((await suite.api.request('DELETE', path, { headers: { 'If-Match': '"2"' } })).status, 200)
    })

    it('replays the ETag of the first answer with an Idempotency-Key', async () => {
      const once = () =>
        suite.api.request('POST', '/v1/workflows', {
          body: { spec: spec('Once') },
          headers: { 'Idempotency-Key': 'once' },
        })
      const [first, again] = [await once(), await once()]
      deepEqual([again.headers.get('idempotency-replayed'), again.headers.get('etag')], ['true', '"1"'])
      equal(first.headers.get('etag'), '"1"')
    })

    it('changes nothing, not even updated_at, for an equal save', async () => {
      const { workflow_id } = await create('Same')
      const path = `/v1/workflows/${workflow_id}`
      const { body: before } = await suite.api.request('GET', path)
      for (const body of [{}, { name: 'Same' }, { description: 'Says hello' }]) {
        const { body: after } = await suite.api.request('PATCH', path, { body })
        deepEqual([after.updated_at, after.version], [before.updated_at, 1])
      }
    })

    it('has its current name and description in the definition, and keeps the text of the spec', async () => {
      const { workflow_id } = await create('Old name')
      const path = `/v1/workflows/${workflow_id}`
      const { body } = await suite.api.request('PATCH', path, {
        body: { name: 'New name', description: null },
      })
      deepEqual(
        [body.name, body.definition.name, body.definition.description],
        ['New name', 'New name', undefined],
      )
      equal(body.spec, spec('Old name'))
      const again = await suite.api.request('PATCH', path, { body: { spec: body.spec } })
      deepEqual(
        [again.body.name, again.body.description, again.body.definition.name],
        ['New name', null, 'New name'],
      )
      const described = body.spec.replace('Says hello', 'Says goodbye')
      equal(
        (await suite.api.request('PATCH', path, { body: { spec: described } })).body.description,
        'Says goodbye',
      )
    })

    it('accepts a raw definition by PATCH', async () => {
      const { workflow_id: id } = await create('Raw')
      const definition = {
        nodes: [
          { id: 'a', type: 'set_fields', config: { fields: { x: 1 } } },
          { id: 'b', type: 'stop', config: { message: 'x {{ nodes.a.output.x }}' } },
        ],
        edges: [{ from: 'a', handle: 'success', to: 'b' }],
      }
      const { status, body } = await suite.api.request('PATCH', `/v1/workflows/${id}`, {
        body: { definition },
      })
      equal(status, 200)
      deepEqual([body.name, body.version], ['Raw', 2])
      deepEqual(body.definition.edges, definition.edges)
    })

    it('writes a raw definition as YAML, and keeps the comments of what is unchanged', async () => {
      const commented = `# The first line
${spec('Commented').replace('  say:', '  # says hello\n  say:')}# The last line\n`
      const { workflow_id: id } = (await post('', { spec: commented })).body
      const path = `/v1/workflows/${id}`
      const { body: read } = await suite.api.request('GET', path)
      const { name: _, ...definition } = read.definition
      definition.nodes[1].config.fields.note = 'hi'
      const { status, body } = await suite.api.request('PATCH', path, { body: { definition } })
      deepEqual(
        [status, body.name, body.spec],
        [200, 'Commented', commented.replace('note: hello', 'note: hi')],
      )
      // The YAML is the definition: saving it changes nothing else.
      const again = await suite.api.request('PATCH', path, { body: { spec: body.spec } })
      deepEqual([again.body.version, again.body.definition], [3, body.definition])
    })

    it('is not found after a delete, by another organization, or by an invalid id', async () => {
      const { workflow_id: id } = await create()
      const removed = await suite.api.request('DELETE', `/v1/workflows/${id}`)
      deepEqual([removed.status, removed.body.deleted], [200, true])
      equal((await suite.api.request('GET', `/v1/workflows/${id}`)).status, 404)
      equal((await post(`/${id}/activate`)).status, 404)
      equal((await suite.api.request('GET', '/v1/workflows/not-an-id')).status, 404)
    })
  })

  it('lists the matching workflows, page by page', async () => {
    for (const name of ['List 1', 'List 2', 'List 3']) await create(name)
    const first = await suite.api.request('GET', '/v1/workflows?q=list&limit=2')
    equal(first.status, 200)
    deepEqual(
      first.body.data.map((row: { name: string }) => row.name),
      ['List 3', 'List 2'],
    )
    deepEqual([first.body.has_more, first.body.total], [true, 3])
    const next = `/v1/workflows?q=list&limit=2&cursor=${first.body.next_cursor}`
    const second = await suite.api.request('GET', next)
    deepEqual(
      second.body.data.map((row: { name: string }) => row.name),
      ['List 1'],
    )
    equal(second.body.next_cursor, null)
    equal((await suite.api.request('GET', next.replace('q=list', 'q=other'))).status, 400)
    equal((await suite.api.request('GET', `${next}&offset=1`)).status, 400)
    equal((await suite.api.request('GET', '/v1/workflows?cursor=rubbish')).status, 400)
    equal((await suite.api.request('GET', '/v1/workflows?colour=red')).status, 422)
    await post(`/${first.body.data[0].workflow_id}/activate`)
    deepEqual(
      (await suite.api.request('GET', '/v1/workflows?q=list&active=true')).body.data.map(
        (row: { name: string }) => row.name,
      ),
      ['List 3'],
    )
    equal((await suite.api.request('GET', '/v1/workflows?q=list&active=false')).body.total, 2)
  })

  it('requires workflows:author for writes', async () => {
    const { key } = await createKey(suite.db, suite.api.organizationId, { scopes: ['workflows:read'] })
    equal((await post('', { spec: spec() }, key)).status, 403)
    equal((await post('/validate', { spec: spec() }, key)).status, 200)
  })

  describe('node types', () => {
    it('are found by words of their names and descriptions, and by their names in other products', async () => {
      const found = async (search: string) => {
        const query = new URLSearchParams({ search })
        const { status, body } = await suite.api.request('GET', `/v1/workflows/nodes?${query}`)
        equal(status, 200)
        equal(body.total, body.data.length)
        return body.data.map((node: { node_type: string }) => node.node_type)
      }
      deepEqual((await found('sleep'))[0], 'delay', 'its name in other products')
      deepEqual((await found('Send E-Mail'))[0], 'send_email')
      deepEqual((await found('dely'))[0], 'delay', 'misspelt')
      ok((await found('durable')).includes('delay'), 'a word of the description')
      deepEqual(await found('quantum entanglement'), [])
      equal((await found('')).length, Object.keys(nodeTypes).length)
      const { body } = await suite.api.request('GET', '/v1/workflows/nodes?search=record&category=flow')
      ok(body.data.every((node: { category: string }) => node.category === 'flow'))
      equal((await suite.api.request('GET', '/v1/workflows/nodes?serach=x')).status, 422)
    })

    it('are an empty list for an unknown category', async () => {
      const { status, body } = await suite.api.request('GET', '/v1/workflows/nodes?category=zzz')
      deepEqual([status, body.data, body.total, body.has_more], [200, [], 0, false])
    })

    it('are listed, all or by category', async () => {
      const { body } = await suite.api.request('GET', '/v1/workflows/nodes')
      deepEqual(
        body.data.map((node: { node_type: string }) => node.node_type).sort(),
        Object.keys(nodeTypes).sort(),
      )
      const flow = await suite.api.request('GET', '/v1/workflows/nodes?category=flow')
      ok(
        flow.body.data.length > 0 &&
          flow.body.data.every((node: { category: string }) => node.category === 'flow'),
      )
    })

    it('are retrieved by name, with schemas, handles and an example', async () => {
      for (const type of Object.keys(nodeTypes)) {
        const { status, body } = await suite.api.request('GET', `/v1/workflows/nodes/${type}`)
        equal(status, 200)
        equal(body.node_type, type)
        ok(body.config_schema && body.output_schema && body.example && body.output_handles)
      }
      equal((await suite.api.request('GET', '/v1/workflows/nodes/constructor')).status, 404)
      match((await suite.api.request('GET', '/v1/workflows/nodes/dely')).body.error.hint, /delay/)
      match((await suite.api.request('GET', '/v1/workflows/nodes/nope')).body.error.hint, /lists them/)
    })
  })
})
