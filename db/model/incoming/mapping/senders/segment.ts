import { addressAt, type Sender } from './types.ts'

const of = (name: string) => [`traits.${name}`, `context.traits.${name}`]

/** The parts of an address, by the names of Segment. */
const ADDRESS = {
  line1: 'street',
  city: 'city',
  state: 'state',
  postal_code: 'postalCode',
  country: 'country',
}

/** Persons and what they did, alone or in batches. https://segment.com/docs/connections/spec/identify/ */
export const segment: Sender = {
  name: 'Segment',
  documentation: 'https://www.twilio.com/docs/segment/connections/destinations/catalog/webhooks',
  verification: { type: 'hmac', header: 'X-Signature', algorithm: 'sha1', encoding: 'hex', prefix: '' },
  person: 'the user',
  sendsBatches: true,
  matches: ({ payload }) =>
    typeof payload.messageId === 'string' &&
    ['identify', 'track', 'page', 'screen', 'group', 'alias'].includes(String(payload.type)),
  deliveryId: ({ payload }) => payload.messageId,
  fields: {
    contacts: {
      email: [...of('email'), 'properties.email'],
      full_name: of('name'),
      first_name: of('firstName'),
      last_name: of('lastName'),
      phone: of('phone'),
      job_title: of('title'),
      website: of('website'),
      company_name: of('company.name'),
      external_id: ['userId'],
      ...addressAt(of('address'), ADDRESS),
    },
  },
}

/** The traits of a group are those of a company; only the context has those of the user. */
export const segmentGroup: Sender = {
  ...segment,
  matches: (request) => segment.matches(request) && request.payload.type === 'group',
  fields: {
    contacts: {
      email: ['context.traits.email'],
      full_name: ['context.traits.name'],
      first_name: ['context.traits.firstName'],
      last_name: ['context.traits.lastName'],
      phone: ['context.traits.phone'],
      company_name: ['traits.name'],
      external_id: ['userId'],
    },
    companies: {
      name: ['traits.name'],
      email: ['traits.email'],
      phone: ['traits.phone'],
      website: ['traits.website'],
      external_id: ['groupId'],
      ...addressAt(['traits.address'], ADDRESS),
    },
  },
}
