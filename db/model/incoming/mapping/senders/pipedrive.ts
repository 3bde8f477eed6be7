import { isObject } from '../../../../../workflows/shared/is-object.ts'
import type { Payload } from '../../parse-body.ts'
import { textAt, valueAt } from '../path.ts'
import type { KnownPaths, Sender, SenderRequest } from './types.ts'

/** Version 2 has the record in `data`, version 1 in `current`. */
const PLACES = ['data', 'current']

const of = (...names: string[]) => PLACES.flatMap((place) => names.map((name) => `${place}.${name}`))

const DEAL: KnownPaths = {
  name: of('title'),
  amount: of('value'),
  currency: of('currency'),
  expected_close_date: of('expected_close_date'),
}

const entityOf = ({ payload }: SenderRequest) =>
  textAt(payload, 'meta.entity') || textAt(payload, 'meta.object')

const isPipedrive = ({ payload }: SenderRequest) =>
  isObject(payload.meta) &&
  ['2.0', '1'].includes(textAt(payload, 'meta.version') || textAt(payload, 'meta.v')) &&
  valueAt(payload, 'meta.permitted_user_ids') !== undefined &&
  Object.hasOwn(payload, 'previous')

/** A change of a record that is no person, organization, deal or activity; nothing of it is mapped. */
export const pipedrive: Sender = {
  name: 'Pipedrive',
  documentation: 'https://pipedrive.readme.io/docs/guide-for-webhooks-v2',
  verification: { type: 'basic', username: 'pipedrive' },
  matches: isPipedrive,
  deliveryId: ({ payload }) =>
    ['entity', 'object', 'id', 'timestamp_micro', 'timestamp']
      .map((name) => textAt(payload, `meta.${name}`))
      .join(' '),
  attemptMembers: ['meta.attempt', 'retry'],
  // The record of a deletion is in `previous` alone.
  isNotice: ({ payload }) => PLACES.every((place) => !isObject(payload[place])),
  fields: {},
}

const variant = (entity: string, fields: NonNullable<Sender['fields']>): Sender => ({
  ...pipedrive,
  matches: (request) => isPipedrive(request) && entityOf(request) === entity,
  fields,
})

/** The primary value of each list, else its first. */
const primaryOf = (payload: Payload, lists: string[]): string[] =>
  lists.flatMap((path) => {
    const list = valueAt(payload, path)
    if (!Array.isArray(list)) return []
    const at = list.findIndex((one) => isObject(one) && one.primary === true && one.value)
    return [`${path}[${Math.max(0, at)}].value`]
  })

/** The names of a deal are not those of a contact, so each entity has its own paths. */
export const pipedriveEntities: Sender[] = [
  {
    ...variant('person', {
      contacts: {
        full_name: of('name'),
        first_name: of('first_name'),
        last_name: of('last_name'),
        job_title: of('job_title'),
        company_name: of('org_name'),
      },
    }),
    primaryPaths: ({ payload }) => ({
      email: primaryOf(payload, of('emails', 'email')),
      phone: primaryOf(payload, of('phones', 'phone')),
    }),
    optsOut: ({ payload }) =>
      PLACES.some((place) => textAt(payload, `${place}.marketing_status`) === 'unsubscribed'),
  },
  variant('organization', {
    companies: {
      name: of('name'),
      website: of('website'),
      'address.city': of('address.locality', 'address_locality'),
      'address.state': of('address.admin_area_level_1', 'address_admin_area_level_1'),
      'address.postal_code': of('address.postal_code', 'address_postal_code'),
      'address.country': of('address.country', 'address_country'),
    },
  }),
  variant('deal', { deals: DEAL }),
  variant('activity', {
    tasks: {
      title: of('subject'),
      body: of('note'),
      due_at: of('due_date'),
      external_id: of('id'),
    },
  }),
]
