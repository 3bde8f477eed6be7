import { createHmac } from 'node:crypto'
import { readFileSync } from 'node:fs'
import type { Verification } from '../../db/model/incoming/types.ts'
import { hexKey, publicKey, SIGNING, type Sign, secret } from './sender-signatures.ts'

/** Requests of senders in the shape of their public documentation, with made-up people. */

const file = (name: string) =>
  readFileSync(new URL(`../fixtures/webhooks/${name}`, import.meta.url), 'latin1')
const json = (value: unknown) => JSON.stringify(value)
const FORM = 'application/x-www-form-urlencoded'

export interface SenderRequest {
  /** A known sender, or the name of another one. */
  sender: string
  /** What is sent. */
  what: string
  body: string
  type?: string
  headers?: Record<string, string>
  /** How the webhook verifies it; default: by the signature of its sender. */
  verification?: Verification
  target?: string
}

const person = { first_name: 'Ada', last_name: 'Lovelace', email: 'ada@example.com' }
const tally: Verification = {
  type: 'hmac',
  header: 'Tally-Signature',
  algorithm: 'sha256',
  encoding: 'base64',
  prefix: '',
}
const lemon: Verification = {
  type: 'hmac',
  header: 'X-Signature',
  algorithm: 'sha256',
  encoding: 'hex',
  prefix: '',
}

const docusign: Verification = { ...tally, header: 'X-DocuSign-Signature-1' }
const helpScout: Verification = { ...tally, header: 'X-HelpScout-Signature', algorithm: 'sha1' }

export const SENDER_REQUESTS: SenderRequest[] = [
  { sender: 'cal.com', what: 'booking', body: file('calcom-booking.json') },
  { sender: 'calendly', what: 'invitee', body: file('calendly-invitee.json') },
  {
    sender: 'github',
    what: 'issue',
    body: file('github-issue.json'),
    headers: { 'X-GitHub-Event': 'issues' },
    target: 'Task',
  },
  { sender: 'github', what: 'ping', body: file('github-ping.json'), headers: { 'X-GitHub-Event': 'ping' } },
  { sender: 'hubspot', what: 'contact', body: file('hubspot-contact.json') },
  { sender: 'intercom', what: 'contact', body: file('intercom-contact.json') },
  {
    sender: 'jotform',
    what: 'submission',
    body: file('jotform.multipart'),
    type: 'multipart/form-data; boundary=------------------------c0ffee',
  },
  {
    sender: 'linear',
    what: 'issue',
    target: 'Task',
    headers: { 'Linear-Delivery': '234d1a4e-b617-4388-90fe-adc3633d6b72' },
    body: json({
      action: 'create',
      type: 'Issue',
      actor: { id: 'u1', name: 'Grace Hopper', email: 'grace@host.example' },
      data: {
        id: '2174add1-f7c8-44e3-bbf3-2d60b5ea8bc9',
        title: 'The mill jams',
        description: 'On carry.',
        dueDate: '2026-12-01',
      },
      webhookId: '000042e3-d123-4980-b49f-8e140eef9329',
      webhookTimestamp: 1_770_920_772_000,
    }),
  },
  {
    sender: 'linkedin',
    what: 'notification of a lead',
    body: json({
      type: 'LEAD_ACTION',
      leadGenFormResponse: 'urn:li:leadGenFormResponse:1-5',
      leadAction: 'CREATED',
    }),
  },
  { sender: 'mailchimp', what: 'unsubscription', body: file('mailchimp-unsubscribe.txt'), type: FORM },
  {
    sender: 'mailgun',
    what: 'complaint',
    body: json({
      signature: {},
      'event-data': {
        id: 'CPgfbmQMTCKtHW6uIWtuVe',
        timestamp: 1_521_472_262.9,
        event: 'complained',
        recipient: 'ada@example.com',
        envelope: { sender: 'grace@host.example' },
      },
    }),
  },
  {
    sender: 'meta',
    what: 'id of a lead',
    body: json({
      object: 'page',
      entry: [
        { id: '1', time: 1, changes: [{ field: 'leadgen', value: { leadgen_id: '4', page_id: '1' } }] },
      ],
    }),
  },
  {
    sender: 'paddle',
    what: 'customer',
    body: json({
      event_id: 'evt_01hv8x29kz0t586xy6zn1a62ny',
      event_type: 'customer.created',
      notification_id: 'ntf_01hv8x2axj8g6wk1w2ck6vq8q5',
      data: {
        id: 'ctm_01hv6y1jedq4p1n0yqn5ba3ky4',
        name: 'Ada Lovelace',
        email: 'ada@example.com',
        locale: 'en',
        status: 'active',
        marketing_consent: false,
      },
    }),
  },
  {
    sender: 'pipedrive',
    what: 'person',
    body: json({
      meta: {
        action: 'create',
        entity: 'person',
        version: '2.0',
        id: '5f2c6b1e',
        entity_id: '1',
        attempt: 1,
        permitted_user_ids: ['1'],
        timestamp: '2026-09-27T14:25:28.000Z',
      },
      data: {
        id: 1,
        first_name: 'Ada',
        last_name: 'Lovelace',
        name: 'Ada Lovelace',
        emails: [{ label: 'work', value: 'ada@example.com', primary: true }],
        job_title: 'Countess',
      },
      previous: null,
    }),
  },
  {
    sender: 'pipedrive',
    what: 'activity',
    target: 'Task',
    body: json({
      meta: {
        action: 'create',
        entity: 'activity',
        version: '2.0',
        id: '6a',
        entity_id: '9',
        attempt: 1,
        permitted_user_ids: ['1'],
      },
      data: { id: 9, subject: 'Mend the mill', note: 'On carry.', due_date: '2026-12-01', owner_id: 1 },
      previous: null,
    }),
  },
  {
    sender: 'segment',
    what: 'identify',
    body: json({
      type: 'identify',
      messageId: 'm-1',
      userId: 'u-1',
      traits: { firstName: 'Ada', lastName: 'Lovelace', email: 'ada@example.com', title: 'Countess' },
    }),
  },
  {
    sender: 'sendgrid',
    what: 'batch of two events',
    body: json([
      { email: 'ada@example.com', timestamp: 1, event: 'delivered', sg_event_id: 'a', sg_message_id: 'm' },
      { email: 'ada@example.com', timestamp: 2, event: 'unsubscribe', sg_event_id: 'b', sg_message_id: 'm' },
    ]),
  },
  {
    sender: 'shopify',
    what: 'customer',
    body: file('shopify-customer.json'),
    headers: { 'X-Shopify-Topic': 'customers/create' },
  },
  {
    sender: 'slack',
    what: 'command',
    type: FORM,
    target: 'none',
    body: 'command=%2Flead&text=Ada&user_id=U1&team_id=T1&trigger_id=13345224609.738474920.8088930838d88f008e0',
  },
  { sender: 'stripe', what: 'checkout', body: file('stripe-checkout.json') },
  {
    sender: 'svix',
    what: 'user of Clerk',
    body: json({
      type: 'user.created',
      object: 'event',
      data: {
        id: 'user_29w83sxmDNGwOuEthce5gg56FcC',
        first_name: 'Ada',
        last_name: 'Lovelace',
        email_addresses: [
          { id: 'idn_1', email_address: 'ada@example.com', verification: { status: 'verified' } },
        ],
        primary_email_address_id: 'idn_1',
      },
    }),
  },
  {
    sender: 'twilio',
    what: 'SMS',
    type: FORM,
    body: 'AccountSid=AC1&MessageSid=SM1&From=%2B442079460000&To=%2B442079460001&Body=Hello',
  },
  { sender: 'typeform', what: 'answers', body: file('typeform.json') },
  {
    sender: 'webflow',
    what: 'submission of a form',
    body: json({
      triggerType: 'form_submission',
      payload: {
        name: 'Contact',
        siteId: '65427cf400e02b306eaa049c',
        data: { 'First Name': 'Ada', 'Last Name': 'Lovelace', 'Email address': 'ada@example.com' },
        id: '6321ca84df3949bfc6752327',
      },
    }),
  },
  {
    sender: 'woocommerce',
    what: 'customer',
    body: file('woocommerce-customer.json'),
    headers: { 'X-WC-Webhook-Topic': 'customer.created', 'X-WC-Webhook-Delivery-ID': '1' },
  },
  {
    sender: 'zendesk',
    what: 'ticket',
    body: file('zendesk-ticket.json'),
    headers: { 'X-Zendesk-Webhook-Invocation-Id': '01' },
  },
  { sender: 'Tally', what: 'answers', body: file('tally.json'), verification: tally },
  {
    sender: 'Google Forms',
    what: 'answers',
    body: file('google-form.json'),
    verification: { type: 'secret' },
  },
  {
    sender: 'Meta, by a connector',
    what: 'answers of a lead',
    body: file('facebook-lead.json'),
    verification: { type: 'secret' },
  },
  {
    sender: 'LinkedIn, by a connector',
    what: 'answers of a lead',
    body: file('linkedin-lead.json'),
    verification: { type: 'secret' },
  },
  {
    sender: 'Polar',
    what: 'customer, by Standard Webhooks',
    verification: { type: 'standard_webhooks' },
    body: json({
      type: 'customer.created',
      timestamp: '2026-06-01T10:00:00Z',
      data: {
        id: '992fae2a-2a17-4b7a-8d9e-e287cf90131b',
        email: 'ada@example.com',
        name: 'Ada Lovelace',
        billing_address: { city: 'London', country: 'GB', postal_code: 'SW1Y 4JH' },
      },
    }),
  },
  {
    sender: 'Lemon Squeezy',
    what: 'order',
    verification: lemon,
    body: json({
      meta: { event_name: 'order_created' },
      data: {
        type: 'orders',
        id: '1',
        attributes: {
          store_id: 1,
          user_name: 'Ada Lovelace',
          user_email: 'ada@example.com',
          currency: 'GBP',
          total: 999,
        },
      },
    }),
  },
  {
    sender: 'ActiveCampaign',
    what: 'contact',
    type: FORM,
    verification: { type: 'token' },
    body: 'type=subscribe&contact%5Bid%5D=7&contact%5Bemail%5D=ada%40example.com&contact%5Bfirst_name%5D=Ada&contact%5Blast_name%5D=Lovelace&contact%5Bphone%5D=%2B442079460000',
  },
  {
    sender: 'HTML form',
    what: 'fields',
    type: FORM,
    verification: { type: 'token' },
    body: 'name=Ada+Lovelace&email=ada%40example.com&company=Analytical+Engines&message=The+mill+jams.',
  },
  {
    sender: 'XML',
    what: 'lead',
    type: 'application/xml',
    verification: { type: 'secret' },
    body: '<lead><firstName>Ada</firstName><lastName>Lovelace</lastName><email type="work">ada@example.com</email></lead>',
  },
  {
    sender: 'brevo',
    what: 'unsubscription',
    body: json({
      event: 'unsubscribed',
      email: 'ada@example.com',
      id: 26224,
      date: '2026-11-27 11:00:00',
      ts: 1604933623,
      'message-id': '<201798300811.5787683@relay.example>',
      subject: 'News of the engine',
      tag: '["news"]',
      sending_ip: '203.0.113.4',
    }),
  },
  {
    sender: 'chargebee',
    what: 'customer',
    body: json({
      id: 'ev_16BHbhF4s42tO2lK',
      occurred_at: 1702645601,
      source: 'admin_console',
      user: 'grace@host.example',
      object: 'event',
      api_version: 'v2',
      event_type: 'customer_created',
      content: {
        customer: {
          id: '16BHbhF4s42tO2lJ',
          first_name: 'Ada',
          last_name: 'Lovelace',
          email: 'ada@example.com',
          phone: '+442079460000',
          company: 'Analytical Engines',
          locale: 'en',
          billing_address: {
            line1: "12 St James's Square",
            city: 'London',
            country: 'GB',
            zip: 'SW1Y 4JH',
            object: 'billing_address',
          },
          object: 'customer',
        },
      },
    }),
  },
  {
    sender: 'customer.io',
    what: 'unsubscription',
    body: json({
      event_id: '01E4C4CT6YDC7Y5M7FE1GWWPQJ',
      object_type: 'email',
      metric: 'unsubscribed',
      timestamp: 1613063089,
      data: {
        customer_id: '42',
        identifiers: { cio_id: 'd9c106000001', email: 'ada@example.com', id: '42' },
        recipient: 'ada@example.com',
        subject: 'News of the engine',
      },
    }),
  },
  {
    sender: 'freshdesk',
    what: 'ticket',
    body: json({
      freshdesk_webhook: {
        ticket_id: 7,
        ticket_subject: 'The mill jams',
        ticket_description: 'On carry.',
        ticket_requester_name: 'Ada Lovelace',
        ticket_requester_email: 'ada@example.com',
        ticket_requester_phone: '+442079460000',
        ticket_company_name: 'Analytical Engines',
        ticket_agent_name: 'Grace Hopper',
        ticket_agent_email: 'grace@host.example',
      },
    }),
  },
  {
    sender: 'gitlab',
    what: 'issue',
    target: 'Task',
    headers: {
      'X-Gitlab-Event': 'Issue Hook',
      'X-Gitlab-Event-UUID': '13792a34-cac6-4fda-95a8-c58e00a3954e',
    },
    body: json({
      object_kind: 'issue',
      event_type: 'issue',
      user: { id: 1, name: 'Grace Hopper', username: 'grace', email: 'grace@host.example' },
      project: { id: 1, name: 'Engine' },
      object_attributes: {
        id: 301,
        title: 'The mill jams',
        description: 'On carry.',
        due_date: '2026-12-01',
        state: 'opened',
        action: 'open',
      },
      assignees: [{ id: 51, name: 'Charles Babbage', email: 'charles@host.example' }],
    }),
  },
  {
    sender: 'gumroad',
    what: 'sale',
    type: FORM,
    body: 'seller_id=abc%3D%3D&product_name=Notes&permalink=eng&email=ada%40example.com&price=1000&currency=usd&can_contact=false&sale_id=FO8TXN&full_name=Ada+Lovelace&country=GB&city=London',
  },
  {
    sender: 'postmark',
    what: 'complaint',
    body: json({
      RecordType: 'SpamComplaint',
      MessageStream: 'outbound',
      ID: 42,
      Type: 'SpamComplaint',
      Tag: 'news',
      MessageID: '883953f4-6105-42a2-a16a-77a8eac79483',
      Email: 'ada@example.com',
      From: 'news@host.example',
      BouncedAt: '2026-11-27T10:00:00Z',
      Inactive: true,
      Subject: 'News of the engine',
      ServerID: 1234,
      Name: 'Spam complaint',
      Description: 'The subscriber explicitly marked this message as spam.',
    }),
  },
  {
    sender: 'resend',
    what: 'complaint',
    body: json({
      type: 'email.complained',
      created_at: '2026-11-22T23:41:12.126Z',
      data: {
        email_id: '56761188-7520-42d8-8898-ff6fc54ce618',
        from: 'News <news@host.example>',
        to: ['ada@example.com'],
        subject: 'News of the engine',
      },
    }),
  },
  {
    sender: 'Contact Form 7',
    what: 'fields',
    verification: { type: 'token' },
    body: json({
      'your-name': 'Ada Lovelace',
      'your-email': 'ada@example.com',
      'your-subject': 'The mill',
      'your-message': 'It jams.',
    }),
  },
  {
    sender: 'DocuSign',
    what: 'signature of a recipient',
    verification: docusign,
    body: json({
      event: 'recipient-completed',
      apiVersion: 'v2.1',
      data: {
        envelopeId: 'e',
        envelopeSummary: {
          status: 'sent',
          emailSubject: 'Contract',
          sender: { userName: 'Grace Hopper', email: 'grace@host.example' },
          recipients: {
            signers: [
              {
                creationReason: 'sender',
                email: 'ada@example.com',
                name: 'Ada Lovelace',
                recipientId: '1',
                roleName: 'Client',
                status: 'completed',
              },
            ],
          },
        },
      },
    }),
  },
  {
    sender: 'Elementor',
    what: 'fields',
    type: FORM,
    verification: { type: 'token' },
    body: 'form%5Bid%5D=1&form%5Bname%5D=Contact&fields%5Bname%5D%5Bid%5D=name&fields%5Bname%5D%5Btitle%5D=Name&fields%5Bname%5D%5Bvalue%5D=Ada+Lovelace&fields%5Bemail%5D%5Bid%5D=email&fields%5Bemail%5D%5Btitle%5D=Email&fields%5Bemail%5D%5Bvalue%5D=ada%40example.com&meta%5Bremote_ip%5D%5Bvalue%5D=203.0.113.9',
  },
  {
    sender: 'Help Scout',
    what: 'conversation',
    verification: helpScout,
    body: json({
      id: 1,
      number: 2,
      status: 'active',
      subject: 'The mill',
      assignee: { id: 9, type: 'user', first: 'Grace', last: 'Hopper', email: 'grace@host.example' },
      primaryCustomer: { id: 4, type: 'customer', first: 'Ada', last: 'Lovelace', email: 'ada@example.com' },
    }),
  },
  {
    sender: 'salesforce',
    what: 'outbound message of a lead',
    type: 'text/xml',
    body: '<?xml version="1.0"?><soapenv:Envelope xmlns:soapenv="http://schemas.xmlsoap.org/soap/envelope/" xmlns:xsi="http://www.w3.org/2001/XMLSchema-instance"><soapenv:Body><notifications xmlns="http://soap.sforce.com/2005/09/outbound"><OrganizationId>00D</OrganizationId><Notification><Id>04l</Id><sObject xsi:type="sf:Lead" xmlns:sf="urn:sobject.enterprise.soap.sforce.com"><sf:Id>00Q</sf:Id><sf:Company>Analytical Engines</sf:Company><sf:Email>ada@example.com</sf:Email><sf:FirstName>Ada</sf:FirstName><sf:LastName>Lovelace</sf:LastName></sObject></Notification></notifications></soapenv:Body></soapenv:Envelope>',
  },
  {
    sender: 'square',
    what: 'customer',
    body: json({
      merchant_id: 'M',
      type: 'customer.created',
      event_id: 'e-1',
      data: {
        type: 'customer',
        id: 'C1',
        object: {
          customer: {
            address: {
              address_line_1: "12 St James's Square",
              country: 'GB',
              locality: 'London',
              postal_code: 'SW1Y 4JH',
            },
            company_name: 'Analytical Engines',
            email_address: 'ada@example.com',
            family_name: 'Lovelace',
            given_name: 'Ada',
            id: 'C1',
            phone_number: '+442079460000',
          },
        },
      },
    }),
  },
  {
    sender: 'zoom',
    what: 'registrant of a meeting',
    body: json({
      event: 'meeting.registration_created',
      event_ts: 1_626_230_691_572,
      payload: {
        account_id: 'A',
        object: {
          id: 1,
          host_id: 'H',
          topic: 'The mill',
          timezone: 'America/Los_Angeles',
          registrant: {
            id: 'r',
            ...person,
            org: 'Analytical Engines',
            job_title: 'Countess',
            city: 'London',
          },
        },
      },
    }),
  },
  {
    sender: 'aircall',
    what: 'call with a contact',
    body: json({
      resource: 'call',
      event: 'call.ended',
      timestamp: 1_537_525_832,
      token: 'baedb5a81c7f97089ded54e5ad4a2218',
      data: {
        id: 7,
        user: { id: 9, name: 'Grace Hopper', email: 'grace@host.example' },
        contact: {
          id: 1,
          first_name: 'Ada',
          last_name: 'Lovelace',
          emails: [],
          phone_numbers: [{ id: 2, label: 'Work', value: '+442079460000' }],
        },
        number: { id: 5, name: 'Sales', digits: '+44 20 7946 9999', time_zone: 'Europe/London' },
      },
    }),
  },
  {
    sender: 'kit',
    what: 'cancellation of a subscriber',
    body: json({
      subscriber: {
        id: 1,
        first_name: 'Ada',
        email_address: 'ada@example.com',
        state: 'cancelled',
        fields: { 'Last Name': 'Lovelace' },
      },
    }),
  },
  {
    sender: 'acuity',
    what: 'id of an appointment',
    type: FORM,
    body: 'action=scheduled&id=7&calendarID=2&appointmentTypeID=3',
  },
  {
    sender: 'eventbrite',
    what: 'address of an order',
    body: json({
      config: { action: 'order.placed', user_id: '1', endpoint_url: 'https://agx.example', webhook_id: '2' },
      api_url: 'https://www.eventbriteapi.com/v3/orders/1/',
    }),
  },
  {
    sender: 'jira',
    what: 'issue',
    target: 'Task',
    headers: { 'X-Atlassian-Webhook-Identifier': 'f1a5d2b4-0000-4000-8000-000000000001' },
    body: json({
      timestamp: 1_764_200_000_000,
      webhookEvent: 'jira:issue_created',
      user: { displayName: 'Grace Hopper', emailAddress: 'grace@host.example', timeZone: 'Europe/London' },
      issue: {
        id: '99291',
        key: 'MILL-1',
        fields: { summary: 'The mill jams', description: 'On carry.', duedate: '2026-12-01' },
      },
    }),
  },
  {
    sender: 'dropbox_sign',
    what: 'signature',
    body: json({
      event: {
        event_type: 'signature_request_signed',
        event_metadata: { related_signature_id: 's2', reported_for_account_id: 'a' },
      },
      account_guid: 'a',
      signature_request: {
        signature_request_id: 'r1',
        title: 'Contract',
        requester_email_address: 'grace@host.example',
        signatures: [
          { signature_id: 's1', signer_email_address: 'bob@example.com', signer_name: 'Bob' },
          { signature_id: 's2', signer_email_address: 'ada@example.com', signer_name: 'Ada Lovelace' },
        ],
      },
    }),
  },
  {
    sender: 'asana',
    what: 'change of a task',
    headers: { 'X-Hook-Signature': 'a'.repeat(64) },
    body: json({
      events: [
        {
          user: { gid: '12345', resource_type: 'user' },
          created_at: '2026-11-26T16:32:29.147Z',
          action: 'changed',
          resource: { gid: '1337', resource_type: 'task', resource_subtype: 'default_task' },
          change: { field: 'name', action: 'changed' },
          parent: null,
        },
      ],
    }),
  },
  {
    sender: 'notion',
    what: 'change of a page',
    headers: { 'X-Notion-Signature': `sha256=${'a'.repeat(64)}` },
    body: json({
      id: '367cba44-b6f3-4c92-81e7-6a2e9659efd4',
      timestamp: '2026-11-26T20:36:23.617Z',
      workspace_id: '13950b26-c203-4f3b-b97d-93ec06319565',
      subscription_id: '29d75c0d-5546-4414-8459-7b7a92f1fc4b',
      integration_id: '0ef2e755-4912-8096-91c1-00376a88a5ca',
      type: 'page.properties_updated',
      authors: [{ id: 'c7c11cca-1d73-471d-9b6e-bdef51470190', type: 'person' }],
      attempt_number: 1,
      entity: { id: '153104cd-477e-809d-8dc4-ff2d96ae3090', type: 'page' },
      data: { parent: { id: '13950b26-c203-4f3b-b97d-93ec06319565', type: 'space' } },
    }),
  },
  {
    sender: 'pandadoc',
    what: 'completed document',
    body: json([
      {
        event: 'document_state_changed',
        data: {
          id: 'a',
          name: 'Contract',
          created_by: { email: 'grace@host.example', first_name: 'Grace', last_name: 'Hopper' },
          status: 'document.completed',
          recipients: [{ ...person, recipient_type: 'SIGNER', has_completed: true }],
          sent_by: { email: 'grace@host.example', first_name: 'Grace', last_name: 'Hopper' },
        },
      },
    ]),
  },
  {
    sender: 'dialpad',
    what: 'call of a contact',
    body: json({
      call_id: 1,
      state: 'hangup',
      direction: 'inbound',
      contact: { id: 'c', name: 'Ada Lovelace', email: '', phone: '+442079460000', type: 'local' },
      target: { id: 5, type: 'user', name: 'Grace Hopper', email: 'grace@host.example' },
    }),
  },
  {
    sender: 'chatwoot',
    what: 'message of an agent',
    headers: { 'X-Chatwoot-Delivery': '5f2c6b1e-0000-4000-8000-000000000001' },
    body: json({
      event: 'message_created',
      id: 1,
      content: 'We shall mend it.',
      message_type: 'outgoing',
      account: { id: 3, name: 'Mills' },
      inbox: { id: 2, name: 'Website' },
      sender: { id: 9, type: 'user', name: 'Grace Hopper', email: 'grace@host.example' },
      conversation: {
        id: 7,
        status: 'open',
        meta: {
          sender: { id: 8, type: 'contact', name: 'Ada Lovelace', email: 'ada@example.com' },
          assignee: { id: 9, type: 'user', name: 'Grace Hopper', email: 'grace@host.example' },
        },
      },
    }),
  },
  {
    sender: 'callrail',
    what: 'call',
    body: json({
      resource_id: 'CAL1',
      company_id: 'COM1',
      company_name: 'Mills Ltd',
      customer_name: 'Ada Lovelace',
      customer_phone_number: '+442079460000',
      customer_city: 'London',
      tracking_phone_number: '+442079461111',
      agent_email: 'grace@host.example',
    }),
  },
  {
    sender: 'close',
    what: 'contact',
    body: json({
      event: {
        id: 'ev_2sYKRjcrA79yKxi3S4Crd7',
        action: 'created',
        object_type: 'contact',
        organization_id: 'orga_XbV',
        user_id: 'user_N6K',
        data: {
          id: 'cont_1',
          name: 'Ada Lovelace',
          title: 'Countess',
          emails: [{ email: 'ada@example.com', type: 'office' }],
          phones: [{ phone: '+442079460000', country: 'GB', type: 'office' }],
          created_by: 'user_N6K',
        },
        previous_data: {},
      },
      subscription_id: 'whsub_4Ds',
    }),
  },
  {
    sender: 'clickup',
    what: 'change of a task',
    body: json({
      event: 'taskCreated',
      task_id: '1vj38vv',
      webhook_id: '7fa3ec74-69a8-4530-a251-8a13730bd204',
      history_items: [
        {
          id: '2800763136717140857',
          type: 1,
          field: 'status',
          user: { id: 183, username: 'Grace Hopper', email: 'grace@host.example' },
          before: null,
          after: { status: 'open' },
        },
      ],
    }),
  },
  {
    sender: 'monday.com',
    what: 'new item of a board',
    target: 'Task',
    body: json({
      event: {
        userId: 9,
        boardId: 1,
        pulseId: 1_772_099_344,
        pulseName: 'Mend the mill',
        groupName: 'Mills',
        columnValues: {},
        type: 'create_pulse',
        triggerUuid: '645fc8d8709d35718f1ae00ceded91e9',
      },
    }),
  },
  { sender: 'mollie', what: 'id of a payment', type: FORM, body: 'id=tr_5B8cwPMGnU' },
  {
    sender: 'surveymonkey',
    what: 'id of a response',
    type: 'application/vnd.surveymonkey.response.v1+json',
    body: json({
      name: 'Response Webhook',
      event_type: 'response_completed',
      event_id: '9',
      object_type: 'response',
      object_id: '7',
      resources: { respondent_id: '7', survey_id: '123', user_id: '1' },
    }),
  },
  {
    sender: 'Klaviyo',
    what: 'unsubscription',
    verification: { type: 'token' },
    body: json({
      data: [
        {
          topic: 'event:klaviyo.unsubscribed_from_email_marketing',
          payload: {
            data: { type: 'event', id: '4', attributes: { event_properties: {} } },
            included: [{ type: 'profile', id: '01', attributes: { ...person, title: 'Countess' } }],
          },
        },
      ],
      meta: { klaviyo_webhook_id: 'w', version: '1' },
    }),
  },
  {
    sender: 'Webex',
    what: 'message',
    verification: { type: 'token' },
    body: json({
      id: 'w',
      name: 'New message',
      resource: 'messages',
      event: 'created',
      data: { id: 'm', roomId: 'r', personEmail: 'ada@example.com' },
    }),
  },
  {
    sender: 'FastSpring',
    what: 'order',
    verification: { type: 'token' },
    body: json({
      events: [
        {
          id: 'e1',
          type: 'order.completed',
          data: {
            order: 'O',
            customer: {
              first: 'Ada',
              last: 'Lovelace',
              email: 'ada@example.com',
              company: 'Analytical Engines',
            },
            items: [{ product: 'p', display: 'Notes' }],
          },
        },
      ],
    }),
  },
  {
    sender: 'HTTP basic',
    what: 'person',
    verification: { type: 'basic', username: 'crm' },
    body: json(person),
  },
]

/** The time of events that are signed with it, also if they are sent twice. */
const STARTED = Math.floor(Date.now() / 1000)

/** A body as a JSON Web Token, signed with HS256. */
export function tokenOf(body: string, key: string): string {
  const encoded = (text: string) => Buffer.from(text, 'latin1').toString('base64url')
  const signed = `${encoded('{"alg":"HS256","typ":"JWT"}')}.${encoded(body)}`
  return `${signed}.${createHmac('sha256', key).update(signed).digest('base64url')}`
}

export const secretFor = ({ type }: Pick<Verification, 'type'>): string =>
  ({ sendgrid: publicKey, close: hexKey })[type as string] ?? secret

/** The query, the headers and the body of a request as its sender proves it with `secret`; forged: with another one. */
export function proven(
  { body, type = 'application/json', headers = {} }: SenderRequest,
  verification: Verification,
  url: string,
  isForged: boolean,
): { query: string; headers: Record<string, string>; body: Buffer } {
  const time = Math.floor(Date.now() / 1000)
  const given = isForged ? `${secret}x` : secret
  const signedText = isForged ? `${body} ` : body
  const sent = (own: Record<string, string>, query = '', text = body) => ({
    query,
    headers: { 'Content-Type': type, ...headers, ...own },
    body: Buffer.from(text, 'latin1'),
  })
  switch (verification.type) {
    case 'secret':
      return sent({ 'X-Webhook-Secret': given })
    case 'token':
      return sent({}, `?token=${encodeURIComponent(given)}`)
    case 'basic':
      return sent({
        Authorization: `Basic ${Buffer.from(`${verification.username}:${given}`).toString('base64')}`,
      })
    case 'hmac': {
      const { header, algorithm, encoding, prefix } = verification
      const mac = createHmac(algorithm, secret).update(signedText, 'latin1').digest(encoding)
      return sent({ [header]: prefix + mac })
    }
    case 'mailgun': {
      const [timestamp, token] = [String(time), 'a'.repeat(50)]
      const signature = createHmac('sha256', given)
        .update(timestamp + token)
        .digest('hex')
      return sent({}, '', json({ ...JSON.parse(body), signature: { timestamp, token, signature } }))
    }
    case 'dropbox_sign': {
      const whole = JSON.parse(body)
      const event_hash = createHmac('sha256', given)
        .update(`${STARTED}${whole.event.event_type}`)
        .digest('hex')
      const event = { ...whole.event, event_time: String(STARTED), event_hash }
      const part = 'Content-Disposition: form-data; name="json"'
      return sent(
        { 'Content-Type': 'multipart/form-data; boundary=b' },
        '',
        `--b\r\n${part}\r\n\r\n${json({ ...whole, event })}\r\n--b--\r\n`,
      )
    }
    case 'pandadoc': {
      const signature = createHmac('sha256', given).update(body, 'latin1').digest('hex')
      return sent({}, `?signature=${signature}`)
    }
    case 'dialpad':
      return sent({ 'Content-Type': 'application/jwt' }, '', tokenOf(body, given))
    default: {
      const sign: Sign = SIGNING[verification.type]
      return sent(sign(signedText, time, url))
    }
  }
}
