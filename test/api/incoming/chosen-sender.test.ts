import { deepEqual, equal, match } from 'node:assert/strict'
import { mapPayload } from '../../../db/model/incoming/mapping/map.ts'
import { type IncomingTest, startIncoming, type TestWebhook } from '../../support/incoming.ts'

const ada = { email_address: 'ada@example.com', first_name: 'Ada', state: 'active' }

describe('the chosen sender of a webhook', () => {
  let test: IncomingTest
  before(async () => {
    test = await startIncoming()
  })
  after(() => test?.close())

  const pathOf = ({ id }: TestWebhook) => `/webhooks/incoming/${id}`
  const shown = async (webhook: TestWebhook) => (await test.app('GET', pathOf(webhook))).body
  const change = (webhook: TestWebhook, body: object, status?: number) =>
    test.app('PATCH', pathOf(webhook), body, status)
  const send = (webhook: TestWebhook, body: object) =>
    test.api.request('POST', `${pathOf(webhook)}?token=${encodeURIComponent(webhook.secret)}`, {
      key: null,
      body,
    })

  it('is shown, is changed with the settings that it needs, and is cleared alone', async () => {
    const webhook = await test.createWebhook({ sender: 'typeform' })
    const typeform = await shown(webhook)
    deepEqual([typeform.sender, typeform.verification], ['typeform', { type: 'typeform' }])
    await change(webhook, { sender: 'kit' })
    const kit = await shown(webhook)
    deepEqual([kit.sender, kit.verification, kit.dedupe_window], ['kit', { type: 'token' }, 300])
    await change(webhook, { sender: 'aircall', dedupe_window: 60 })
    const aircall = await shown(webhook)
    deepEqual([aircall.dedupe_window, aircall.secret_fields], [60, ['token']])
    await change(webhook, { sender: null })
    const none = await shown(webhook)
    deepEqual([none.sender, none.verification, none.dedupe_window], [null, { type: 'token' }, 60])
    const refused = await change(webhook, { sender: 'acme' }, 422)
    match(JSON.stringify(refused.body), /sender/)
    equal((await test.app('GET', '/webhooks/incoming')).body.data[0].sender, null)
    const other = await test.createWebhook()
    equal((await shown(other)).sender, null)
  })

  it('keeps its webhook when it is cleared: the sender is recognised as before', async () => {
    const webhook = await test.createWebhook({ sender: 'kit' })
    await change(webhook, { sender: null })
    const { status, body } = await send(webhook, { subscriber: ada })
    deepEqual([status, body.action, body.warnings], [200, 'created', undefined])
  })

  it('must accept the secret of the webhook', async () => {
    const webhook = await test.createWebhook({ sender: 'kit', secret: 'not a standard secret' })
    equal((await change(webhook, { sender: 'typeform' })).status, 200)
    await change(webhook, { verification: { type: 'standard_webhooks' } }, 422)
  })

  it('decides where the body is like one of another', () => {
    const payload = { type: 'email.sent', data: { email_id: 'e', from: 'ours@host.example', to: [] } }
    const settings = { field_mapping: { mode: 'automatic' }, kind: 'contacts' } as const
    const headers = { 'svix-id': 'msg_1' }
    equal(mapPayload(payload, settings, headers).sender, 'Resend')
    equal(mapPayload(payload, { ...settings, sender: 'svix' }, headers).sender, 'Svix')
  })

  it('decides for a sample, which has no headers', async () => {
    const webhook = await test.createWebhook({ sender: 'zendesk' })
    const payload = { title: 'The mill jams', requester: { email: 'ada@example.com' } }
    const { body } = await test.app('POST', `${pathOf(webhook)}/test`, { payload })
    equal(body.mapped_data.sender, 'Zendesk')
    const proposal = await test.app('POST', `${pathOf(webhook)}/mapping/propose`, { payload })
    equal(proposal.body.sender, 'Zendesk')
  })

  it('would end the webhook if events without a person were refused, also of a shape that is not known', async () => {
    const webhook = await test.createWebhook({ sender: 'kit' })
    const { status, body } = await send(webhook, { settings: { changed: true } })
    deepEqual([status, body.action], [200, 'skipped'])
    match(body.message, /^the payload of Kit has nothing of a contact/)
    const unknown = await test.createWebhook({ verification: { type: 'token' } })
    equal((await send(unknown, { settings: { changed: true } })).status, 400)
  })

  it('of a body that is plainly of another one is a problem of the webhook', async () => {
    for (const settings of [
      {},
      { field_mapping: { mode: 'manual', rules: [{ from: 'subscriber.email_address', to: 'email' }] } },
    ]) {
      const webhook = await test.createWebhook({ sender: 'gumroad', ...settings })
      equal((await shown(webhook)).problem, null)
      const { status, body } = await send(webhook, { subscriber: { ...ada, id: 1 } })
      equal(status, 200, JSON.stringify(body))
      equal((await test.contact(body.record_id)).email, 'ada@example.com')
      deepEqual(body.warnings, [
        'the payload is one of Kit, and not of Gumroad, which is the sender of the webhook',
      ])
      const [entry] = await test.logs(webhook)
      deepEqual(entry.warnings, body.warnings)
      match(
        (await shown(webhook)).problem,
        /^1 of the last 1 requests: of Kit, and not of Gumroad, the sender of the webhook; /,
      )
      await change(webhook, { sender: 'kit' })
      equal((await shown(webhook)).problem, null)
    }
  })

  it('of a notification that is plainly of another one too, though nothing is written', async () => {
    const webhook = await test.createWebhook({ sender: 'kit' })
    const { status, body } = await send(webhook, { id: 'tr_7UhSN1zuXS' })
    deepEqual([status, body.action], [200, 'skipped'])
    match(
      (await shown(webhook)).problem,
      /^1 of the last 1 requests: of Mollie, and not of Kit, the sender of the webhook; /,
    )
  })

  it('is taken for a plain trigger too', async () => {
    const webhook = await test.createWebhook({ sender: 'gumroad', target_entity: 'none' })
    const { body } = await send(webhook, { subscriber: ada })
    match(JSON.stringify(body.warnings), /one of Kit, and not of Gumroad/)
  })
})
