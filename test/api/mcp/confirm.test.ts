import assert from 'node:assert/strict'
import { createKey } from '../../support/api.ts'
import { connectMcp, type Json, rawMcp } from '../../support/mcp.ts'
import { withApiAndWorker } from '../../support/with-api.ts'

const SPEC = `name: Add a task
inputs: {title: {type: string, required: true}}
nodes:
  add:
    type: crm_manager
    config: {operation: create, entity: tasks, fields: {title: "{{ inputs.title }}"}}
outputs: {task_id: "{{ nodes.add.output.id }}"}
`

describe('the confirmation of a tool', () => {
  const suite = withApiAndWorker()

  const create = async (kind: string, body: object) =>
    (await suite.api.request('POST', `/v1/objects/${kind}`, { body })).body
  const statusOf = async (kind: string, id: string) =>
    (await suite.api.request('GET', `/v1/objects/${kind}/${id}`)).status

  /** A call as a client sends it that can show forms. */
  const send = async (name: string, given: Json, more: Json = {}, key?: string) => {
    const { headers, body } = rawMcp(
      'tools/call',
      { name, arguments: given, ...more },
      { capabilities: { elicitation: { form: {} } } },
    )
    const answer = await suite.api.request('POST', '/mcp', { headers, body, ...(key && { key }) })
    return answer.body as Json
  }
  const accepted = { confirm: { action: 'accept', content: { confirm: true } } }

  it('is asked with a form where the client can, and shows what is deleted', async () => {
    const { id } = await create('contacts', { first_name: 'Shown' })
    const asked: string[] = []
    let agrees = false
    const client = await connectMcp(suite.api.url, {
      key: suite.api.key,
      answer: (message) => {
        asked.push(message)
        return agrees ? { action: 'accept', confirm: true } : { action: 'decline' }
      },
    })
    const remove = () =>
      client.callTool({ name: 'delete_record', arguments: { kind: 'contacts', id, confirm: true } })
    const declined = await remove()
    assert.match(asked[0]!, /^Delete a contact\?[\s\S]*"first_name": "Shown"/)
    assert.equal((declined.structuredContent as Json).status, 'declined')
    assert.equal(await statusOf('contacts', id), 200, '`confirm` of the model is no confirmation of its user')
    agrees = true
    const { structuredContent } = await remove()
    assert.equal((structuredContent as Json).deleted, true)
    assert.equal(await statusOf('contacts', id), 404)
    await client.close()
  })

  it('is the argument `confirm` for other clients, which get the preview first', async () => {
    const client = await connectMcp(suite.api.url, { era: '2025-11-25', key: suite.api.key })
    const { id } = await create('contacts', { first_name: 'Kept' })
    const previewed = await client.callTool({ name: 'delete_record', arguments: { kind: 'contacts', id } })
    const { status, preview } = previewed.structuredContent as Json
    assert.deepEqual([status, preview.current.first_name], ['confirmation_required', 'Kept'])
    assert.match(JSON.stringify(previewed.content), /Nothing has happened yet/)
    assert.equal(await statusOf('contacts', id), 200)
    await client.callTool({ name: 'delete_record', arguments: { kind: 'contacts', id, confirm: true } })
    assert.equal(await statusOf('contacts', id), 404)
    const unknown = await client.callTool({ name: 'delete_record', arguments: { kind: 'contacts', id } })
    assert.equal((unknown.structuredContent as Json).error.type, 'not_found')
    await client.close()
  })

  it('precedes what deletes, changes many rows, reaches other services or decides for people', async () => {
    const client = await connectMcp(suite.api.url, { key: suite.api.key })
    const { id } = await create('contacts', { first_name: 'Ada' })
    const { id: from } = await create('contacts', { first_name: 'Ada' })
    const calls: [string, Json][] = [
      ['update_record', { kind: 'contacts', action: 'merge', id, fields: { from } }],
      [
        'update_record',
        { kind: 'contacts', action: 'batch', fields: { operations: [{ op: 'delete', id }] } },
      ],
      [
        'create_record',
        {
          kind: 'webhooks_outgoing',
          fields: { name: 'Out', url: 'https://example.com', events: ['contact.created'] },
        },
      ],
      [
        'run_workflow',
        { action: 'create_run_batch', body_action: 'cancel', filter: { status: ['running'] } },
      ],
      ['test_node', { node_type: 'crm_manager', config: { operation: 'delete', entity: 'contacts', id } }],
    ]
    for (const [name, given] of calls) {
      const { isError, structuredContent } = await client.callTool({ name, arguments: given })
      assert.ok(!isError, JSON.stringify(structuredContent))
      assert.equal((structuredContent as Json).status, 'confirmation_required', name)
    }
    assert.equal(await statusOf('contacts', from), 200)
    const { body: webhooks } = await suite.api.request('GET', '/v1/webhooks/outgoing')
    assert.deepEqual(webhooks.data, [])
    await client.close()
  })

  it('takes a workflow from its text to the end of its run, which happens once', async () => {
    const asked: string[] = []
    const client = await connectMcp(suite.api.url, {
      key: suite.api.key,
      answer: (message) => {
        asked.push(message)
        return { action: 'accept', confirm: true }
      },
    })
    const use = async (name: string, given: Json) => {
      const { isError, structuredContent, content } = await client.callTool({ name, arguments: given })
      assert.ok(!isError, JSON.stringify(content))
      return structuredContent as Json
    }
    const validation = await use('validate_workflow', { spec: SPEC })
    assert.deepEqual(validation.errors, [])
    const { workflow_id } = await use('create_workflow', { spec: SPEC })
    const run = await use('run_workflow', { workflow_id, inputs: { title: 'Call Ada' }, wait_seconds: 20 })
    assert.match(asked[0]!, /Add a task[\s\S]*Call Ada/)
    assert.equal(run.status, 'completed', JSON.stringify(run))
    assert.equal(await statusOf('tasks', run.outputs.task_id), 200)
    const seen = await use('get_run', { run_id: run.run_id })
    assert.equal(seen.nodes[0].status, 'completed')
    await client.close()

    const given = { workflow_id, inputs: { title: 'Only once' } }
    const { result } = await send('run_workflow', given)
    assert.equal(result.resultType, 'input_required')
    const more = { inputResponses: accepted, requestState: result.requestState }
    const [first, second] = [await send('run_workflow', given, more), await send('run_workflow', given, more)]
    const idOf = (answer: Json) => answer.result.structuredContent.run_id
    assert.ok(idOf(first))
    assert.equal(idOf(second), idOf(first), 'a repeated answer does not run it again')
  })

  it('holds for the call, the key and the version that it was asked for', async () => {
    const { body: workflow } = await suite.api.request('POST', '/v1/workflows', {
      body: { spec: SPEC, name: 'Sealed' },
    })
    const given = { workflow_id: workflow.workflow_id, inputs: { title: 'Sealed' } }
    const { result } = await send('run_workflow', given)
    const { requestState } = result
    const refusedAs = async (what: string, answer: Promise<Json>) => {
      const { error, result } = await answer
      assert.ok(error, `${what}: ${JSON.stringify(result)}`)
      assert.deepEqual([error.code, error.data?.reason], [-32602, 'invalid_request_state'], what)
    }
    const { key } = await createKey(suite.db, suite.api.organizationId)
    const more = { inputResponses: accepted, requestState }
    await refusedAs('another key', send('run_workflow', given, more, key))
    await refusedAs('other inputs', send('run_workflow', { ...given, inputs: { title: 'Other' } }, more))
    await refusedAs(
      'another tool',
      send('delete_record', { kind: 'contacts', id: workflow.workflow_id }, more),
    )
    const altered = requestState.replace(/.(?=.{9}$)/, (one: string) => (one === 'A' ? 'B' : 'A'))
    await refusedAs('altered', send('run_workflow', given, { ...more, requestState: altered }))
    await refusedAs('no state', send('run_workflow', given, { inputResponses: accepted }))
    await suite.api.request('PATCH', `/v1/workflows/${given.workflow_id}`, {
      body: { spec: SPEC.replace('Add a task', 'Sealed').replace('title: "', 'body: changed, title: "') },
    })
    const { result: late } = await send('run_workflow', given, more)
    assert.equal(late.structuredContent.error.type, 'version_conflict', JSON.stringify(late))
    const { body: runs } = await suite.api.request('GET', `/v1/runs?workflow_id=${given.workflow_id}`)
    assert.deepEqual(runs.data, [])
  })
})
