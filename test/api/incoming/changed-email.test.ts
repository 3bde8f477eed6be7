import { deepEqual, equal, match } from 'node:assert/strict'
import { type IncomingTest, startIncoming, type TestWebhook } from '../../support/incoming.ts'

describe('a person of a sender whose email has changed', () => {
  let test: IncomingTest
  before(async () => {
    test = await startIncoming()
  })
  after(() => test?.close())

  let messages = 0
  /** An event of Segment, which knows a user by their id. */
  const user = (userId: string | undefined, email: string, traits: object = {}) => ({
    type: 'identify',
    messageId: `m-${++messages}`,
    ...(userId === undefined ? {} : { userId }),
    traits: { email, firstName: 'Ada', ...traits },
  })
  const sent = async (webhook: TestWebhook, body: object) => {
    const answer = await test.send(webhook, body)
    return { ...answer.body, status: answer.status }
  }
  const people = async () => Number((await test.db.system('contacts').count({ n: '*' }).first())!.n)
  const emailOf = async (id: string) => (await test.contact(id)).email
  const RULES = {
    field_mapping: {
      mode: 'manual',
      rules: [
        { from: 'id', to: 'external_id' },
        { from: 'mail', to: 'email' },
        { from: 'name', to: 'first_name' },
      ],
    },
  }

  it('is found by the id, and has the new email, also in the events that follow', async () => {
    const webhook = await test.createWebhook()
    const { record_id } = await sent(webhook, user('c-1', 'old-1@example.com'))
    const before = await people()
    const changed = await sent(webhook, user('c-1', 'new-1@example.com', { title: 'Countess' }))
    deepEqual([changed.status, changed.action, changed.record_id], [200, 'updated', record_id])
    const { email, job_title } = await test.contact(record_id)
    deepEqual([email, job_title], ['new-1@example.com', 'Countess'])
    const later = await sent(webhook, user('c-1', 'new-1@example.com', { title: 'Programmer' }))
    deepEqual([later.status, later.record_id], [200, record_id])
    equal(await people(), before)
  })

  it('is found by the id by rules of any sender, too', async () => {
    const webhook = await test.createWebhook(RULES)
    const { record_id } = await sent(webhook, { id: 'c-2', mail: 'old-2@example.com', name: 'Ada' })
    const changed = await sent(webhook, { id: 'c-2', mail: 'new-2@example.com' })
    deepEqual([changed.status, changed.action, changed.record_id], [200, 'updated', record_id])
    equal(await emailOf(record_id), 'new-2@example.com')
  })

  it('stays as it is with Skip', async () => {
    const webhook = await test.createWebhook({ deduplication: { action: 'Skip', by: 'email' } })
    const { record_id } = await sent(webhook, user('c-3', 'old-3@example.com'))
    const changed = await sent(webhook, user('c-3', 'new-3@example.com'))
    deepEqual([changed.status, changed.action, changed.record_id], [200, 'skipped', record_id])
    equal(await emailOf(record_id), 'old-3@example.com')
  })

  it('is not guessed where the id and the email are of two people: it is said, and the hook goes on', async () => {
    const webhook = await test.createWebhook()
    const one = await sent(webhook, user('c-4', 'one-4@example.com'))
    const other = await sent(webhook, user(undefined, 'other-4@example.com'))
    const before = await Promise.all(['contacts', 'companies', 'notes'].map((kind) => test.db.system(kind)))
    const both = await sent(
      webhook,
      user('c-4', 'other-4@example.com', { title: 'Countess', company: { name: 'Nobody Ltd' } }),
    )
    deepEqual([both.status, both.action, both.record_id], [200, 'skipped', null])
    const warning = `the external_id is that of the contact ${one.record_id}, and the email that of another, ${other.record_id}: nothing was written; merge the two, or correct one of them`
    deepEqual(both.warnings, [warning])
    const [entry] = await test.logs(webhook)
    deepEqual([entry.status, entry.action, entry.warnings], ['Success', 'Skipped', [warning]])
    deepEqual(
      await Promise.all(['contacts', 'companies', 'notes'].map((kind) => test.db.system(kind))),
      before,
    )
    // Once they are one person, the entry can be replayed.
    await test.api.request('DELETE', `/v1/objects/contacts/${other.record_id}`)
    const { body } = await test.app('POST', `/webhooks/incoming/${webhook.id}/replays`, { log_id: entry.id })
    deepEqual([body.result.outcome, body.result.record_id], ['updated', one.record_id])
  })

  it('of a sender that is not known, and as an opt-out, is refused where they are of two', async () => {
    const webhook = await test.createWebhook(RULES)
    await sent(webhook, { id: 'c-5', mail: 'one-5@example.com', name: 'Ada' })
    await sent(webhook, { mail: 'other-5@example.com', name: 'Bob' })
    const both = await sent(webhook, { id: 'c-5', mail: 'other-5@example.com' })
    deepEqual([both.status, both.error], [400, 'validation_failed'])
    match(both.details.external_id, /^the external_id is that of the contact /)
    const known = await test.createWebhook()
    // Customer.io knows the same person by the id.
    const optOut = await sent(known, {
      event_id: 'e-5',
      object_type: 'email',
      metric: 'unsubscribed',
      data: { identifiers: { id: 'c-5', email: 'other-5@example.com' } },
    })
    deepEqual([optOut.status, optOut.error], [400, 'validation_failed'])
  })

  it('applies in the order of a batch, and of requests at the same time', async () => {
    const webhook = await test.createWebhook()
    const before = await people()
    const { results } = await sent(webhook, [
      user('c-6', 'a-6@example.com'),
      user('c-6', 'b-6@example.com'),
      user('c-6', 'c-6@example.com'),
    ] as never)
    const ids = results.map(({ record_id }: { record_id: string }) => record_id)
    deepEqual(new Set(ids).size, 1, JSON.stringify(results))
    equal(await people(), before + 1)
    equal(await emailOf(ids[0]), 'c-6@example.com')
    const answers = await Promise.all(
      Array.from({ length: 12 }, (_, n) => sent(webhook, user(`c-7-${n % 3}`, `at-7-${n}@example.com`))),
    )
    deepEqual([...new Set(answers.map(({ status }) => status))], [200], JSON.stringify(answers))
    equal(await people(), before + 4)
  })

  it('may be another id of the same email: it is that of the contact from then on', async () => {
    const webhook = await test.createWebhook()
    const { record_id } = await sent(webhook, user('c-8', 'a-8@example.com'))
    const changed = await sent(webhook, user('c-8-new', 'a-8@example.com'))
    deepEqual([changed.status, changed.record_id], [200, record_id])
    equal((await test.contact(record_id)).external_id, 'c-8-new')
  })
})
