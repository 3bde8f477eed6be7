import assert from 'node:assert/strict'
import { memberEvents } from '../support/record-lists.ts'
import { until } from '../support/until.ts'
import { withDeliveries } from '../support/with-deliveries.ts'

describe('lists of records and their events', function () {
  this.timeout(120_000)
  const on = withDeliveries()
  const call = async (method: string, path: string, body?: object) => {
    const answer = await on.api.request(method, `/v1${path}`, body === undefined ? {} : { body })
    assert.ok(answer.status < 300, `${path}: ${JSON.stringify(answer.body)}`)
    return answer.body
  }
  const filled = (id: string) =>
    until(async () => (await call('GET', `/lists/${id}`)).status === 'ready', 'the list')
  const runsOf = (workflow: string) => on.db.system('runs').where({ workflow_id: workflow }).orderBy('id')

  it('start the workflows of one list, with its record, and reach outgoing webhooks', async () => {
    const webhook = await on.createWebhook({ events: ['list.*'] })
    const filter = { entity: 'deals', name: 'Large', type: 'filter', query: { 'amount[gte]': 1000 } }
    const { id } = await call('POST', '/lists', filter)
    const other = await call('POST', '/lists', {
      ...filter,
      name: 'Any',
      query: { 'amount[is_null]': false },
    })
    for (const list of [id, other.id]) await filled(list)
    const { workflow_id } = await call('POST', '/workflows', {
      spec: `name: Greet
trigger:
  type: event
  events: [list.entered]
  when: "{{ trigger.data.list.id == '${id}' }}"
nodes:
  keep: {type: set_fields, config: {fields: {deal: "{{ trigger.data.id }}", name: "{{ trigger.data.record.name }}"}}}
outputs: {deal: "{{ nodes.keep.output.deal }}", name: "{{ nodes.keep.output.name }}"}
`,
    })
    await call('POST', `/workflows/${workflow_id}/activate`)
    const deal = await call('POST', '/objects/deals', { name: 'Engine', amount: 10 })
    await until(
      async () => (await memberEvents(on.db, other.id)).length === 1,
      'the entry into the other list',
    )
    assert.deepEqual(await runsOf(workflow_id), [])
    await call('PATCH', `/objects/deals/${deal.id}`, { amount: 5000 })
    const run = await until(
      async () => (await runsOf(workflow_id)).find(({ status }) => status === 'completed'),
      'the run',
    )
    assert.deepEqual(run.outputs, { deal: deal.id, name: 'Engine' })
    await call('DELETE', `/objects/deals/${deal.id}`)
    await until(async () => (await memberEvents(on.db, id)).length === 2, 'the leaving')
    const sent = () => on.db.system('deliveries').where({ webhook_id: webhook.id }).orderBy('id')
    await until(async () => (await sent()).length === 4, 'the deliveries')
    const names = (await memberEvents(on.db, id)).map(({ name, actor }) => [name, actor.type])
    assert.deepEqual(names, [
      ['list.entered', 'key'],
      ['list.left', 'key'],
    ])
    assert.equal((await runsOf(workflow_id)).length, 1)
  })

  it('follow changes of workflows, and end a chain that changes its own condition', async () => {
    const { id } = await call('POST', '/lists', {
      entity: 'contacts',
      name: 'Open',
      type: 'filter',
      query: { lead_status: 'open' },
    })
    await filled(id)
    const { workflow_id } = await call('POST', '/workflows', {
      spec: `name: Swing
trigger: {type: event, events: [list.entered, list.left], when: "{{ trigger.data.list.id == '${id}' }}"}
nodes:
  which: {type: condition, config: {conditions: [{left: "{{ trigger.event.name }}", operator: eq, right: list.left}]}, next: {"true": open, "false": close}}
  open: {type: crm_manager, config: {operation: update, entity: contacts, id: "{{ trigger.data.id }}", fields: {lead_status: open}}, next: end}
  close: {type: crm_manager, config: {operation: update, entity: contacts, id: "{{ trigger.data.id }}", fields: {lead_status: new}}}
`,
    })
    await call('POST', `/workflows/${workflow_id}/activate`)
    await call('POST', '/objects/contacts', { first_name: 'Ada', lead_status: 'open' })
    const last = await until(
      async () => (await runsOf(workflow_id)).find(({ status }) => status === 'failed'),
      'the end of the chain',
    )
    assert.equal(last.error.code, 'chain_too_long')
  })

  it('raise nothing of an erased person', async () => {
    const { id } = await call('POST', '/lists', { entity: 'contacts', name: 'Persons', type: 'static' })
    const contact = await call('POST', '/objects/contacts', { first_name: 'Eve', email: 'eve@mail.example' })
    await call('POST', `/lists/${id}/members`, { add: [contact.id] })
    await until(async () => (await memberEvents(on.db, id)).length === 1, 'the entry')
    const { id: erasure } = await call('POST', `/objects/contacts/${contact.id}/erase`, { confirm: true })
    await until(async () => (await call('GET', `/erasures/${erasure}`)).status === 'completed', 'the erasure')
    assert.deepEqual(await memberEvents(on.db, id), [])
    assert.equal((await call('GET', `/lists/${id}`)).member_count, 0)
    assert.equal(await on.db.system('list_members').where({ list_id: id }).first('record_id'), undefined)
  })
})
