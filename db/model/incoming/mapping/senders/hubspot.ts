import type { Payload } from '../../parse-body.ts'
import { valueAt } from '../path.ts'
import type { Sender } from './types.ts'

const isEvent = ({ subscriptionType, portalId, objectId }: Payload) =>
  typeof subscriptionType === 'string' && portalId !== undefined && objectId !== undefined

/** Objects with `properties`, each a value or `{value}`. Their names are those of the account, so they are guessed. */
export const hubspot: Sender = {
  name: 'HubSpot',
  documentation: 'https://developers.hubspot.com/docs/api-reference/webhooks-webhooks-v3/guide',
  verification: { type: 'hubspot' },
  sendsBatches: true,
  // The contact of a workflow has no id, but the time of its last change.
  dedupeWindow: 86_400,
  person: 'the contact; never its owner',
  matches: ({ headers, payload }) =>
    (headers['x-hubspot-signature-v3'] ?? headers['x-hubspot-signature']) !== undefined ||
    isEvent(payload) ||
    (typeof payload.properties === 'object' &&
      (payload.vid !== undefined ||
        payload['portal-id'] !== undefined ||
        valueAt(payload, 'properties.hs_object_id') !== undefined)),
  // The events of an app name an object. https://developers.hubspot.com/docs/api-reference/webhooks-webhooks-v3/guide
  isNotice: ({ payload }) => isEvent(payload),
  optsOut: ({ payload }) =>
    ['hs_email_optout', 'hs_email_optout.value'].some(
      (name) => String(valueAt(payload, `properties.${name}`)) === 'true',
    ),
  fields: {
    contacts: { company_name: ['associated-company.properties.name.value'] },
    companies: {},
    deals: { name: ['properties.dealname', 'properties.dealname.value'] },
  },
  guessIn: ['properties'],
}
