import { textAt, valueAt } from '../path.ts'
import { addressAt, type KnownPaths, type Sender } from './types.ts'

const NOTIFICATION = ['Body', 'notifications', 'Notification']
const RECORD = `${NOTIFICATION.join('.')}.sObject`

const SESSION = 'Body.notifications.SessionId'

const of = (...names: string[]) => names.map((name) => `${RECORD}.${name}`)

const ACK =
  '<?xml version="1.0" encoding="UTF-8"?><soapenv:Envelope xmlns:soapenv="http://schemas.xmlsoap.org/soap/envelope/">'.concat(
    '<soapenv:Body><notificationsResponse xmlns="http://soap.sforce.com/2005/09/outbound"><Ack>true</Ack>',
    '</notificationsResponse></soapenv:Body></soapenv:Envelope>',
  )

/** Outbound messages of a flow: SOAP with up to 100 notifications, each with a record. Objects of the account's own are guessed. */
export const salesforce: Sender = {
  name: 'Salesforce',
  documentation:
    'https://developer.salesforce.com/docs/atlas.en-us.api.meta/api/sforce_api_om_outboundmessaging_setting_up.htm',
  verification: { type: 'token' },
  person: 'the lead or contact, or who has opened the case; never the owner',
  sendsBatches: true,
  recordsAt: NOTIFICATION,
  matches: ({ payload }) =>
    valueAt(payload, 'Body.notifications.OrganizationId') !== undefined &&
    valueAt(payload, NOTIFICATION.join('.')) !== undefined,
  deliveryId: ({ payload }) => valueAt(payload, `${NOTIFICATION.join('.')}.Id`),
  attemptMembers: [SESSION],
  secretFields: [SESSION],
  acknowledgement: { type: 'text/xml', body: ACK },
  optsOut: ({ payload }) => textAt(payload, `${RECORD}.HasOptedOutOfEmail`) === 'true',
  guessIn: [RECORD],
}

const variant = (objects: string[], fields: NonNullable<Sender['fields']>): Sender => {
  const { guessIn: _, ...common } = salesforce
  return {
    ...common,
    matches: (request) =>
      salesforce.matches(request) &&
      objects.includes(textAt(request.payload, `${RECORD}.type`).replace(/^.*:/, '')),
    fields,
  }
}

const address = (prefix: string) =>
  addressAt([RECORD], {
    line1: `${prefix}Street`,
    city: `${prefix}City`,
    state: `${prefix}State`,
    postal_code: `${prefix}PostalCode`,
    country: `${prefix}Country`,
  })

const PERSON: KnownPaths = {
  first_name: of('FirstName'),
  last_name: of('LastName'),
  email: of('Email'),
  phone: of('Phone'),
  mobile_phone: of('MobilePhone'),
  job_title: of('Title'),
  lead_source: of('LeadSource'),
}

/** The standard objects: the name of an account or of an opportunity is none of a person. */
export const salesforceVariants: Sender[] = [
  variant(['Lead'], { contacts: { ...PERSON, company_name: of('Company'), ...address('') } }),
  variant(['Contact'], { contacts: { ...PERSON, ...address('Mailing') } }),
  variant(['Account'], {
    companies: { name: of('Name'), phone: of('Phone'), website: of('Website'), ...address('Billing') },
  }),
  variant(['Opportunity'], {
    deals: { name: of('Name'), amount: of('Amount'), expected_close_date: of('CloseDate') },
  }),
  variant(['Case', 'Task'], {
    contacts: {
      full_name: of('SuppliedName'),
      email: of('SuppliedEmail'),
      phone: of('SuppliedPhone'),
      company_name: of('SuppliedCompany'),
    },
    tasks: {
      title: of('Subject'),
      body: of('Description'),
      due_at: of('ActivityDate'),
      external_id: of('Id'),
    },
  }),
]
