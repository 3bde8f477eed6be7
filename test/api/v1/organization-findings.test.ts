import { deepEqual, equal } from 'node:assert/strict'
import { readdirSync, readFileSync } from 'node:fs'
import { ORGANIZATION_CODES } from '../../support/organization-codes.ts'
import { withApi } from '../../support/with-api.ts'

const FOLDER = new URL('../../fixtures/specs/organization/', import.meta.url)

/** The codes that a spec of the folder has in validation, and those with which it is not activated. */
const EXPECTED: Record<string, { validation: string[]; activation?: string[] }> = {
  'what-is-not-there.yaml': {
    validation: [
      'unknown_custom_field 10:150',
      'unknown_custom_field 10:79',
      'service_not_configured 9:3',
      'service_not_configured 9:3',
      'unknown_workflow 7:50',
      'draft_workflow 8:50',
      'unknown_env 5:19',
      'unknown_secret 5:53',
    ],
    activation: [
      'service_not_configured mail',
      'service_not_configured mail',
      'unknown_workflow child',
      'unknown_env call',
      'unknown_secret call',
      'unknown_custom_field save',
    ],
  },
  'outputs-that-a-workflow-lacks.yaml': {
    validation: ['workflow_outputs 4:16', 'draft_workflow 3:50'],
  },
  'inputs-that-a-workflow-lacks.yaml': { validation: ['draft_workflow 3:50', 'workflow_inputs 3:66'] },
  'payload-unlike-the-sample.yaml': {
    validation: [
      'unlike_sample 10:15',
      'unlike_sample 11:15',
      'unlike_sample 12:15',
      'unlike_sample 13:16',
      'unlike_sample 14:11',
    ],
  },
  'events-that-nothing-raises.yaml': {
    validation: ['unraised_event 2:33', 'unraised_event 4:23', 'unraised_event 6:61'],
  },
  'sensitive-fields.yaml': { validation: ['reads_mask 7:27', 'reads_mask 6:11', 'reads_mask 9:92'] },
  'key-that-is-not-unique.yaml': {
    validation: ['unknown_custom_field 8:11'],
    activation: ['unknown_custom_field save'],
  },
  'pool-of-others.yaml': { validation: ['unknown_pool 3:68'] },
}

describe('findings about the organization', () => {
  const suite = withApi()
  const post = (path: string, body?: object) =>
    suite.api.request('POST', `/v1/workflows${path}`, body ? { body } : {})

  before(async () => {
    await post('', { spec: 'name: Draft\nnodes: {a: {type: stop}}' })
    const saved = await post('', { spec: 'name: Sampled\ntrigger: webhook\nnodes: {a: {type: stop}}' })
    const hooks = '/v1/webhooks/incoming'
    const { body: webhook } = await suite.api.request('POST', hooks, {
      body: { name: 'Orders', target_entity: 'none', workflow_id: saved.body.workflow_id },
    })
    await suite.api.request('POST', `${hooks}/${webhook.id}/capture`)
    await suite.api.request('POST', '/v1/custom-fields/contacts', {
      body: { name: 'ssn', type: 'text', sensitive: true },
    })
    await suite.api.request('POST', '/v1/custom-fields/contacts', {
      body: { name: 'weight', type: 'number' },
    })
    const order = {
      customer: { email: 'ada@example.com', phone: null },
      lines: [{ sku: 'A', price: 1 }],
      note: 'x',
    }
    await suite.api.request('POST', `/webhooks/incoming/${webhook.id}`, {
      key: null,
      headers: { 'X-Webhook-Secret': webhook.secret },
      body: order,
    })
  })

  const found = new Set<string>()
  for (const name of readdirSync(FOLDER))
    it(`are those of ${name}`, async () => {
      const spec = readFileSync(new URL(name, FOLDER), 'utf8')
      const { validation, activation } = EXPECTED[name]!
      const { body } = await post('/validate', { spec })
      const findings = [...body.errors, ...body.warnings] as { code: string; line: number; column: number }[]
      deepEqual(
        findings.map(({ code, line, column }) => `${code} ${line}:${column}`),
        validation,
      )
      for (const { code } of findings) found.add(code)
      if (!activation) return
      const saved = await post('', { spec })
      equal(saved.status, 201)
      const { missing } = (await post(`/${saved.body.workflow_id}/activate`)).body.error
      deepEqual(
        missing.map(({ code, node_id }: { code: string; node_id: string }) => `${code} ${node_id}`),
        activation,
      )
      for (const { code } of missing) found.add(code)
    })

  it('tell how a custom field becomes the key of an upsert', async () => {
    const spec = readFileSync(new URL('key-that-is-not-unique.yaml', FOLDER), 'utf8')
    const { valid, warnings } = (await post('/validate', { spec })).body
    equal(valid, true)
    equal(
      warnings[0].message,
      'custom_fields.weight of contacts is not defined as unique: no record can be found by it',
    )
    equal(
      warnings[0].hint,
      'make it unique: PATCH /v1/custom-fields/contacts/weight {"unique": true}, with the scope contacts:write',
    )
    const body = { unique: true }
    const path = '/v1/custom-fields/contacts/weight'
    equal((await suite.api.request('PATCH', path, { body })).status, 200)
    deepEqual((await post('/validate', { spec })).body.warnings, [])
    await suite.api.request('PATCH', path, { body: { unique: false } })
  })

  it('refuse a search by a sensitive field, of which a run finds nothing', async () => {
    const config = {
      operation: 'search',
      entity: 'contacts',
      filters: { 'custom_fields.ssn': '1', 'custom_fields.ssn[is_null]': 'false' },
      sort: 'custom_fields.ssn',
    }
    const definition = { name: 'Found', nodes: [{ id: 'a', type: 'crm_manager', config }] }
    const { errors } = (await post('/validate', { definition })).body
    deepEqual(
      errors.map(({ code, path }: { code: string; path: string }) => `${code} ${path}`),
      ['invalid_value /nodes/0/config/filters/custom_fields.ssn', 'invalid_value /nodes/0/config/sort'],
    )
  })

  it('refuse an event of a record that neither the service nor a workflow raises', async () => {
    const spec = `name: Closed
trigger: {type: event, events: [deal.status_changed, task.overdue]}
settings: {cancel_on: [{event: contact.archived, when: "{{ event.record.id == run.id }}"}]}
nodes: {a: {type: wait_for_event, config: {event: [deal.closed], timeout: 1h}}}`
    const { valid, errors } = (await post('/validate', { spec })).body
    equal(valid, false)
    deepEqual(
      errors.map(({ code, line, column, hint }: Record<string, string>) => [code, `${line}:${column}`, hint]),
      [
        ['unknown_event', '2:33', 'did you mean deal.stage_changed?'],
        [
          'unknown_event',
          '2:54',
          'one of task.created, task.updated, task.deleted, task.restored, task.merged, task.assigned, task.reminder, task.completed',
        ],
        [
          'unknown_event',
          '3:32',
          'one of contact.created, contact.updated, contact.deleted, contact.restored, contact.merged',
        ],
        [
          'unknown_event',
          '4:52',
          'one of deal.created, deal.updated, deal.deleted, deal.restored, deal.merged, deal.stage_changed, deal.won, deal.lost',
        ],
      ],
    )
    equal((await post('', { spec })).body.error.type, 'workflow_invalid')
  })

  it('accept the events that a node of any workflow raises, cleanup included', async () => {
    const raise = (event: string) => `{type: emit_event, config: {event: ${event}}}`
    const spec = `name: Raises
settings: {finally: ${raise('lead.scored')}}
nodes: {a: ${raise('deal.closed')}, b: {type: stop}}`
    equal((await post('', { spec })).status, 201)
    const heard = 'trigger: {type: event, events: [deal.closed, lead.scored, lead.scoerd]}'
    const { valid, warnings } = (
      await post('/validate', { spec: `name: Hears\n${heard}\nnodes: {a: {type: stop}}` })
    ).body
    equal(valid, true)
    deepEqual(
      warnings.map(({ code, hint }: Record<string, string>) => [code, hint]),
      [['unraised_event', 'did you mean lead.scored?']],
    )
  })

  it('have a fixture of each code', () => {
    deepEqual([...found].sort(), ORGANIZATION_CODES.toSorted())
  })
})
