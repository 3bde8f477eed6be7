import assert from 'node:assert/strict'
import { type IncomingTest, startIncoming, type TestWebhook } from '../../support/incoming.ts'

describe('custom fields of incoming webhooks', () => {
  let test: IncomingTest
  let webhook: TestWebhook
  before(async () => {
    test = await startIncoming()
    const define = (body: object) => test.api.request('POST', '/v1/custom-fields/contacts', { body })
    await define({ name: 'score', type: 'number' })
    await define({ name: 'interests', type: 'multi_select', options: ['Engines', 'Looms'] })
    await define({ name: 'code', type: 'text', unique: true })
    await define({ name: 'since', type: 'date', required: true, default: '2026-01-31' })
    const rules = ['score', 'interests', 'code', 'since'].map((name) => ({
      from: name,
      to: `custom_fields.${name}`,
    }))
    webhook = await test.createWebhook({
      field_mapping: { mode: 'manual', rules: [{ from: 'name', to: 'first_name' }, ...rules] },
    })
  })
  after(() => test.close())

  const form = { 'Content-Type': 'application/x-www-form-urlencoded' }

  it('are converted to their defined types, also from forms', async () => {
    const { body } = await test.send(webhook, 'name=Ada&score=12.50&interests=engines;looms&code=A1', form)
    const { custom_fields } = await test.contact(body.record_id)
    assert.deepEqual(custom_fields, {
      score: 12.5,
      interests: ['Engines', 'Looms'],
      code: 'A1',
      since: '2026-01-31',
    })
  })

  it('refuse invalid values with all issues, and write nothing', async () => {
    const { status, body } = await test.send(webhook, { name: 'Ada', score: 'many', since: '2026-02-30' })
    assert.deepEqual([status, body.error], [400, 'validation_failed'])
    assert.deepEqual(Object.keys(body.details), ['custom_fields.score', 'custom_fields.since'])
    const taken = await test.send(webhook, { name: 'Ada', code: 'a1' })
    assert.deepEqual([taken.status, Object.keys(taken.body.details)], [400, ['custom_fields.code']])
  })

  it('are validated by a test of a payload', async () => {
    const { body } = await test.app('POST', `/webhooks/incoming/${webhook.id}/test`, {
      payload: { name: 'Ada', score: 'many' },
    })
    assert.equal(body.valid, false)
    assert.deepEqual(Object.keys(body.details), ['custom_fields.score'])
  })
})
