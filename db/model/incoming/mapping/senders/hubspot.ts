import { valueAt } from '../path.ts'
import type { Sender } from './types.ts'

/** Objects with `properties`, each a value or `{value}`. Their names are those of the account, so they are guessed. */
export const hubspot: Sender = {
  name: 'HubSpot',
  matches: ({ headers, payload }) =>
    (headers['x-hubspot-signature-v3'] ?? headers['x-hubspot-signature']) !== undefined ||
    (typeof payload.properties === 'object' &&
      (payload.vid !== undefined ||
        payload['portal-id'] !== undefined ||
        valueAt(payload, 'properties.hs_object_id') !== undefined)),
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
