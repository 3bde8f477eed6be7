import { deepEqual, equal, match } from 'node:assert/strict'
import { mapPayload } from '../../../../db/model/incoming/mapping/map.ts'
import type { Payload } from '../../../../db/model/incoming/parse-body.ts'
import type { TargetKind } from '../../../../db/model/incoming/types.ts'

/** Events of known senders that are no news of a person, in the shape of their documentation. */

const mapped = (payload: Payload, kind: TargetKind = 'contacts', headers: Record<string, string> = {}) =>
  mapPayload(payload, { field_mapping: { mode: 'automatic' }, kind }, headers)
const ada = { first_name: 'Ada', last_name: 'Lovelace' }
const email = 'ada@example.com'

describe('what tells of a deletion makes no record', () => {
  const customer = { object: 'customer', id: 'cus_1', name: 'Ada Lovelace', email }
  const stripe = (type: string) => ({ object: 'event', id: 'evt_1', type, data: { object: customer } })
  const shopify = {
    shop_id: 1,
    shop_domain: 'mill.example',
    customer: { id: 1, email, phone: '+442079460000' },
  }
  const issue = { id: 1, node_id: 'n', title: 'The mill jams' }
  const deletions: [string, Payload, TargetKind, Record<string, string>?][] = [
    ['Stripe', stripe('customer.deleted'), 'contacts'],
    [
      'Chargebee',
      { object: 'event', event_type: 'customer_deleted', content: { customer: { email } } },
      'contacts',
    ],
    [
      'Shopify, by header',
      { ...shopify, orders_to_redact: [7] },
      'contacts',
      { 'x-shopify-topic': 'customers/redact' },
    ],
    [
      'Shopify, a request of data',
      { ...shopify, orders_requested: [7], data_request: { id: 9 } },
      'contacts',
      { 'x-shopify-topic': 'customers/data_request' },
    ],
    ['WooCommerce', { id: 5 }, 'deals', { 'x-wc-webhook-topic': 'order.deleted' }],
    [
      'GitHub',
      { action: 'deleted', issue, repository: {}, sender: {} },
      'tasks',
      { 'x-github-event': 'issues' },
    ],
    [
      'Linear',
      { action: 'remove', type: 'Issue', data: issue, webhookId: 'w', webhookTimestamp: 1 },
      'tasks',
    ],
    [
      'Jira',
      { webhookEvent: 'jira:issue_deleted', timestamp: 1, issue: { id: '1', fields: { summary: 'x' } } },
      'tasks',
    ],
    ['monday.com', { event: { boardId: 1, pulseId: 2, pulseName: 'x', type: 'delete_pulse' } }, 'tasks'],
    ['another sender', { event: 'contact.deleted', data: { name: 'Ada Lovelace', email } }, 'contacts'],
    ['another sender, in camel case', { eventType: 'leadDeleted', lead: { email } }, 'contacts'],
  ]
  for (const [sender, payload, kind, headers] of deletions)
    it(sender, () => {
      const { fields, skip } = mapped(payload, kind, headers)
      deepEqual(fields, {})
      match(skip!, /deletion|notification/)
    })

  it('what tells of the end of something else does', () => {
    equal(mapped(stripe('customer.updated')).fields.email, email)
    for (const event of [
      'order.deleted',
      'contact.tag.deleted',
      'booking.removed',
      'customer.subscription.deleted',
    ])
      equal(mapped({ event, customer: { email } }).fields.email, email, event)
    equal(mapped({ event: 'contact.deleted', deal: { name: 'Mill' } }, 'deals').fields.name, 'Mill')
    const form = { email, message: 'please delete contact', subject: 'contact deleted' }
    equal(mapped(form).fields.email, email)
  })

  it('nor does what a person has written or chosen in a form', () => {
    for (const said of ['Delete profile', 'Delete user', 'client deletion', 'contact deleted'])
      for (const name of ['topic', 'type', 'action', 'event'])
        equal(
          mapped({ name: 'Ada', email, [name]: said, message: 'x' }).fields.email,
          email,
          `${name} ${said}`,
        )
    equal(mapped({ name: 'Ada', email, topic: 'delete_profile' }).fields.email, email)
    for (const type of ['contact.deleted', 'delete_contact'])
      deepEqual(mapped({ type, email }).fields, {}, type)
  })
})

describe('of known senders, one of ours is no contact', () => {
  it('the admin of Intercom who has begun a conversation, but the user who has', () => {
    const conversation = (type: string) => ({
      type: 'notification_event',
      topic: 'conversation.user.replied',
      id: 'notif_1',
      data: { item: { type: 'conversation', source: { author: { type, name: 'Ada Lovelace', email } } } },
    })
    for (const type of ['admin', 'bot', 'team']) deepEqual(mapped(conversation(type)).fields, {}, type)
    for (const type of ['user', 'lead', 'contact'])
      deepEqual(mapped(conversation(type)).fields, { ...ada, email }, type)
  })

  it('and the company of Intercom is no contact, nor a contact a company', () => {
    const item = (type: string) => ({
      type: 'notification_event',
      topic: `${type}.created`,
      id: 'notif_2',
      data: { item: { type, name: 'Ada Lovelace', website: 'https://engines.example' } },
    })
    deepEqual(
      [mapped(item('company')).fields, mapped(item('company'), 'companies').fields.name],
      [{}, 'Ada Lovelace'],
    )
    deepEqual([mapped(item('contact')).fields, mapped(item('contact'), 'companies').fields], [ada, {}])
  })

  it('the agents of Zendesk, but its users', () => {
    const event = (role: string) => ({
      type: 'zen:event-type:user.created',
      id: 'e',
      subject: 'zen:user:1',
      detail: { id: '1', email, role },
      event: {},
    })
    for (const role of ['agent', 'admin']) deepEqual(mapped(event(role)).fields, {}, role)
    deepEqual(mapped(event('end-user')).fields, { email })
  })

  it('the host of a meeting of Zoom, but its other participants', () => {
    const event = (id: string) => ({
      event: 'meeting.participant_joined',
      event_ts: 1,
      payload: {
        account_id: 'A',
        object: { host_id: 'H', participant: { id, user_name: 'Ada Lovelace', email } },
      },
    })
    deepEqual(mapped(event('H')).fields, {})
    for (const id of ['P', '']) deepEqual(mapped(event(id)).fields, { ...ada, email }, id)
  })

  it('the user of a command of Slack', () => {
    const command = {
      command: '/lead',
      text: 'Ada',
      user_id: 'U1',
      user_name: 'grace',
      trigger_id: '1.2',
      team_id: 'T',
    }
    deepEqual(mapped(command).fields, {})
  })
})

describe('a group of Segment', () => {
  it('is the company of the user, and not the user', () => {
    const payload = {
      type: 'group',
      messageId: 'm',
      userId: 'u-1',
      groupId: 'g-1',
      traits: { name: 'Analytical Engines', email: 'info@engines.example', phone: '+442079461111' },
      context: { traits: { email, firstName: 'Ada' } },
    }
    const { fields, company_name } = mapped(payload)
    deepEqual(
      [fields, company_name],
      [{ email, first_name: 'Ada', external_id: 'u-1' }, 'Analytical Engines'],
    )
    const company = mapped(payload, 'companies').fields
    deepEqual([company.name, company.external_id], ['Analytical Engines', 'g-1'])
  })
})
