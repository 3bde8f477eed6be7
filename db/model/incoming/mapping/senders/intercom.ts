import { textAt, valueAt } from '../path.ts'
import type { KnownPaths, Sender } from './types.ts'

const PERSONS = ['data.item', 'data.item.contact', 'data.item.user']

/** Who has begun a conversation: a contact, or one of ours. */
const AUTHOR = 'data.item.source.author'
const OURS = ['admin', 'bot', 'team']

const of = (...names: string[]) => PERSONS.flatMap((person) => names.map((name) => `${person}.${name}`))

/** Notifications about a contact, a lead or a conversation. The `url` of its company is not the person's website. */
export const intercom: Sender = {
  name: 'Intercom',
  documentation: 'https://developers.intercom.com/docs/webhooks/setting-up-webhooks',
  verification: { type: 'intercom' },
  person: 'the contact, or the author of a conversation; never the admin',
  matches: ({ payload }) => payload.type === 'notification_event' && Object.hasOwn(payload, 'topic'),
  deliveryId: ({ payload }) => payload.id,
  isPing: ({ payload }) => payload.topic === 'ping',
  optsOut: ({ payload }) =>
    payload.topic === 'contact.unsubscribed' ||
    payload.topic === 'user.unsubscribed' ||
    of('unsubscribed_from_emails').some((path) => valueAt(payload, path) === true),
  fields: {
    contacts: {
      full_name: of('name'),
      email: of('email'),
      phone: of('phone'),
      timezone: of('location_data.timezone'),
      company_name: of('companies.data[0].name', 'companies.companies[0].name'),
      'address.city': of('location.city', 'location_data.city_name'),
      'address.state': of('location.region', 'location_data.region_name'),
      'address.country': of('location.country', 'location_data.country_name'),
    },
    companies: { name: of('companies.data[0].name', 'companies.companies[0].name') },
  },
  primaryPaths: ({ payload }): KnownPaths =>
    OURS.includes(textAt(payload, `${AUTHOR}.type`))
      ? {}
      : { full_name: [...of('name'), `${AUTHOR}.name`], email: [...of('email'), `${AUTHOR}.email`] },
  guessIn: ['data.item.custom_attributes'],
}

/** Notifications about a company, whose name is none of a person. */
export const intercomCompany: Sender = {
  ...intercom,
  matches: (request) => intercom.matches(request) && textAt(request.payload, 'data.item.type') === 'company',
  fields: {
    companies: { name: ['data.item.name'], website: ['data.item.website'], industry: ['data.item.industry'] },
  },
  primaryPaths: () => ({}),
}
