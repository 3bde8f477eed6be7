import { deepEqual } from 'node:assert/strict'
import { itemsOf } from '../../../../db/model/incoming/batch.ts'
import { mapPayload } from '../../../../db/model/incoming/mapping/map.ts'
import type { Payload } from '../../../../db/model/incoming/parse-body.ts'

/** Payloads in the shape of the documentation of senders, with made-up people, and what a contact gets of them. */

const settings = { field_mapping: { mode: 'automatic' }, kind: 'contacts' } as const
const ada = { first_name: 'Ada', last_name: 'Lovelace' }
const email = 'ada@example.com'
const phone = '+442079460000'
const grace = { id: 9, name: 'Grace Hopper', email: 'grace@host.example' }

function fieldsOf(payload: Payload) {
  const [first = payload] = itemsOf(payload, settings) ?? []
  return mapPayload(first, settings).fields
}

/** A call of Aircall: `user` is who answered, `number` the line. */
const call = (contact: object | null) => ({
  resource: 'call',
  event: 'call.ended',
  timestamp: 1_537_525_832,
  token: 'baedb5a81c7f97089ded54e5ad4a2218',
  data: {
    id: 76_259_012,
    direction: 'inbound',
    raw_digits: '+44 20 7946 0000',
    user: grace,
    contact,
    assigned_to: null,
    tags: [{ id: 1, name: 'vip', tagged_by: grace }],
    comments: [{ id: 1, content: 'called', posted_by: grace }],
    number: { id: 5, name: 'Sales', digits: '+44 20 7946 9999', country: 'GB', time_zone: 'Europe/London' },
  },
})
const caller = {
  id: 1,
  ...ada,
  company_name: '',
  emails: [],
  phone_numbers: [{ id: 2, label: 'Work', value: phone }],
}

describe('the person in the documented payload of', () => {
  it('Aircall is the contact, who has a number only, and not the agent with an address', () => {
    deepEqual(fieldsOf(call(caller)), { ...ada, phone })
    const withEmail = { ...caller, emails: [{ id: 3, label: 'Work', value: email }] }
    deepEqual(fieldsOf(call(withEmail)), { ...ada, phone, email })
    deepEqual(fieldsOf(call(null)), {})
    const contact = { resource: 'contact', event: 'contact.created', token: 't', data: withEmail }
    deepEqual(fieldsOf(contact), { ...ada, phone, email })
  })

  it('the same from a sender that is not known', () => {
    const { data } = call(caller)
    deepEqual(fieldsOf({ call: { user: data.user, contact: caller, number: data.number } }), {
      ...ada,
      phone,
    })
  })

  it('Dialpad is the contact, and not the target of the call', () => {
    const target = {
      id: 5,
      type: 'user',
      name: 'Grace Hopper',
      email: 'grace@host.example',
      phone: '+12025550143',
    }
    const named = { id: 'c', name: 'Ada Lovelace', email: '', phone, type: 'local' }
    deepEqual(fieldsOf({ call_id: 1, state: 'hangup', direction: 'inbound', contact: named, target }), {
      ...ada,
      phone,
    })
  })

  it('Dialpad is nobody of a name that is a number, and the contact of a message', () => {
    const target = { id: 5, type: 'user', name: 'Grace Hopper', email: 'grace@host.example' }
    const contact = { id: 'c', name: '(207) 946-0000', email: '', phone }
    deepEqual(fieldsOf({ call_id: 1, state: 'ringing', contact, target }), { phone })
    const message = { id: 1, from_number: phone, to_number: ['+12025550143'], direction: 'inbound', target }
    deepEqual(fieldsOf({ ...message, contact: { id: 'c', name: 'Ada Lovelace', phone_number: phone } }), {
      ...ada,
      phone,
    })
  })

  it('a number in the place of the name is none, of a sender that is not known either', () => {
    deepEqual(fieldsOf({ contact: { name: '+44 20 7946 0000', phone } }), { phone })
  })

  it('Chatwoot is the contact, and not the agent who has written or is assigned', () => {
    const account = { id: 3, name: 'Mills' }
    const agent = { ...grace, type: 'user' }
    const contact = {
      id: 8,
      type: 'contact',
      name: 'Ada Lovelace',
      email,
      phone_number: phone,
      additional_attributes: { city: 'London', country: 'United Kingdom', company_name: 'Engines' },
    }
    const address = { city: 'London', country: 'United Kingdom' }
    const whole = { ...ada, email, phone, address }
    deepEqual(fieldsOf({ event: 'contact_updated', account, ...contact }), whole)
    const meta = { sender: contact, assignee: agent }
    deepEqual(fieldsOf({ event: 'conversation_created', account, id: 7, status: 'open', meta }), whole)
    const message = { event: 'message_created', account, content: 'Hello', inbox: { name: 'Website' } }
    for (const sender of [contact, agent])
      deepEqual(fieldsOf({ ...message, sender, conversation: { id: 7, meta } }), whole)
    const note = { ...message, private: true, sender: agent, conversation: { id: 7, meta: {} } }
    deepEqual(fieldsOf(note), {})
  })

  it('PandaDoc is the only recipient, and nobody of two; never the name of the document', () => {
    const signer = {
      type: 'recipient',
      id: 'T',
      ...ada,
      email,
      recipient_type: 'SIGNER',
      has_completed: true,
    }
    const document = (recipients: object[]) => ({
      items: [
        {
          event: 'document_state_changed',
          data: {
            id: 'a',
            name: 'Contract',
            created_by: { email: 'grace@host.example', first_name: 'Grace', last_name: 'Hopper' },
            status: 'document.completed',
            recipients,
            sent_by: { email: 'grace@host.example', first_name: 'Grace', last_name: 'Hopper' },
            template: { id: '7', name: 'Sample Template' },
          },
        },
      ],
    })
    deepEqual(fieldsOf(document([signer])), { ...ada, email })
    const two = document([signer, { ...signer, first_name: 'Bob', email: 'bob@example.com' }])
    deepEqual(fieldsOf(two), {})
    const { data } = two.items[0]!
    const completed = {
      event: 'recipient_completed',
      data: { ...data, action_by: signer, action_date: '2026' },
    }
    const { fields, warnings } = mapPayload(completed, settings)
    deepEqual([fields, warnings], [{ ...ada, email }, undefined])
  })

  it('Zoom is the registrant, without the time zone of the meeting', () => {
    const registrant = {
      id: 'r',
      ...ada,
      email,
      address: "12 St James's Square",
      city: 'London',
      country: 'GB',
      zip: 'SW1Y 4JH',
      state: '',
      phone,
      org: 'Analytical Engines',
      job_title: 'Countess',
      status: 'approved',
    }
    const object = {
      uuid: 'u',
      id: 1,
      host_id: 'H',
      topic: 'Mill',
      timezone: 'America/Los_Angeles',
      registrant,
    }
    deepEqual(
      fieldsOf({ event: 'meeting.registration_created', event_ts: 1, payload: { account_id: 'A', object } }),
      {
        ...ada,
        email,
        phone,
        job_title: 'Countess',
        address: { line1: "12 St James's Square", city: 'London', country: 'GB', postal_code: 'SW1Y 4JH' },
      },
    )
    const user = { ...grace, type: 1 }
    const created = {
      event: 'user.created',
      event_ts: 1,
      payload: { account_id: 'A', operator: 'x', object: user },
    }
    deepEqual(fieldsOf(created), {})
  })

  it('Kit is the subscriber, whose state is none of an address but may be an opt-out', () => {
    const subscriber = (state: string) => ({
      subscriber: {
        id: 1,
        first_name: 'Ada',
        email_address: email,
        state,
        fields: { 'Last Name': 'Lovelace' },
      },
    })
    deepEqual(fieldsOf(subscriber('active')), { ...ada, email })
    for (const state of ['cancelled', 'complained'])
      deepEqual(fieldsOf(subscriber(state)), { ...ada, email, do_not_contact: true })
  })

  it('Klaviyo is the profile, and its topic an opt-out', () => {
    const payload = {
      data: [
        {
          topic: 'event:klaviyo.unsubscribed_from_email_marketing',
          payload: {
            data: { type: 'event', id: '4', attributes: { event_properties: {} } },
            included: [{ type: 'profile', id: '01', attributes: { email, ...ada, title: 'Countess' } }],
          },
        },
      ],
      meta: { klaviyo_webhook_id: 'w', version: '1' },
    }
    deepEqual(fieldsOf(payload), { ...ada, email, job_title: 'Countess', do_not_contact: true })
  })

  it('Google Calendar is the attendee who is not the organizer', () => {
    const organizer = { email: 'grace@host.example', displayName: 'Grace Hopper' }
    const attendees = [
      { email, displayName: 'Ada Lovelace' },
      { ...organizer, organizer: true, self: true },
    ]
    deepEqual(fieldsOf({ kind: 'calendar#event', summary: 'Mill', organizer, attendees }), { ...ada, email })
    const alone = {
      organizer,
      attendees: [organizer, { email: 'edith@host.example', displayName: 'Edith Clarke' }],
    }
    deepEqual(fieldsOf(alone), { first_name: 'Edith', last_name: 'Clarke', email: 'edith@host.example' })
  })

  it('Greenhouse is the candidate, and not the recruiter', () => {
    const recruiter = { ...grace, first_name: 'Grace', last_name: 'Hopper' }
    const candidate = {
      id: 1,
      ...ada,
      title: 'Countess',
      email_addresses: [{ value: email, type: 'personal' }],
      recruiter,
      coordinator: recruiter,
    }
    const jobs = [{ id: 1, name: 'Engineer', hiring_team: { recruiters: [recruiter] } }]
    const payload = { application: { id: 1, candidate, jobs } }
    deepEqual(fieldsOf({ action: 'new_candidate_application', payload }), {
      ...ada,
      email,
      job_title: 'Countess',
    })
  })

  it('Jira and Trello is nobody: who has acted is ours', () => {
    const user = {
      displayName: 'Grace Hopper',
      emailAddress: 'grace@host.example',
      timeZone: 'Europe/London',
    }
    deepEqual(fieldsOf({ timestamp: 1, webhookEvent: 'jira:issue_created', user, issue: { id: '1' } }), {})
    const memberCreator = { fullName: 'Grace Hopper', username: 'grace' }
    deepEqual(
      fieldsOf({ action: { type: 'createCard', memberCreator, data: { card: { name: 'Mill' } } } }),
      {},
    )
  })

  it('a booking is the guest, without the address of the place; of an order, with that of the order', () => {
    const guest = { firstName: 'Ada', lastName: 'Lovelace', email }
    const place = { name: 'Villa', address: { city: 'Nice', country: 'FR' } }
    deepEqual(fieldsOf({ booking: { id: 1, guest, property: place, timezone: 'Europe/Paris' } }), {
      ...ada,
      email,
    })
    const billing_address = { city: 'London', country: 'GB' }
    deepEqual(fieldsOf({ order: { id: 1, customer: guest, billing_address } }), {
      ...ada,
      email,
      address: billing_address,
    })
  })

  it('Webex is the address, without the name of the webhook', () => {
    const data = { id: 'm', roomId: 'r', personId: 'p', personEmail: email, created: '2026-11-27T10:00:00Z' }
    deepEqual(fieldsOf({ id: 'w', name: 'New message', resource: 'messages', event: 'created', data }), {
      email,
    })
  })
})

describe('a state', () => {
  it('is one of an address beside another part of it, or by the form of its name', () => {
    const state = (payload: object) => (fieldsOf({ email, ...payload }).address as { state?: string })?.state
    for (const text of ['CA', 'California', 'NSW', 'New South Wales']) deepEqual(state({ state: text }), text)
    deepEqual(state({ state: 'bayern', city: 'Bern' }), 'bayern')
    for (const text of ['hangup', 'cancelled', 'Cancelled', 'CANCELLED', 'done', 'ringing', 'COMPLETED'])
      deepEqual(state({ state: text }), undefined, text)
  })
})
