import { deepEqual, equal } from 'node:assert/strict'
import type { Finding } from '../../../workflows/language/definition.ts'
import { createKey } from '../../support/api.ts'
import { withApi } from '../../support/with-api.ts'

const spec = (text: string, name = 'Orders') =>
  `name: ${name}\ntrigger: webhook\nnodes: {a: {type: stop, config: {message: "{{ ${text} }}"}}}\n`

describe('the sample of an incoming webhook', () => {
  const suite = withApi()
  const post = (path: string, body: object, key?: string) =>
    suite.api.request('POST', `/v1${path}`, { body, ...(key && { key }) })
  const warnings = async (text: string, key?: string) =>
    ((await post('/workflows/validate', { spec: spec(text) }, key)).body.warnings as Finding[]).map(
      ({ code, message, hint }) => `${code}: ${message} | ${hint}`,
    )

  let workflowId: string
  async function webhookWith(sample: object, values: object = {}) {
    const { body: webhook } = await post('/webhooks/incoming', {
      name: 'Shop',
      target_entity: 'none',
      workflow_id: workflowId,
      ...values,
    })
    const send = () =>
      suite.api.request('POST', `/webhooks/incoming/${webhook.id}`, {
        key: null,
        headers: { 'X-Webhook-Secret': webhook.secret },
        body: sample,
      })
    await post(`/webhooks/incoming/${webhook.id}/capture`, {})
    await send()
    return webhook.id as string
  }

  before(async () => {
    workflowId = (await post('/workflows', { spec: spec('trigger.type') })).body.workflow_id
    await webhookWith(
      { customer: { email: 'ada@example.com', card: '4242424242424242' }, lines: [{ sku: 'A' }], total: 5 },
      { secret_fields: ['customer.card'] },
    )
  })

  it('tells which values of the payload its workflow reads in vain, with the path to write instead', async () => {
    deepEqual(await warnings('trigger.payload.customer.email'), [])
    deepEqual(await warnings('trigger.payload.custmer.email'), [
      'unlike_sample: the sample of the webhook "Shop" has no trigger.payload.custmer | write `trigger.payload.customer.email` instead of `trigger.payload.custmer.email`',
    ])
    deepEqual(await warnings('trigger.payload.lines.sku'), [
      'unlike_sample: the sample of the webhook "Shop" has no trigger.payload.lines.sku: trigger.payload.lines is a list | write `trigger.payload.lines[0].sku` instead of `trigger.payload.lines.sku`',
    ])
    deepEqual(await warnings('trigger.payload.total.amount'), [
      'unlike_sample: the sample of the webhook "Shop" has no trigger.payload.total.amount: trigger.payload.total is a number | add a default, or capture another sample: POST /v1/webhooks/incoming/{webhook_id}/capture, with the scope webhooks:write',
    ])
    deepEqual(await warnings('trigger.payload.vat'), [
      'unlike_sample: the sample of the webhook "Shop" has no trigger.payload.vat | one of customer, lines, total; or add a default, if other requests have it',
    ])
  })

  it('refuses nothing: another sample may have the value', async () => {
    const save = (text: string) =>
      suite.api.request('PATCH', `/v1/workflows/${workflowId}`, { body: { spec: spec(text, 'Renamed') } })
    const saved = await save('trigger.payload.vat')
    equal(saved.status, 200)
    deepEqual(
      saved.body.warnings.map(({ code }: Finding) => code),
      ['unlike_sample'],
    )
    const other = await webhookWith({ vat: '1' })
    deepEqual((await save('trigger.payload.vat')).body.warnings, [])
    equal((await save('trigger.payload.neither')).body.warnings.length, 1)
    await suite.api.request('DELETE', `/v1/webhooks/incoming/${other}`)
    equal((await save('trigger.payload.vat')).body.warnings.length, 1)
    await save('trigger.payload.customer.email')
    await suite.api.request('PATCH', `/v1/workflows/${workflowId}`, { body: { name: 'Orders' } })
  })

  it('of a listener counts only if its condition holds', async () => {
    const { body } = await post('/workflows', { spec: spec('trigger.type', 'Listening') })
    const validate = async () =>
      (await post('/workflows/validate', { spec: spec('trigger.payload.x', 'Listening') })).body.warnings
        .length
    const listening = (to: string) => ({
      workflow_id: null,
      listeners: [{ workflow_id: body.workflow_id, when: { path: 'kind', is: 'equal', to } }],
    })
    await webhookWith({ kind: 'refund' }, listening('order'))
    equal(await validate(), 0)
    await webhookWith({ kind: 'order' }, listening('order'))
    equal(await validate(), 1)
  })

  it('shows its names only to those who may read the log', async () => {
    const key = async (...scopes: string[]) =>
      (await createKey(suite.db, suite.api.organizationId, { scopes: scopes as never })).key
    equal((await warnings('trigger.payload.vat', await key('workflows:author'))).length, 0)
    equal((await warnings('trigger.payload.vat', await key('workflows:author', 'webhooks:read'))).length, 0)
    const all = await key('workflows:author', 'workflows:run', 'webhooks:read')
    equal((await warnings('trigger.payload.vat', all)).length, 1)
  })

  it('tells of the items of a loop, and of what a filter names', async () => {
    const loop = (field: string, filter = "map: 'sku'") => `name: Orders
trigger: webhook
nodes:
  l: {type: for_each, config: {items: "{{ trigger.payload.lines }}"}, next: {item: a, done: end}}
  a: {type: stop, config: {status: completed, message: "{{ item.${field} }} {{ trigger.payload.lines | ${filter} | join }}"}}
`
    const found = async (spec: string) =>
      ((await post('/workflows/validate', { spec })).body.warnings as Finding[]).map(
        ({ code, hint }) => `${code}: ${hint}`,
      )
    equal((await post('/workflows/validate', { spec: loop('sku') })).body.valid, true)
    deepEqual(await found(loop('sku')), [])
    deepEqual(await found(loop('skuu')), ['unlike_sample: write `item.sku` instead of `item.skuu`'])
    deepEqual(await found(loop('sku', "map: 'skuu'")), ['unlike_sample: write `sku` instead of `skuu`'])
  })

  it('tells of a setting that does not accept its kind of value', async () => {
    deepEqual(await warnings('trigger.payload.total'), [
      'unlike_sample: {{ trigger.payload.total }} is of type number, which message of a stop does not accept | write `\'{{ trigger.payload.total | append: "" }}\'`',
    ])
  })

  it('tells nothing of what has a default', async () =>
    deepEqual(await warnings("trigger.payload.vat | default: '0'"), []))
})

describe('the pinned sample of a node', () => {
  const suite = withApi()
  const calling = (path: string) => `name: Pinned
nodes:
  call: {type: api_request, config: {url: "https://example.com"}}
  a: {type: stop, config: {message: "Result: {{ nodes.call.output.${path} }}"}}
`
  let id: string
  const codes = async (path: string, key?: string) => {
    const { body } = await suite.api.request('PATCH', `/v1/workflows/${id}`, {
      body: { spec: calling(path) },
      ...(key && { key }),
    })
    return (body.warnings as Finding[]).map(({ code, message, hint }) => `${code}: ${message} | ${hint}`)
  }

  before(async () => {
    const { body } = await suite.api.request('POST', '/v1/workflows', { body: { spec: calling('status') } })
    id = body.workflow_id
    const output = { status: 200, headers: {}, body: { order: { total: 5, lines: [{ sku: 'A' }] } } }
    await suite.api.request('PUT', `/v1/workflows/${id}/samples/call`, { body: { output } })
  })

  it('types what nothing else tells of the output', async () => {
    deepEqual(await codes('body.order.total'), [])
    deepEqual(await codes('body.order.totl'), [
      'unlike_sample: the pinned sample of call has no nodes.call.output.body.order.totl | write `nodes.call.output.body.order.total` instead of `nodes.call.output.body.order.totl`',
    ])
    deepEqual(await codes('body.vat'), [
      'unlike_sample: the pinned sample of call has no nodes.call.output.body.vat | one of order; or add a default, if other outputs have it',
    ])
  })

  it('shows its names only to those who may read samples', async () => {
    const scopes = ['workflows:author'] as never
    const { key } = await createKey(suite.db, suite.api.organizationId, { scopes })
    deepEqual(await codes('body.vat', key), [])
  })
})

describe('the workflow that a node runs', () => {
  const suite = withApi()
  const post = (path: string, spec: string) =>
    suite.api.request('POST', `/v1/workflows${path}`, { body: { spec } })
  const findings = async (config: string, message: string) => {
    const { body } = await post(
      '/validate',
      `name: Caller
trigger: {type: event, events: [contact.created]}
nodes:
  call: {type: run_workflow, config: ${config}}
  a: {type: stop, config: {message: "${message}"}}
`,
    )
    return [...body.errors, ...body.warnings]
      .filter(({ code }: Finding) => code !== 'draft_workflow')
      .map(({ code, message, hint }: Finding) => `${code}: ${message}${hint ? ` | ${hint}` : ''}`)
  }

  before(() =>
    post(
      '',
      `name: Called
inputs: {count: number, email: string}
nodes:
  find: {type: crm_manager, config: {operation: search, entity: contacts, filters: {email: "{{ inputs.email }}"}}}
  size: {type: set_fields, config: {fields: {count: "{{ nodes.find.output.data | size }}"}}}
outputs: {contact: "{{ nodes.find.output.data[0] }}", size: "{{ nodes.size.output.count }}"}
`,
    ),
  )

  it('types its outputs, in depth', async () => {
    const config = '{workflow: Called, inputs: {count: 1}}'
    const read = (path: string) => findings(config, `{{ nodes.call.output.outputs.${path} }}`)
    deepEqual(await read('contact.email'), [])
    deepEqual(await read('contact.emial'), [
      'workflow_outputs: the workflow "Called" has no nodes.call.output.outputs.contact.emial | write `nodes.call.output.outputs.contact.email` instead of `nodes.call.output.outputs.contact.emial`',
    ])
    deepEqual(await read('contcat'), [
      'workflow_outputs: the workflow "Called" has no nodes.call.output.outputs.contcat | write `nodes.call.output.outputs.contact` instead of `nodes.call.output.outputs.contcat`',
    ])
    deepEqual(await read('sum'), [
      'workflow_outputs: the workflow "Called" has no nodes.call.output.outputs.sum | one of contact, size',
    ])
  })

  it('may end with the outputs of a stop instead', async () => {
    await post(
      '',
      'name: Ends\nnodes: {a: {type: stop, config: {outputs: {early: {by: a}}}}}\noutputs: {late: 1}\n',
    )
    const read = (path: string) =>
      findings('{workflow: Ends}', `Ended {{ nodes.call.output.outputs.${path} }}`)
    deepEqual([...(await read('early.by')), ...(await read('late'))], [])
    deepEqual(await read('early.bye'), [
      'workflow_outputs: the workflow "Ends" has no nodes.call.output.outputs.early.bye | write `nodes.call.output.outputs.early.by` instead of `nodes.call.output.outputs.early.bye`',
    ])
  })

  it('types its inputs, those with placeholders too', async () => {
    const give = (value: string) =>
      findings(`{workflow: Called, inputs: {count: "${value}"}}`, '{{ nodes.call.status }}')
    deepEqual(await give('{{ trigger.record.version }}'), [])
    deepEqual(await give('{{ trigger.record.tags | size }}'), [])
    deepEqual(await give('{{ trigger.record.email }}'), [
      'workflow_inputs: the input count of the workflow "Called" must be of type number: this is of type string',
    ])
    deepEqual(await give('No. {{ trigger.record.version }}'), [
      'workflow_inputs: the input count of the workflow "Called" must be of type number: this is of type string',
    ])
  })
})
