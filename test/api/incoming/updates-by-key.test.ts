import { deepEqual, equal, match } from 'node:assert/strict'
import { type IncomingTest, startIncoming, type TestWebhook } from '../../support/incoming.ts'

describe('an event that names a record by its key, without a name or an address', () => {
  let test: IncomingTest
  before(async () => {
    test = await startIncoming()
  })
  after(() => test?.close())

  let messages = 0
  /** An event of Segment, which knows a user by their id. */
  const user = (userId: string, traits: object, more: object = {}) => ({
    type: 'identify',
    messageId: `m-${++messages}`,
    userId,
    traits,
    ...more,
  })
  const customerio = (id: string, metric: string) => ({
    event_id: `e-${++messages}`,
    object_type: 'email',
    metric,
    data: { identifiers: { id }, broadcast_id: 9 },
  })
  const rules = (...names: string[]) => ({
    field_mapping: {
      mode: 'manual',
      rules: names.map((name) => {
        const [from, to = from] = name.split('>')
        return { from, to }
      }),
    },
  })
  const ofContact = async (id: string, ...names: string[]) => {
    const contact = await test.contact(id)
    return names.map((name) => contact[name])
  }
  const made = async (webhook: TestWebhook, id: string) =>
    (await test.send(webhook, user(id, { email: `${id}@example.com`, firstName: 'Ada' }))).body.record_id
  const count = async (table: string) => Number((await test.db.system(table).count({ n: '*' }).first())!.n)

  it('of a known sender updates the record', async () => {
    const webhook = await test.createWebhook()
    const id = await made(webhook, 'u-1')
    const { status, body } = await test.send(
      webhook,
      user('u-1', { title: 'Countess', company: { name: 'Analytical Engines' } }),
    )
    deepEqual([status, body.action, body.record_id], [200, 'updated', id])
    const [first_name, email, job_title, company] = await ofContact(
      id,
      'first_name',
      'email',
      'job_title',
      'company_id',
    )
    deepEqual([first_name, email, job_title], ['Ada', 'u-1@example.com', 'Countess'])
    match(company, /^[0-9a-f-]{36}$/)
  })

  it('is an opt-out of the record', async () => {
    const webhook = await test.createWebhook()
    const id = await made(webhook, 'u-2')
    const { status, body } = await test.send(webhook, customerio('u-2', 'unsubscribed'))
    deepEqual([status, body.action, body.record_id], [200, 'updated', id])
    deepEqual(await ofContact(id, 'do_not_contact'), [true])
  })

  it('as an opt-out of somebody unknown is refused: it must be seen', async () => {
    const { status, body } = await test.send(await test.createWebhook(), customerio('u-3', 'unsubscribed'))
    deepEqual([status, body.error], [400, 'validation_failed'])
    match(body.message, /^no contact has this external_id/)
  })

  it('is skipped where there is no such record, with what is missing in the answer and the log', async () => {
    const webhook = await test.createWebhook()
    const before = [await count('contacts'), await count('companies')]
    const { status, body } = await test.send(
      webhook,
      user('u-4', { title: 'Countess', company: { name: 'Nobody Ltd' } }),
    )
    deepEqual([status, body.action, body.record_id, body.message], [200, 'skipped', null, 'contact skipped'])
    const missing =
      'no contact has this external_id, and the payload does not map to a new one: email: at least one of email, phone, first_name, last_name is required'
    deepEqual(body.warnings, [missing])
    const [entry] = await test.logs(webhook)
    deepEqual(
      [entry.status, entry.action, entry.record_id, entry.warnings],
      ['Success', 'Skipped', null, [missing]],
    )
    deepEqual([await count('contacts'), await count('companies')], before)
  })

  it('can be replayed once there is one', async () => {
    const webhook = await test.createWebhook()
    await test.send(webhook, user('u-5', { title: 'Countess' }))
    const [entry] = await test.logs(webhook)
    const id = await made(webhook, 'u-5')
    const { body } = await test.app('POST', `/webhooks/incoming/${webhook.id}/replays`, { log_id: entry.id })
    deepEqual([body.result.outcome, body.result.record_id], ['updated', id])
    deepEqual(await ofContact(id, 'job_title'), ['Countess'])
  })

  it('leaves the record as it is with Skip, and is none with Create Anyway', async () => {
    const id = await made(await test.createWebhook(), 'u-6')
    const skipping = await test.createWebhook({ deduplication: { action: 'Skip', by: 'email' } })
    const skipped = (await test.send(skipping, user('u-6', { title: 'Countess' }))).body
    deepEqual([skipped.action, skipped.record_id], ['skipped', id])
    const creating = await test.createWebhook({ deduplication: { action: 'Create Anyway', by: 'email' } })
    const nothing = await test.send(creating, user('u-6', { title: 'Countess' }))
    deepEqual(
      [nothing.status, nothing.body.message],
      [200, 'the payload of Segment has nothing of a contact: nothing was written'],
    )
    deepEqual(await ofContact(id, 'job_title'), [null])
  })

  it('applies in the order of a batch', async () => {
    const webhook = await test.createWebhook()
    const { body } = await test.send(webhook, [
      user('u-7', { title: 'too early' }),
      user('u-7', { email: 'u-7@example.com', title: 'Countess' }),
      user('u-7', { title: 'Programmer' }),
      user('u-7', { website: 'https://ada.example' }),
    ])
    deepEqual(
      body.results.map(({ action }: { action: string }) => action),
      ['skipped', 'created', 'updated', 'updated'],
    )
    const id = body.results[1].record_id
    deepEqual(await ofContact(id, 'job_title', 'website'), ['Programmer', 'https://ada.example'])
  })

  it('as an opt-out in a batch comes after the event that makes its record', async () => {
    const webhook = await test.createWebhook()
    const { body } = await test.send(webhook, [
      user('u-10', { email: 'u-10@example.com' }),
      customerio('u-10', 'unsubscribed'),
    ])
    deepEqual(
      body.results.map(({ action }: { action: string }) => action),
      ['created', 'updated'],
    )
    deepEqual(await ofContact(body.results[0].record_id, 'do_not_contact'), [true])
  })

  it('by rules of any sender updates the record, and is refused without one', async () => {
    const id = await made(await test.createWebhook(), 'u-8')
    const webhook = await test.createWebhook(rules('id>external_id', 'job>job_title', 'mail>email'))
    const { body } = await test.send(webhook, { id: 'u-8', job: 'Countess' })
    deepEqual([body.action, body.record_id], ['updated', id])
    deepEqual(await ofContact(id, 'job_title', 'email'), ['Countess', 'u-8@example.com'])
    const other = await test.send(webhook, { id: 'nobody', job: 'Countess' })
    deepEqual([other.status, Object.keys(other.body.details)], [400, ['email']])
    match(other.body.message, /^no contact has this external_id/)
    const wrong = await test.send(webhook, { id: 'u-8', job: 'Countess', mail: 'n/a' })
    deepEqual([wrong.status, Object.keys(wrong.body.details)], [400, ['email']])
  })

  it('of a sender that is not known needs a rule, or the deduplication by the key', async () => {
    const id = await made(await test.createWebhook(), 'u-9')
    const payload = { external_id: 'u-9', job_title: 'Countess' }
    equal((await test.send(await test.createWebhook(), payload)).status, 400)
    const byKey = await test.createWebhook({ deduplication: { action: 'Update', by: 'external_id' } })
    equal((await test.send(byKey, payload)).body.record_id, id)
    const byPath = await test.createWebhook({ deduplication: { action: 'Update', by: 'payload.user.ref' } })
    const { body } = await test.send(byPath, { user: { ref: 'u-9' }, job_title: 'Programmer' })
    deepEqual([body.action, body.record_id], ['updated', id])
    deepEqual(await ofContact(id, 'job_title'), ['Programmer'])
  })
})

describe('an event of a known sender in which rules find a default only', () => {
  it('says nothing of a record, and its rules without a value are a problem of the webhook', async () => {
    const test = await startIncoming()
    try {
      const webhook = await test.createWebhook({
        field_mapping: {
          mode: 'manual',
          rules: [
            { from: 'traits.email', to: 'email' },
            { from: 'traits.stage', to: 'lifecycle_stage', default: 'lead' },
          ],
        },
      })
      for (let n = 0; n < 10; n++) {
        const { status, body } = await test.send(webhook, {
          type: 'track',
          messageId: `t-${n}`,
          event: 'Ping',
        })
        deepEqual(
          [status, body.message],
          [200, 'the payload of Segment has nothing of a contact: nothing was written'],
        )
      }
      const { body } = await test.app('GET', `/webhooks/incoming/${webhook.id}`)
      match(body.problem, /^the last 10 requests had no value for traits\.email → email: /)
    } finally {
      await test.close()
    }
  })
})
