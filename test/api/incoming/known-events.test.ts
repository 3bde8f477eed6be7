import { deepEqual, equal, match } from 'node:assert/strict'
import { SENDERS } from '../../../db/model/incoming/mapping/senders/index.ts'
import type { Verification } from '../../../db/model/incoming/types.ts'
import { type IncomingTest, startIncoming } from '../../support/incoming.ts'
import { proven, type SenderRequest, secretFor } from '../../support/sender-requests.ts'

const json = (value: unknown) => JSON.stringify(value)

/** Events of known senders that have no person, in the shape of their documentation. */
const WITHOUT_PERSON: SenderRequest[] = [
  {
    sender: 'cal.com',
    what: 'out of office',
    body: json({
      triggerEvent: 'OOO_CREATED',
      createdAt: '2026-09-05T05:54:13.000Z',
      payload: {
        oooEntry: {
          id: 58,
          start: '2026-09-06T00:00:00.000Z',
          user: {
            id: 4,
            name: 'Grace Hopper',
            username: 'grace',
            timeZone: 'Asia/Kolkata',
            email: 'grace@host.example',
          },
          notes: 'Away',
        },
      },
    }),
  },
  {
    sender: 'linear',
    what: 'comment',
    body: json({
      action: 'create',
      type: 'Comment',
      actor: { id: 'u', name: 'Grace Hopper', email: 'grace@host.example' },
      data: {
        id: '2174add1',
        body: 'On carry.',
        user: { id: 'u', name: 'Grace Hopper' },
        issue: { title: 'The mill jams' },
      },
      webhookId: '000042e3-d123-4980-b49f-8e140eef9329',
      webhookTimestamp: 1_770_920_772_000,
    }),
  },
  {
    sender: 'paddle',
    what: 'transaction',
    body: json({
      event_id: 'evt_01',
      event_type: 'transaction.completed',
      notification_id: 'ntf_01',
      data: {
        id: 'txn_01',
        status: 'completed',
        customer_id: 'ctm_01',
        items: [{ price: { name: 'Monthly' } }],
      },
    }),
  },
  {
    sender: 'paddle',
    what: 'business',
    body: json({
      event_id: 'evt_02',
      event_type: 'business.created',
      notification_id: 'ntf_02',
      data: { id: 'biz_01', name: 'Analytical Engines', status: 'active', contacts: [] },
    }),
  },
  {
    sender: 'slack',
    what: 'reaction',
    body: json({
      type: 'event_callback',
      team_id: 'T1',
      api_app_id: 'A1',
      event_id: 'Ev1',
      event: {
        type: 'reaction_added',
        user: 'U1',
        reaction: 'thumbsup',
        item: { type: 'message', ts: '1.2' },
      },
    }),
  },
  {
    sender: 'svix',
    what: 'session of Clerk',
    body: json({ type: 'session.created', data: { id: 'sess_1', status: 'active' } }),
  },
  {
    sender: 'webflow',
    what: 'publication',
    body: json({
      triggerType: 'site_publish',
      payload: {
        domain: ['host.example'],
        site: '62749158efef318abc8d5a0f',
        publishedOn: '2026-09-05',
        publishedBy: { displayName: 'Grace Hopper' },
      },
    }),
  },
  {
    sender: 'zendesk',
    what: 'change of a ticket',
    body: json({
      type: 'zen:event-type:ticket.status_changed',
      account_id: 12514403,
      id: '2b24ef10-19f1-4bf5-8d9b-64d53c3ec2de',
      zendesk_event_version: '2022-11-06',
      subject: 'zen:ticket:5158',
      detail: {
        id: '5158',
        requester_id: '8447388090494',
        subject: 'The mill jams',
        tags: ['mill'],
        status: 'OPEN',
      },
      event: { current: 'OPEN', previous: 'NEW' },
    }),
  },
  {
    sender: 'zendesk',
    what: 'organization',
    body: json({
      type: 'zen:event-type:organization.created',
      id: '3b24ef10-19f1-4bf5-8d9b-64d53c3ec2de',
      zendesk_event_version: '2022-11-06',
      subject: 'zen:organization:1',
      detail: { id: '1', name: 'Analytical Engines', shared_comments: false },
      event: {},
    }),
  },
]

describe('an event of a known sender that has no person', () => {
  let test: IncomingTest
  before(async () => {
    test = await startIncoming()
  })
  after(() => test?.close())

  async function send(one: SenderRequest, more: object) {
    const verification = SENDERS.get(one.sender)!.verification as Verification
    const webhook = await test.createWebhook({ sender: one.sender, secret: secretFor(verification), ...more })
    const { query, ...request } = proven(one, verification, webhook.url, false)
    const answer = await test.api.request('POST', `/webhooks/incoming/${webhook.id}${query}`, {
      key: null,
      ...request,
    })
    return { webhook, answer }
  }
  const rules = { field_mapping: { mode: 'manual', rules: [{ from: 'nowhere.email', to: 'email' }] } }

  for (const one of WITHOUT_PERSON)
    for (const [mapping, more] of [
      ['automatic', {}],
      ['by rules', rules],
    ] as const)
      it(`is answered with 200, and logged: ${one.sender}, ${one.what}, ${mapping}`, async () => {
        const { webhook, answer } = await send(one, more)
        deepEqual(
          [answer.status, answer.body.action, answer.body.record_id],
          [200, 'skipped', null],
          json(answer.body),
        )
        match(answer.body.message, /has nothing of a contact: nothing was written$/)
        const [entry] = await test.logs(webhook)
        deepEqual([entry.status, entry.action, entry.message], ['Success', 'Skipped', answer.body.message])
        equal(Number((await test.db.system('contacts').count({ n: '*' }).first())!.n), 0)
      })

  it('is a ping of it for a webhook with rules too', async () => {
    const ping = {
      sender: 'github',
      what: 'ping',
      body: json({ zen: 'Design for failure.', hook_id: 1 }),
      headers: { 'X-GitHub-Event': 'ping' },
    }
    const { answer } = await send(ping, rules)
    deepEqual([answer.status, answer.body.message], [200, 'ping of GitHub: nothing was written'])
  })

  it('is refused, as a rule that does not fit is, where its rules find a wrong value', async () => {
    const wrong = { field_mapping: { mode: 'manual', rules: [{ from: 'type', to: 'email' }] } }
    equal((await send(WITHOUT_PERSON.at(-1)!, wrong)).answer.status, 400)
  })
})
