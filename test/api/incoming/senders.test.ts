import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { mapPayload } from '../../../db/model/incoming/mapping/map.ts'
import { ALL_SENDERS } from '../../../db/model/incoming/mapping/senders/index.ts'
import { isTarget } from '../../../db/model/incoming/mapping/targets.ts'
import { parseBody } from '../../../db/model/incoming/parse-body.ts'
import type { TargetKind } from '../../../db/model/incoming/types.ts'
import { type IncomingTest, startIncoming } from '../../support/incoming.ts'

const FORM = 'application/x-www-form-urlencoded'
const fixture = (name: string) => readFileSync(new URL(`../../fixtures/webhooks/${name}`, import.meta.url))

const ada = { first_name: 'Ada', last_name: 'Lovelace', email: 'ada@example.com' }
const phone = '+442079460000'

describe('the payloads of common senders', () => {
  function read(name: string, kind: TargetKind = 'contacts', headers = {}) {
    const payload = parseBody(fixture(name), name.endsWith('.txt') ? FORM : 'application/json')
    return mapPayload(payload, { field_mapping: { mode: 'automatic' }, kind }, headers)
  }

  it('an issue of GitHub is a task, and no contact', () => {
    const { fields, sender, skip } = read('github-issue.json')
    assert.deepEqual([fields, sender], [{}, 'GitHub'])
    assert.equal(skip, 'the payload of GitHub has nothing of a contact')
    assert.deepEqual(read('github-issue.json', 'tasks').fields, {
      title: 'The mill jams on carry',
      body: 'It stops at 9 + 1.',
      external_id: 'MDU6SXNzdWU0NDQ1MDAwNDE=',
    })
    assert.deepEqual(read('github-issue.json', 'companies').fields, {})
  })

  it('the state of an account of Shopify is not that of its address', () => {
    assert.deepEqual(read('shopify-account.json').fields, ada)
  })

  it('the role of a customer of WooCommerce is not a job title', () => {
    const { fields, company_name } = read('woocommerce-customer.json')
    assert.deepEqual(
      [company_name, fields],
      [
        'Analytical Engines',
        {
          ...ada,
          phone,
          address: { line1: "12 St James's Square", city: 'London', postal_code: 'SW1Y 4JH', country: 'GB' },
        },
      ],
    )
  })

  it('the address of a company in Intercom is not the website of the contact', () => {
    const { fields, company_name } = read('intercom-contact.json')
    assert.equal(company_name, 'Analytical Engines')
    assert.deepEqual(fields, {
      ...ada,
      phone,
      job_title: 'Countess',
      address: { city: 'London', state: 'England', country: 'United Kingdom' },
    })
  })

  it('an unsubscription of Mailchimp is an opt-out', () => {
    assert.deepEqual(read('mailchimp-unsubscribe.txt').fields, { ...ada, do_not_contact: true })
  })

  it('an opt-out of HubSpot, and no title of its forms', () => {
    const { fields, company_name } = read('hubspot-contact.json')
    assert.deepEqual(fields, { ...ada, phone, do_not_contact: true, lifecycle_stage: 'lead' })
    assert.equal(company_name, 'Analytical Engines')
  })

  it('the invitee of Calendly, not the host', () => {
    const { fields, company_name } = read('calendly-invitee.json')
    assert.deepEqual(
      [fields, company_name],
      [{ ...ada, phone, timezone: 'Europe/London' }, 'Analytical Engines'],
    )
  })

  it('the customer of a checkout of Stripe; no deal with an amount in cents', () => {
    const { fields } = read('stripe-checkout.json')
    const address = { line1: "12 St James's Square", city: 'London', postal_code: 'SW1Y 4JH', country: 'GB' }
    assert.deepEqual(fields, { ...ada, phone, address })
    assert.deepEqual(read('stripe-checkout.json', 'deals').fields, {})
  })

  it('the attendee of a booking of Cal.com, not the host or a colleague', () => {
    const { fields, note } = read('calcom-booking.json')
    assert.deepEqual([fields, note], [{ ...ada, timezone: 'Europe/London' }, 'The mill jams.'])
  })

  it('the requester of a ticket of Zendesk; "end-user" is no job title', () => {
    assert.deepEqual(read('zendesk-ticket.json').fields, { ...ada, phone })
  })

  it('the answers of forms of LinkedIn, Tally and Google, with questions in words', () => {
    for (const [name, more] of [
      ['linkedin-lead.json', { job_title: 'Countess' }],
      ['tally.json', { phone, job_title: 'Countess' }],
      ['google-form.json', {}],
    ] as const) {
      const { fields, company_name } = read(name)
      assert.deepEqual([fields, company_name], [{ ...ada, ...more }, 'Analytical Engines'], name)
    }
  })

  it('are mapped to fields that exist', () => {
    for (const { name, fields } of ALL_SENDERS)
      for (const [kind, paths] of Object.entries(fields ?? {}))
        for (const field of Object.keys(paths))
          assert.ok(
            field === 'full_name' || isTarget(field, kind as TargetKind),
            `${name}: ${kind} have no ${field}`,
          )
  })

  describe('about mails', () => {
    const map = (payload: object) =>
      mapPayload(payload as never, { field_mapping: { mode: 'automatic' }, kind: 'contacts' }).fields
    const email = 'ada@example.com'
    const gone = { email, do_not_contact: true }

    it('are opt-outs of the recipient, not of the sender', () => {
      const postmark = { ServerID: 1, MessageID: null, Recipient: email, From: 'news@host.example' }
      const change = { ...postmark, RecordType: 'SubscriptionChange', SuppressSending: true }
      assert.deepEqual(map({ ...change, SuppressionReason: 'ManualSuppression' }), gone)
      assert.deepEqual(map({ ...change, SuppressionReason: 'HardBounce' }), { email })
      assert.deepEqual(map({ ...change, SuppressSending: false, SuppressionReason: null }), { email })
      assert.deepEqual(map({ ...postmark, RecordType: 'Delivery', Name: 'Delivered' }), { email })
      const resend = { type: 'email.complained', data: { email_id: '56', from: 'news@host.example' } }
      assert.deepEqual(map({ ...resend, data: { ...resend.data, to: [email] } }), gone)
      assert.deepEqual(map({ ...resend, data: { ...resend.data, to: [email, 'other@example.com'] } }), {
        do_not_contact: true,
      })
      const contact = { audience_id: 'a', email, first_name: 'Ada', unsubscribed: true }
      assert.deepEqual(map({ type: 'contact.updated', data: contact }), { ...gone, first_name: 'Ada' })
      assert.deepEqual(map({ event: 'unsubscribe', email, camp_id: 1, tag: '[]' }), gone)
      assert.deepEqual(map({ event: 'delivered', email, 'message-id': '<1>', tag: '[]' }), { email })
    })
  })

  it('pings are recognised', () => {
    for (const name of ['github-ping.json', 'intercom-ping.json'])
      assert.match(read(name).skip!, /^ping of /, name)
    const woo = mapPayload(
      { webhook_id: '5' },
      { field_mapping: { mode: 'automatic' }, kind: 'contacts' },
      { 'user-agent': 'WooCommerce/9.4.3 Hookshot (WordPress/6.7.1)' },
    )
    assert.equal(woo.skip, 'ping of WooCommerce')
    const attendees = [{ name: 'John Doe', email: 'jdoe@example.com' }]
    const calcom = mapPayload(
      { triggerEvent: 'PING', createdAt: '2026-11-27T12:00:00.000Z', payload: { type: 'Test', attendees } },
      { field_mapping: { mode: 'automatic' }, kind: 'contacts' },
      { 'x-cal-signature-256': '0' },
    )
    assert.equal(calcom.skip, 'ping of Cal.com')
  })

  it('a notification without the data of a record is none', () => {
    for (const [sender, payload] of [
      [
        'Meta',
        {
          object: 'page',
          entry: [
            {
              id: '1',
              time: 1,
              changes: [{ field: 'leadgen', value: { leadgen_id: '4', page_id: '1', form_id: '5' } }],
            },
          ],
        },
      ],
      [
        'LinkedIn',
        { type: 'LEAD_ACTION', leadGenFormResponse: 'urn:li:leadGenFormResponse:1-5', leadAction: 'CREATED' },
      ],
      [
        'HubSpot',
        {
          eventId: 1,
          subscriptionId: 2,
          portalId: 3,
          subscriptionType: 'contact.creation',
          objectId: 4,
          attemptNumber: 0,
        },
      ],
      [
        'Twilio',
        { MessageSid: 'SM1', AccountSid: 'AC1', From: '+442079460000', To: '+12025550143', Body: 'Hi' },
      ],
    ] as const)
      assert.equal(
        mapPayload(payload, { field_mapping: { mode: 'automatic' }, kind: 'contacts' }).skip,
        `notification of ${sender} without the data of a record`,
      )
  })
})

describe('guesses from unknown senders', () => {
  const read = (payload: unknown, kind: TargetKind = 'contacts') =>
    mapPayload(payload, { field_mapping: { mode: 'automatic' }, kind })

  it('take only what speaks of a person', () => {
    for (const payload of [
      { issue: { title: 'It jams', labels: [{ name: 'bug' }] } },
      { formTitle: 'Contact us', form_name: 'Demo' },
      { build: { name: 'nightly', status: 'failed', url: 'https://ci.example/1' } },
      { ping: true, version: { name: '1.0' } },
    ])
      assert.deepEqual(read(payload).fields, {}, JSON.stringify(payload))
    const { fields } = read({ ...ada, role: 'customer', state: 'disabled', formTitle: 'Contact us' })
    assert.deepEqual(fields, ada)
  })

  it("take agx's own names of fields", () => {
    const { fields } = read({
      ...ada,
      do_not_contact: 'true',
      leadStatus: 'In Progress',
      lifecycle_stage: 'MQL',
      custom_fields: { tier: 'gold', score: 7, interests: ['a', 'b'] },
      'custom_fields.region': 'EMEA',
      last_contacted_at: '2026-01-31',
    })
    assert.deepEqual(fields, {
      ...ada,
      do_not_contact: true,
      lead_status: 'in_progress',
      lifecycle_stage: 'mql',
      custom_fields: { tier: 'gold', score: 7, interests: ['a', 'b'], region: 'EMEA' },
      last_contacted_at: '2026-01-31',
    })
    const company = read({ name: 'Acme', annual_revenue: '1000.00', type: 'webhook.sent' }, 'companies')
    assert.deepEqual(company.fields, { name: 'Acme', annual_revenue: '1000.00' })
    const others = { company: { custom_fields: { tier: 'gold' } }, owner: { unsubscribed: true } }
    assert.deepEqual(read({ ...ada, ...others }).fields, ada)
    assert.deepEqual(read({ contact: { ...ada, custom_fields: { tier: 'gold' } } }).fields.custom_fields, {
      tier: 'gold',
    })
  })

  it('take every form of an opt-out, and no opposite of one', () => {
    for (const said of [
      { unsubscribed: true },
      { opt_out: 'yes' },
      { optOut: 1 },
      { email_opt_out: 'true' },
      { HasOptedOutOfEmail: true },
      { unsubscribed_at: '2026-01-31T10:00:00Z' },
      { status: 'unsubscribed' },
      { event: 'contact.unsubscribed' },
      { do_not_contact: false, unsubscribed: true },
    ])
      assert.equal(read({ ...ada, ...said }).fields.do_not_contact, true, JSON.stringify(said))
    for (const said of [
      { unsubscribed: false },
      { opt_out: 'no' },
      { unsubscribed_at: '' },
      { status: 'subscribed' },
    ])
      assert.equal(read({ ...ada, ...said }).fields.do_not_contact, undefined, JSON.stringify(said))
    assert.equal(read({ ...ada, do_not_contact: false }).fields.do_not_contact, false)
  })

  it('take the person whose role is theirs, and nobody whose role is ours', () => {
    const host = { name: 'Grace Hopper', email: 'grace@host.example', phone: '+12025550143' }
    const guest = { name: 'Ada Lovelace', email: 'ada@example.com' }
    for (const [theirs, ours] of [
      ['attendees', 'organizer'],
      ['invitee', 'host'],
      ['requester', 'agent'],
      ['customer', 'owner'],
      ['submitter', 'assigned_to'],
      ['registrant', 'hosts'],
      ['participant', 'created_by'],
      ['user', 'actor'],
      ['requester', 'reporter'],
      ['customer', 'author'],
      ['contact', 'creator'],
    ] as const)
      for (const order of [0, 1]) {
        const members = [
          [theirs, theirs.endsWith('s') ? [guest] : guest],
          [ours, ours.endsWith('s') ? [host] : host],
        ]
        const payload = Object.fromEntries(order ? members.reverse() : members)
        const mapped = read({ data: payload })
        assert.deepEqual([mapped.fields, mapped.warnings], [ada, undefined], `${theirs}, not ${ours}`)
        assert.deepEqual(read({ [ours]: host }).fields, {}, ours)
      }
  })

  it('take nobody of two people between whom nothing decides, and say so', () => {
    const people = {
      bride: { email: 'ada@example.com', name: 'Ada' },
      groom: { email: 'b@x.io', name: 'Bob' },
    }
    const { fields, warnings } = read({ people, shoe_size: 9 })
    assert.deepEqual(fields, {})
    assert.deepEqual(warnings, [
      'people.bride.email and people.groom.email name different people: none was used; choose one by a mapping rule',
    ])
    // The same person twice is one.
    const twice = { billing: { email: 'Ada@example.com ' }, shipping: { email: 'ada@example.com' } }
    assert.deepEqual(read(twice).fields, { email: 'Ada@example.com' })
  })

  it('take nobody of a payload with hundreds of people, in linear time', () => {
    const crowd = Object.fromEntries(
      Array.from({ length: 20_000 }, (_, n) => [`a${n}`, { email: `p${n}@example.com` }]),
    )
    const { fields, warnings } = read(crowd)
    assert.deepEqual(fields, {})
    assert.match(warnings![0]!, /more than 200 objects/)
  })

  it('mix no two people', () => {
    const driver = { name: 'Bob Stone', phone: '+12025550143' }
    assert.deepEqual(
      read({ customer: { email: 'ada@example.com', name: 'Ada Lovelace' }, driver }).fields,
      ada,
    )
    assert.deepEqual(read({ name: 'Ada Lovelace', email: 'ada@example.com', driver }).fields, ada)
    const contact_details = { mobile: phone }
    assert.deepEqual(read({ ...ada, contact_details }).fields, { ...ada, mobile_phone: phone })
  })

  it('take the present state of a record, not its former one', () => {
    const before = { name: 'Ada Byron', email: 'byron@example.com' }
    const after = { name: 'Ada Lovelace', email: 'ada@example.com' }
    for (const [a, b] of [
      ['before', 'after'],
      ['old', 'new'],
      ['previous', 'current'],
      ['previous_attributes', 'object'],
    ] as const)
      assert.deepEqual(read({ [a]: before, [b]: after }).fields, ada, a)
  })

  it('understand questions in eight languages', () => {
    for (const [first, last, email, mobile] of [
      ["What's your first name?", 'What is your last name?', 'What is your email address?', 'Your mobile?'],
      [
        'Wie lautet dein Vorname?',
        'Wie ist Ihr Nachname?',
        'Wie lautet Ihre E-Mail-Adresse?',
        'Deine Handynummer?',
      ],
      [
        'Quel est votre prénom ?',
        'Quel est votre nom de famille ?',
        'Quelle est votre adresse e-mail ?',
        'Votre téléphone portable ?',
      ],
      [
        '¿Cuál es tu nombre?',
        '¿Cuáles son tus apellidos?',
        '¿Cuál es tu correo electrónico?',
        '¿Cuál es tu teléfono móvil?',
      ],
      [
        'Qual è il tuo nome?',
        'Qual è il tuo cognome?',
        'Qual è il tuo indirizzo email?',
        'Il tuo cellulare?',
      ],
      ['Qual é o seu primeiro nome?', 'Qual é o seu sobrenome?', 'Qual é o seu e-mail?', 'O seu telemóvel?'],
      ['Wat is je voornaam?', 'Wat is uw achternaam?', 'Wat is je e-mailadres?', 'Wat is je mobiele nummer?'],
      [
        'Jak masz na imię?',
        'Jakie jest Twoje nazwisko?',
        'Podaj swój adres e-mail',
        'Twój telefon komórkowy?',
      ],
    ] as const) {
      const answers = [
        { question: first, answer: 'Ada' },
        { question: last, answer: 'Lovelace' },
        { question: email, answer: 'ada@example.com' },
        { question: mobile, answer: phone },
      ]
      assert.deepEqual(read({ answers }).fields, { ...ada, mobile_phone: phone }, first)
      const named = Object.fromEntries(answers.map(({ question, answer }) => [question, answer]))
      assert.deepEqual(read({ response: named }).fields, { ...ada, mobile_phone: phone }, first)
    }
    for (const question of [
      "What is your dog's name?",
      'Name of your manager?',
      'May we email you?',
      'How is the phone?',
    ])
      assert.deepEqual(read({ answers: [{ question, answer: 'Yes' }] }).fields, {}, question)
  })

  it('understand time zones by city and as Rails names them', () => {
    for (const [said, zone] of [
      ['Berlin', 'Europe/Berlin'],
      ['new york', 'America/New_York'],
      ['Eastern Time (US & Canada)', 'America/New_York'],
      ['Bern', 'Europe/Zurich'],
      ['Asia/Tokyo', 'Asia/Tokyo'],
      ['constructor', 'constructor'],
    ])
      assert.equal(read({ ...ada, time_zone: said }).fields.timezone, zone, said)
  })

  it('list what was not taken, for rules too', () => {
    assert.deepEqual(read({ ...ada, shoe: { size: 9, colour: '' } }).unmapped, ['shoe.size'])
    assert.equal(read(ada).unmapped, undefined)
    const rules = [{ from: 'email', to: 'email', transforms: [] }]
    const manual = mapPayload(
      { ...ada, more: Array.from({ length: 60 }, (_, n) => n) },
      { field_mapping: { mode: 'manual', rules }, kind: 'contacts' },
    )
    assert.deepEqual([manual.unmapped!.length, manual.unmapped_more], [50, 12])
  })
})

describe('a webhook with automatic mapping', () => {
  let test: IncomingTest
  before(async () => {
    test = await startIncoming()
  })
  after(() => test?.close())

  it('leaves out guessed values that do not fit, with a warning in the answer and the log', async () => {
    const webhook = await test.createWebhook()
    const { status, body } = await test.send(webhook, {
      name: 'Ada Lovelace',
      email: 'n/a',
      phone,
      linkedin: '@ada',
      timezone: 'CET-1',
      website: 'none yet',
      tags: ['x'.repeat(65), 'vip'],
      lead_status: 'asleep',
    })
    assert.equal(status, 200, JSON.stringify(body))
    const names = body.warnings.map((warning: string) => warning.split(' ')[0]).sort()
    assert.deepEqual(names, ['email', 'lead_status', 'linkedin_url', 'tags', 'timezone', 'website'])
    assert.ok(
      body.warnings.some((text: string) => text.startsWith('linkedin_url (from linkedin) was left out: ')),
    )
    const contact = await test.contact(body.record_id)
    assert.deepEqual(
      [contact.first_name, contact.phone, contact.email, contact.tags],
      ['Ada', phone, null, ['vip']],
    )
    const [entry] = await test.logs(webhook)
    assert.deepEqual(entry.warnings, body.warnings)
    const detail = (await test.app('GET', `/webhooks/incoming/${webhook.id}/logs/${entry.id}`)).body
    assert.deepEqual(detail.mapped_data.unmapped.sort(), [
      'email',
      'lead_status',
      'linkedin',
      'timezone',
      'website',
    ])
  })

  it('leaves out custom fields that their definitions refuse', async () => {
    const webhook = await test.createWebhook()
    const field = { name: 'tier', type: 'select', label: 'Tier', options: ['gold', 'silver'] }
    const made = await test.api.request('POST', '/v1/custom-fields/contacts', { body: field })
    assert.equal(made.status, 201, JSON.stringify(made.body))
    const send = (tier: string) => test.send(webhook, { email: 'tier@example.com', custom_fields: { tier } })
    const bad = await send('tin')
    assert.deepEqual([bad.status, bad.body.warnings?.length], [200, 1], JSON.stringify(bad.body))
    const good = await send('gold')
    assert.deepEqual([good.status, good.body.warnings], [200, undefined])
    assert.equal((await test.contact(good.body.record_id)).custom_fields.tier, 'gold')
  })

  it('keeps a rule strict', async () => {
    const rules = ['email', 'phone'].map((name) => ({ from: name, to: name }))
    const webhook = await test.createWebhook({ field_mapping: { mode: 'manual', rules } })
    const { status, body } = await test.send(webhook, { email: 'n/a', phone })
    assert.deepEqual([status, Object.keys(body.details)], [400, ['email']])
  })

  it('records an opt-out of an existing contact', async () => {
    const webhook = await test.createWebhook()
    const { body } = await test.send(webhook, { email: 'ada@example.com' })
    const sent = await test.send(webhook, fixture('mailchimp-unsubscribe.txt'), { 'Content-Type': FORM })
    assert.deepEqual([sent.body.action, sent.body.record_id], ['updated', body.record_id])
    assert.equal((await test.contact(body.record_id)).do_not_contact, true)
    await test.send(webhook, { email: 'ada@example.com', unsubscribed: false })
    assert.equal((await test.contact(body.record_id)).do_not_contact, true)
  })

  it('answers a ping with 200, and so what a known sender says of nobody; of another it is refused', async () => {
    const webhook = await test.createWebhook({ verification: { type: 'secret' } })
    const before = await test.db.system('contacts').where({}).count()
    const ping = await test.send(webhook, fixture('github-ping.json'), { 'X-GitHub-Event': 'ping' })
    assert.deepEqual(ping.body, {
      success: true,
      message: 'ping of GitHub: nothing was written',
      record_id: null,
      entity: 'contact',
      action: 'skipped',
    })
    const issue = await test.send(webhook, fixture('github-issue.json'), { 'X-GitHub-Event': 'issues' })
    assert.deepEqual(
      [issue.status, issue.body.message, issue.body.action],
      [200, 'the payload of GitHub has nothing of a contact: nothing was written', 'skipped'],
    )
    const other = await test.send(webhook, { shoe_size: 9 })
    assert.deepEqual([other.status, other.body.message], [400, 'the payload has nothing of a contact'])
    assert.deepEqual(await test.db.system('contacts').where({}).count(), before)
    const [, , entry] = await test.logs(webhook)
    assert.deepEqual([entry.status, entry.action, entry.record_id], ['Success', 'Skipped', null])
    const detail = await test.app('GET', `/webhooks/incoming/${webhook.id}/logs/${entry.id}`)
    assert.deepEqual(detail.body.result, { ...ping.body })
  })

  it('answers the unsigned ping of WooCommerce, which counts as a wrong secret', async () => {
    const webhook = await test.createWebhook()
    const headers = {
      'Content-Type': FORM,
      'User-Agent': 'WooCommerce/9.4.3 Hookshot (WordPress/6.7.1)',
      'X-Webhook-Secret': '',
    }
    const answer = await test.send(webhook, 'webhook_id=5', headers)
    assert.deepEqual([answer.status, answer.body.record_id], [200, null])
    assert.equal((await test.send(webhook, 'webhook_id=5&email=x@example.com', headers)).status, 401)
    const source = await test.db.system('incoming_sources').where({ webhook_id: webhook.id }).first()
    assert.equal(source.failures, 2)
  })
})
