import { deepEqual, equal } from 'node:assert/strict'
import { missingIn } from '../../../db/model/incoming/unlike-sample.ts'
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
    const other = await webhookWith({ vat: 1 })
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

  it('does not tell of what follows null, or of other items of a list', () => {
    const sample = { a: null, list: [], deep: [[1]], text: 'x', yes: true }
    for (const keys of [
      ['a', 'b'],
      ['list', 3, 'x'],
      ['list', 'first', 'x'],
      ['deep', 0, 9],
      ['text', 'size'],
      ['size'],
    ])
      equal(missingIn(sample, keys), undefined, keys.join('.'))
    for (const keys of [['b'], ['list', 'x'], ['text', 0], ['yes', 'no'], ['constructor']])
      equal(missingIn(sample, keys)?.key, keys.at(-1), keys.join('.'))
  })
})
