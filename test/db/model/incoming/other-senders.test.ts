import { deepEqual, equal } from 'node:assert/strict'
import { itemsOf } from '../../../../db/model/incoming/batch.ts'
import { mapPayload } from '../../../../db/model/incoming/mapping/map.ts'
import { type Payload, parseBody } from '../../../../db/model/incoming/parse-body.ts'

/** Payloads of senders that are widely used, in the shape of their documentation, with made-up people. */

const settings = { field_mapping: { mode: 'automatic' }, kind: 'contacts' } as const
const ada = { first_name: 'Ada', last_name: 'Lovelace' }
const email = 'ada@example.com'
const phone = '+442079460000'
const ours = 'grace@host.example'

const mapped = (payload: Payload) => mapPayload((itemsOf(payload, settings) ?? [payload])[0], settings)
const fieldsOf = (payload: Payload) => mapped(payload).fields

describe('a contact of the documented payload of', () => {
  it('ClickUp is nobody: the user of a change is ours', () => {
    const user = { id: 183, username: 'Grace Hopper', email: ours, initials: 'GH' }
    const change = { id: '1', type: 1, field: 'status', user, before: null, after: { status: 'open' } }
    const { fields, skip } = mapped({
      event: 'taskCreated',
      history_items: [change],
      task_id: '1vj',
      webhook_id: 'w',
    })
    deepEqual(fields, {})
    equal(skip, 'notification of ClickUp without the data of a record')
    deepEqual(fieldsOf({ history_items: [change] }), {})
    // The action "Call webhook" of an automation sends the task itself.
    const task = { id: '868djdyr0', name: 'Mend the mill', creator: 183, status_id: 'p9_x' }
    const automation = {
      auto_id: 'c38:main',
      trigger_id: '40dd',
      date: '2026-11-16T23:49:06Z',
      payload: task,
    }
    deepEqual([fieldsOf(automation), mapped(automation).sender], [{}, 'ClickUp'])
    deepEqual(mapPayload(automation, { ...settings, kind: 'tasks' }).fields, {
      title: 'Mend the mill',
      external_id: '868djdyr0',
    })
  })

  it('SurveyMonkey is nobody: the name is that of the webhook', () => {
    const payload = {
      name: 'Response Webhook',
      filter_type: 'survey',
      filter_id: '123',
      event_type: 'response_completed',
      event_id: '9',
      object_type: 'response',
      object_id: '7',
      resources: { respondent_id: '7', survey_id: '123', user_id: '1' },
    }
    deepEqual([fieldsOf(payload), mapped(payload).sender], [{}, 'SurveyMonkey'])
    const { resources: _, ...other } = payload
    deepEqual(fieldsOf(other), {}, 'of any sender')
    deepEqual(fieldsOf({ name: 'Ada Lovelace', message: 'Hello' }), ada, 'of a form')
    deepEqual(fieldsOf({ event: 'signup', name: 'Ada Lovelace', email }), { ...ada, email })
  })

  it('Close is the contact, and of a call not the user with the number of the contact', () => {
    const event = (object_type: string, data: object) => ({
      event: { id: 'ev', action: 'created', object_type, organization_id: 'orga', data, previous_data: {} },
      subscription_id: 'whsub',
    })
    const contact = {
      id: 'cont',
      name: 'Ada Lovelace',
      title: 'Countess',
      emails: [{ email, type: 'office', is_unsubscribed: true }],
      phones: [{ phone, country: 'GB', type: 'office' }],
      created_by: 'user_1',
    }
    deepEqual(fieldsOf(event('contact', contact)), {
      ...ada,
      email,
      phone,
      job_title: 'Countess',
      do_not_contact: true,
    })
    // The example of the documentation: a lead is a company.
    const won = {
      contact_name: 'Mr. Jones',
      user_name: 'Grace Hopper',
      updated_by_name: 'Grace Hopper',
      lead_name: 'Analytical Engines',
      status_label: 'Won',
      note: '',
    }
    deepEqual(fieldsOf(event('opportunity', won)), {}, 'of an opportunity nobody')
    deepEqual(fieldsOf(event('lead', { display_name: 'Analytical Engines', name: 'Analytical Engines' })), {})
    const call = { user_name: 'Grace Hopper', phone, direction: 'outbound', contact_id: 'cont' }
    deepEqual(fieldsOf(event('activity.call', call)), { phone })
    deepEqual(fieldsOf({ user_name: 'Ada Lovelace', email }), { ...ada, email }, 'of a form')
    const register = { event: 'register', user_name: 'Ada Lovelace', user_email: email }
    deepEqual(fieldsOf(register), { ...ada, email })
  })

  it('Basecamp is nobody: the creator is ours, and the project a thing', () => {
    const creator = { id: 1, name: 'Grace Hopper', email_address: ours, time_zone: 'Europe/London' }
    const recording = {
      id: 2,
      status: 'active',
      title: 'Mend it',
      type: 'Todo',
      bucket: { id: 3, name: 'Mill' },
    }
    deepEqual(fieldsOf({ id: 4, kind: 'todo_created', recording: { ...recording, creator }, creator }), {})
  })

  it('BoldSign, Adobe and Dropbox Sign is the signer, and not the sender', () => {
    const senderDetail = { name: 'Grace Hopper', type: 'Sender', emailAddress: ours, userId: 'u' }
    const signer = { signerName: 'Ada Lovelace', signerRole: '', signerEmail: email, status: 'Completed' }
    const data = { object: 'document', messageTitle: 'Contract', senderDetail, ccDetails: [], status: 'Sent' }
    const event = { id: 'e', eventType: 'Signed', clientId: 'c' }
    deepEqual(fieldsOf({ event, data: { ...data, signerDetails: [signer] } }), { ...ada, email })
    const two = [signer, { ...signer, signerName: 'Bob', signerEmail: 'bob@example.com' }]
    deepEqual(fieldsOf({ event, data: { ...data, signerDetails: two } }), {})
    deepEqual(fieldsOf({ event: 'AGREEMENT_CREATED', agreement: { senderInfo: { email: ours } } }), {})
    const signature_request = {
      title: 'Contract',
      requester_email_address: ours,
      signatures: [{ signer_email_address: email, signer_name: 'Ada Lovelace', status_code: 'signed' }],
    }
    deepEqual(fieldsOf({ event: { event_type: 'signature_request_signed' }, signature_request }), {
      ...ada,
      email,
    })
  })

  it('Cognito Forms is who has filled in the form, and not the user who was signed in', () => {
    const Entry = {
      Number: 1,
      DateSubmitted: '2026-11-01T09:00:00.000Z',
      Status: 'Submitted',
      Origin: {
        IpAddress: '192.0.2.1',
        City: 'Columbia',
        State: 'South Carolina',
        Timezone: 'America/New_York',
      },
      User: { Email: ours, Name: 'Grace Hopper' },
    }
    const form = { Form: { Id: '1', InternalName: 'Contact', Name: 'Contact' }, Entry, Id: '1-1' }
    const Name = { First: 'Ada', Last: 'Lovelace', FirstAndLast: 'Ada Lovelace' }
    deepEqual(fieldsOf({ ...form, Name, Email: email }), { ...ada, email })
    deepEqual(fieldsOf({ ...form, Name, Phone: phone }), { ...ada, phone }, 'without an address')
    // Where nobody else is named, it is the user.
    deepEqual(fieldsOf({ user: { name: 'Ada Lovelace', email }, plan: 'pro' }), { ...ada, email })
    deepEqual(fieldsOf({ email, user: { name: 'Ada Lovelace' } }), { ...ada, email })
    // An event is of its user, and what is beside the user is of the account.
    deepEqual(fieldsOf({ event: 'signup', email: ours, user: { name: 'Ada Lovelace', email } }), {
      ...ada,
      email,
    })
  })

  it('CallRail is the caller, without the company of the account', () => {
    const call = {
      id: 'CAL1',
      resource_id: 'CAL1',
      customer_name: 'Ada Lovelace',
      customer_phone_number: phone,
      customer_city: 'London',
      business_phone_number: '+442079461111',
      tracking_phone_number: '+442079462222',
      company_id: 'COM1',
      company_name: 'Mills Ltd',
      agent_email: ours,
    }
    const { fields, company_name } = mapped(call)
    deepEqual([fields, company_name], [{ ...ada, phone, address: { city: 'London' } }, undefined])
  })

  it('Monday is nobody, and of a changed address the new one', () => {
    const event = {
      userId: 9,
      boardId: 1,
      pulseId: 2,
      pulseName: 'Mill',
      groupName: 'Leads',
      type: 'create_pulse',
    }
    deepEqual(fieldsOf({ event }), {})
    const changed = (value: object | null) => ({
      event: { ...event, type: 'update_column_value', value, previousValue: { email: 'old@example.com' } },
    })
    deepEqual(fieldsOf(changed({ email, text: email })), { email })
    deepEqual(fieldsOf(changed(null)), {})
  })

  it('Mollie is nobody: only an id', () => {
    const { skip } = mapped(parseBody(Buffer.from('id=tr_5B8cwPMGnU'), 'application/x-www-form-urlencoded'))
    equal(skip, 'notification of Mollie without the data of a record')
    // Subscribed webhooks send events, with the object or without.
    const event = {
      resource: 'event',
      id: 'event_GvJ8WHrp5isUdRub9CJyH',
      type: 'payment-link.paid',
      entityId: 'pl_qng5gbbv8NAZ5gpM5ZYgx',
      createdAt: '2026-11-16T15:57:04.0Z',
    }
    const entity = { id: 'pl_qng5gbbv8NAZ5gpM5ZYgx', description: 'Bicycle tires', mode: 'live' }
    for (const payload of [event, { ...event, _embedded: { entity } }]) equal(mapped(payload).skip, skip)
  })

  it('Gravity Forms is nobody, as its fields have numbers, and WPForms whom its names name', () => {
    const entry = {
      id: '12',
      form_id: '3',
      ip: '192.0.2.1',
      source_url: 'https://mill.example/contact',
      status: 'active',
    }
    deepEqual(fieldsOf({ ...entry, created_by: '1', '1.3': 'Ada', '1.6': 'Lovelace', '2': email }), {})
    deepEqual(
      fieldsOf({ 'First Name': 'Ada', 'Last Name': 'Lovelace', 'E-mail': email, form_name: 'Contact' }),
      {
        ...ada,
        email,
      },
    )
  })
})

describe('an opt-out is recorded of', () => {
  const optOut = (payload: Payload) => {
    const { email, do_not_contact } = fieldsOf(payload)
    return [email, do_not_contact]
  }
  const events: [string, object][] = [
    ['lemlist', { type: 'emailsUnsubscribed', campaignName: 'Mills', leadEmail: email, sendUserEmail: ours }],
    ['Smartlead', { event_type: 'LEAD_UNSUBSCRIBED', from_email: ours, to_email: email, lead_email: email }],
    ['Iterable', { eventName: 'emailUnSubscribe', email, dataFields: { campaignName: 'Mills' } }],
    ['Iterable, a complaint', { eventName: 'emailComplaint', email, dataFields: {} }],
    ['Mailjet', { event: 'unsub', time: 1, email, mj_list_id: 9 }],
    ['Mailjet, a complaint', { event: 'spam', time: 1, email, source: 'JMRPP' }],
    ['MailerLite', { event: 'subscriber.spam_reported', id: '1', email, status: 'junk' }],
    [
      'Zoho Campaigns',
      { webhook_name: 'Spam', action: 'spam', data: [{ contact_email: email, from: ours }] },
    ],
    ['Elastic Email', { status: 'AbuseReport', to: email, email }],
  ]
  for (const [sender, payload] of events)
    it(sender, () =>
      deepEqual(optOut(payload as Payload), [email, true], JSON.stringify(fieldsOf(payload as Payload))),
    )

  it('none of what only sounds like one', () => {
    for (const type of [
      'complaint',
      'Complaint',
      'spam',
      'emailsSubscribed',
      'unsubmitted',
      'contactSubscribed',
    ])
      equal(fieldsOf({ type, email }).do_not_contact, undefined, type)
    for (const name of ['topic', 'status', 'type'])
      for (const said of [
        'Mail complaint',
        'email complaint',
        'abuse report',
        'mail-complaint',
        'spam reported',
      ])
        equal(fieldsOf({ email, [name]: said }).do_not_contact, undefined, `${name} ${said}`)
    equal(fieldsOf({ status: 'spam', email }).do_not_contact, undefined)
  })
})
