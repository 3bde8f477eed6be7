import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { proposeMapping } from '../../../db/model/incoming/mapping/propose.ts'
import { type IncomingTest, startIncoming, type TestWebhook } from '../../support/incoming.ts'

describe('the way to a mapping of an incoming webhook', () => {
  let on: IncomingTest
  before(async () => {
    on = await startIncoming()
  })
  after(() => on?.close())

  const post = (webhook: TestWebhook, path: string, body?: object, status?: number) =>
    on.app('POST', `/webhooks/incoming/${webhook.id}/${path}`, body, status)
  /** All rows that a preview could write. */
  const rows = async () => {
    const tables = ['contacts', 'companies', 'notes', 'runs', 'events', 'record_history', 'incoming_logs']
    const counts = tables.map((table) => on.db.system(table).count({ count: '*' }).first())
    return (await Promise.all(counts)).map((row) => Number(row!.count))
  }
  const payload = {
    vorname: 'Ada',
    Nachname: 'Lovelace',
    'e-mail': 'ada@capture.test',
    firma: 'Analytical',
    nachricht: 'Please call',
    farbe: 'blau',
  }

  it('captures the next request, which writes nothing but its log entry, and of many at once one', async () => {
    const webhook = await on.createWebhook()
    const waiting = await post(webhook, 'capture', { minutes: 5 })
    assert.ok(Date.parse(waiting.body.capturing_until) > Date.now())
    assert.equal(waiting.body.log_id, null)
    const answers = await Promise.all(
      Array.from({ length: 5 }, (_, n) => on.send(webhook, { ...payload, 'e-mail': `c${n}@capture.test` })),
    )
    const captured = answers.filter(({ body }) => body.record_id === null)
    assert.deepEqual(
      captured.map(({ status, body }) => [status, body.action, body.message]),
      [[200, 'skipped', 'captured as a sample: nothing was written']],
    )
    assert.equal(answers.filter(({ body }) => body.action === 'created').length, 4)
    const shown = (await on.app('GET', `/webhooks/incoming/${webhook.id}`)).body
    assert.equal(shown.capturing_until, null)
    const entry = (await on.app('GET', `/webhooks/incoming/${webhook.id}/logs/${shown.sample_log_id}`)).body
    assert.deepEqual([entry.status, entry.action, entry.record_id], ['Success', 'Skipped', null])
    // A captured request can be replayed.
    const { body } = await post(webhook, 'replays', { log_id: shown.sample_log_id })
    assert.equal(body.result.outcome, 'created')
  })

  it('proposes rules from the sample, with the reason for each, that map as automatic mapping does', async () => {
    const webhook = await on.createWebhook()
    await post(webhook, 'mapping/propose', undefined, 422)
    await post(webhook, 'capture')
    await on.send(webhook, payload)
    const { body } = await post(webhook, 'mapping/propose')
    const reasons = Object.fromEntries(
      body.reasons.map(({ to, from, value, reason }: Record<string, string>) => [to, [from, value, reason]]),
    )
    assert.deepEqual(reasons.first_name, ['vorname', 'Ada', '"vorname" is a common name of first_name'])
    assert.equal(reasons.email[1], 'ada@capture.test')
    assert.equal(reasons.company_name[0], 'firma')
    assert.deepEqual(body.unmapped, ['farbe'])
    const automatic = await post(webhook, 'test', { payload })
    await on.app('PATCH', `/webhooks/incoming/${webhook.id}`, { field_mapping: body.field_mapping })
    const manual = await post(webhook, 'test', { payload })
    const { fields, company_name, note } = manual.body.mapped_data
    const wanted = automatic.body.mapped_data
    assert.deepEqual([fields, company_name, note], [wanted.fields, wanted.company_name, wanted.note])
  })

  it('names the sender, an opt-out, custom fields, split names and options as reasons', () => {
    const shopify = JSON.parse(
      readFileSync(new URL('../../fixtures/webhooks/shopify-customer.json', import.meta.url), 'utf8'),
    )
    const body = shopify.payload ?? shopify
    const known = proposeMapping(body, 'contacts', { 'x-shopify-topic': 'customers/create' })
    assert.equal(known.sender, 'Shopify')
    assert.ok(known.proposed.some(({ reason }) => /^Shopify sends the email here$/.test(reason)))
    const { proposed } = proposeMapping(
      {
        name: 'Ada Lovelace',
        lead_status: 'In Progress',
        unsubscribed: 'yes',
        custom_fields: { tier: 'gold' },
        tags: ['a', 'b'],
      },
      'contacts',
    )
    const rules = Object.fromEntries(proposed.map(({ rule, reason }) => [rule.to, { ...rule, reason }]))
    assert.deepEqual(rules.last_name!.transforms, [{ type: 'split_name', part: 'last_name' }])
    assert.equal(rules.lead_status!.reason, '"lead_status" is the name of the field')
    assert.deepEqual(rules.do_not_contact!.when, { path: 'unsubscribed', is: 'equal', to: 'yes' })
    assert.equal(rules['custom_fields.tier']!.reason, '"tier" names a custom field')
    assert.equal(rules.tags!.from, 'tags')
  })

  it('previews a sample through a draft: what it would create or change, and what is wrong, without writing', async () => {
    const webhook = await on.createWebhook()
    await on.send(webhook, { email: 'known@capture.test', first_name: 'Old' })
    const before = await rows()
    const draft = {
      mode: 'manual',
      rules: [rule('m', 'email'), rule('n', 'first_name'), rule('c', 'company_name')],
    }
    const preview = (sample: object) =>
      post(webhook, 'mapping/preview', { payload: sample, field_mapping: draft })
    const created = (await preview({ m: 'new@capture.test', c: 'Newco' })).body
    assert.deepEqual([created.outcome, created.record_id, created.starts_workflow], ['created', null, false])
    assert.deepEqual(created.changes.email, { from: null, to: 'new@capture.test' })
    const updated = (await preview({ m: 'known@capture.test', n: 'New' })).body
    assert.deepEqual(
      [updated.outcome, updated.changes],
      ['updated', { first_name: { from: 'Old', to: 'New' } }],
    )
    const failed = (await preview({ m: 'nobody' })).body
    assert.deepEqual(
      [failed.outcome, failed.error, Object.keys(failed.details)],
      ['failed', 'validation_failed', ['email']],
    )
    assert.deepEqual(await rows(), before)
    const cut = await post(webhook, 'mapping/preview', { payload: '{"a":', content_type: 'application/json' })
    assert.deepEqual([cut.body.outcome, cut.body.error], ['failed', 'invalid_payload'])
  })

  it('needs the role of an admin', async () => {
    const webhook = await on.createWebhook()
    const headers = await on.signIn('member')
    for (const path of ['capture', 'mapping/propose', 'mapping/preview']) {
      const url = `/app/webhooks/incoming/${webhook.id}/${path}`
      assert.equal((await on.api.request('POST', url, { key: null, headers, body: {} })).status, 403)
    }
  })
})

const rule = (from: string, to: string) => ({ from, to })
