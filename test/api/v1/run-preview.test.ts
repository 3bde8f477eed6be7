import { deepEqual, equal, match, ok } from 'node:assert/strict'
import { updateOrganization } from '../../../db/access/organization.ts'
import { putSecret } from '../../../db/access/secrets.ts'
import { testActor } from '../../support/database.ts'
import { withApi } from '../../support/with-api.ts'

const SPEC = `name: Onboard
inputs:
  email: {type: string, required: true}
  vip: boolean
  guests: {type: array, default: []}
nodes:
  text:
    type: set_fields
    config: {fields: {greeting: "Hello {{ inputs.email | upcase }}"}}
  save:
    type: crm_manager
    config: {operation: upsert, entity: contacts, by: email, fields: {email: "{{ inputs.email }}", job_title: "{{ nodes.text.output.greeting }}"}}
  which:
    type: condition
    config: {conditions: [{left: "{{ inputs.vip }}", operator: eq, right: true}]}
    next: {"true": call, "false": each}
  call:
    type: api_request
    config:
      method: POST
      url: "{{ env.base_url }}/leads"
      headers: {Authorization: "Bearer {{ secrets.acme_token }}"}
      body: {id: "{{ nodes.save.output.record.id }}"}
    next: {success: answer, error: each}
  answer:
    type: condition
    config: {conditions: [{left: "{{ nodes.call.output.status }}", operator: eq, right: 200}]}
    next: {"true": mail, "false": end}
  mail:
    type: send_email
    config: {to: "{{ inputs.email }}", subject: Welcome, text: "{{ nodes.text.output.greeting }}"}
    next: end
  each:
    type: for_each
    config: {items: "{{ inputs.guests }}"}
    next: {item: invite, done: child}
  invite:
    type: emit_event
    config: {event: guest.invited, data: {name: "{{ item.name }}", at: "{{ index }}"}}
    next: end
  child:
    type: run_workflow
    config: {workflow: Next, inputs: {email: "{{ inputs.email }}"}}
`

// biome-ignore lint/suspicious/noExplicitAny: JSON
type Json = any

describe('the preview of a run', () => {
  const suite = withApi()

  const request = (path: string, body: object = {}) =>
    suite.api.request('POST', `/v1/workflows${path}`, { body })
  const preview = async (id: string, inputs: object): Promise<Json> => {
    const { status, body } = await request(`/${id}/run`, { inputs })
    deepEqual([status, body.status], [200, 'confirmation_required'])
    return body.preview
  }
  const reaches = ({ nodes }: Json) => Object.fromEntries(nodes.map((node: Json) => [node.id, node.reach]))
  const create = async (spec: string): Promise<string> => {
    const { status, body } = await request('', { spec })
    equal(status, 201, JSON.stringify(body))
    return body.workflow_id
  }

  it('shows what would be written and sent, to whom, with which values, and all that is missing', async () => {
    const id = await create(SPEC)
    const shown = await preview(id, { email: 'ada@example.com', vip: true })
    const node = Object.fromEntries(shown.nodes.map((one: Json) => [one.id, one]))
    deepEqual(node.text, {
      id: 'text',
      type: 'set_fields',
      title: 'text',
      effect: 'pure',
      reach: 'runs',
      config: { fields: { greeting: 'Hello ADA@EXAMPLE.COM' } },
      calls: [],
    })
    deepEqual(
      [node.save.config.fields, node.save.calls],
      [
        { email: 'ada@example.com', job_title: 'Hello ADA@EXAMPLE.COM' },
        ['upserting a record in contacts by email, fields email job_title'],
      ],
    )
    deepEqual(
      [node.call.config.url, node.call.config.body, node.call.unknown, node.call.calls],
      [
        '{{ env.base_url }}/leads',
        { id: '{{ nodes.save.output.record.id }}' },
        ['env.base_url', 'secrets.acme_token', 'nodes.save.output.record.id'],
        undefined,
      ],
    )
    deepEqual(
      [node.mail.reach, node.mail.calls],
      ['may_run', ['sending a mail to ada@example.com']],
      'as far as the call answers 200',
    )
    deepEqual(reaches(shown), {
      text: 'runs',
      save: 'runs',
      which: 'runs',
      call: 'runs',
      answer: 'runs',
      mail: 'may_run',
      each: 'may_run',
      invite: 'skipped',
      child: 'may_run',
    })
    deepEqual(node.child.calls, ['starting the workflow Next, inputs email'])
    deepEqual(
      shown.missing.map((one: Json) => [one.code, one.node_id, one.path]),
      [
        ['service_not_configured', 'mail', '/nodes/5'],
        ['service_not_configured', 'mail', '/nodes/5'],
        ['unknown_workflow', 'child', '/nodes/8/config/workflow'],
        ['unknown_env', 'call', '/nodes/3/config/url'],
        ['unknown_secret', 'call', '/nodes/3/config/headers/Authorization'],
      ],
    )
    match(shown.missing[0].message, /^the service has no SMTP_URL: the node fails/)
    equal((await suite.api.request('GET', '/v1/runs')).body.total, 0)
    equal((await suite.api.request('GET', '/v1/objects/contacts')).body.total, 0)
  })

  it('follows the branch that the inputs choose, and the first item of a loop', async () => {
    const id = await create(SPEC.replace('Onboard', 'Loop'))
    const shown = await preview(id, {
      email: 'a@b.c',
      vip: false,
      guests: [{ name: 'Bob' }, { name: 'Eve' }],
    })
    deepEqual(reaches(shown), {
      text: 'runs',
      save: 'runs',
      which: 'runs',
      call: 'skipped',
      answer: 'skipped',
      mail: 'skipped',
      each: 'runs',
      invite: 'runs',
      child: 'runs',
    })
    const [each, invite] = shown.nodes.slice(6)
    deepEqual(each.calls, ['run its body for 2 items, 1 at a time'])
    deepEqual(invite.config.data, { name: 'Bob', at: 0 })
  })

  it('has nothing missing once it is there, and never shows a secret', async () => {
    const id = await create(
      SPEC.replace('Onboard', 'Ready')
        .replace(/ {2}mail:[\s\S]*?(?= {2}each:)/, '')
        .replace('"true": mail, ', '"true": end, '),
    )
    await create('name: Next\nnodes: {a: {type: stop}}')
    await suite.db.tenant(suite.api.organizationId, testActor, async (tx) => {
      await putSecret(tx, suite.api.secretsKey, 'acme_token', 'a long enough value')
      await updateOrganization(tx, { env: { base_url: 'https://x.test' } })
    })
    const shown = await preview(id, { email: 'a@b.c', vip: true })
    deepEqual(shown.missing, [])
    const call = shown.nodes.find((node: Json) => node.id === 'call')
    deepEqual([call.config.url, call.unknown], ['https://x.test/leads', ['nodes.save.output.record.id']])
    ok(!JSON.stringify(shown).includes('a long enough value'))
  })

  it('of a large workflow is bounded, and says so', async () => {
    const nodes = Array.from(
      { length: 300 },
      (_, i) => `  n${i}: {type: set_fields, config: {fields: {a: 1}}}\n`,
    )
    const id = await create(`name: Large\nnodes:\n${nodes.join('')}`)
    const shown = await preview(id, {})
    equal(shown.nodes.length, 300)
    const planned = shown.nodes.filter((node: Json) => node.reach === 'runs').length
    ok(planned > 0 && planned <= 200, String(planned))
    match(shown.warnings.at(-1), /^\d+ nodes are not rendered/)
  })
})

describe('activation', () => {
  const suite = withApi()

  it('refuses a workflow with all that is missing, and activates it once it is there or if told to', async () => {
    const request = (path: string, body?: object) =>
      suite.api.request('POST', `/v1/workflows${path}`, body ? { body } : {})
    const spec = `name: Needs
nodes:
  call:
    type: api_request
    config: {url: "{{ env.base }}", headers: {A: "{{ secrets.token }}", B: "{{ env.none | default: 'b' }}"}}
  save:
    type: crm_manager
    config: {operation: upsert, entity: contacts, by: custom_fields.number, fields: {email: ada@example.com, custom_fields: {number: "1", tier: gold}}}
  mail: {type: send_email, config: {to: ada@example.com, subject: S, text: T}}
  child: {type: run_workflow, config: {workflow: Child}}
settings: {error_workflow: On error}
`
    const created = await request('', { spec })
    equal(created.status, 201, JSON.stringify(created.body))
    const id = created.body.workflow_id
    const refused = await request(`/${id}/activate`)
    deepEqual([refused.status, refused.body.error.type], [409, 'conflict'])
    const codes = (answer: Json) => answer.body.error.missing.map((one: Json) => one.code).sort()
    deepEqual(codes(refused), [
      'service_not_configured',
      'service_not_configured',
      'unknown_custom_field',
      'unknown_env',
      'unknown_secret',
      'unknown_workflow',
      'unknown_workflow',
    ])
    match(refused.body.error.message, /^the workflow is not ready: .*; and 6 more$/)
    equal((await suite.api.request('GET', `/v1/workflows/${id}`)).body.status, 'DRAFT')

    await suite.db.tenant(suite.api.organizationId, testActor, async (tx) => {
      await putSecret(tx, suite.api.secretsKey, 'token', 'a long enough value')
      await updateOrganization(tx, { env: { base: 'https://x.test' }, strict_custom_fields: true })
    })
    for (const name of ['Child', 'On error'])
      await request('', { spec: `name: ${name}\nnodes: {a: {type: stop}}` })
    const strict = await request(`/${id}/activate`)
    deepEqual(codes(strict), [
      'service_not_configured',
      'service_not_configured',
      'unknown_custom_field',
      'unknown_custom_field',
    ])
    for (const field of [
      { name: 'number', type: 'text', unique: true },
      { name: 'tier', type: 'text' },
    ])
      equal((await suite.api.request('POST', '/v1/custom-fields/contacts', { body: field })).status, 201)
    deepEqual(
      (await request(`/${id}/activate`)).body.error.missing.map((one: Json) => one.message),
      [
        'the service has no SMTP_URL: the node fails until it is set',
        'the service has no MAIL_FROM: the node fails until it is set',
      ],
    )
    const told = await request(`/${id}/activate`, { allow_missing: true })
    deepEqual([told.status, told.body.status], [200, 'active'])
  })
})
