import { isObject } from '../../../../../workflows/shared/is-object.ts'
import type { Sender } from './types.ts'

/** Submissions of forms, mapped by the names of their fields: `payload.name` is that of the form. Orders have a customer. */
export const webflow: Sender = {
  name: 'Webflow',
  documentation: 'https://developers.webflow.com/data/docs/working-with-webhooks',
  verification: { type: 'webflow' },
  person: 'who has filled in the form, or has ordered',
  matches: ({ headers, payload }) =>
    headers['x-webflow-signature'] !== undefined ||
    (typeof payload.triggerType === 'string' && isObject(payload.payload)),
  // Three more attempts, each 10 minutes after the one before.
  dedupeWindow: 3_600,
  fields: {
    contacts: {
      email: ['payload.customerInfo.email'],
      full_name: ['payload.customerInfo.fullName'],
    },
  },
  guessIn: ['payload.data', 'payload.formResponse'],
}
