import { valueAt } from '../path.ts'
import type { Sender } from './types.ts'

/** The answers of a form, and the hidden fields of its URL. */
export const typeform: Sender = {
  name: 'Typeform',
  documentation: 'https://www.typeform.com/developers/webhooks/secure-your-webhooks/',
  verification: { type: 'typeform' },
  person: 'who has filled in the form',
  matches: ({ payload }) => Array.isArray(valueAt(payload, 'form_response.answers')),
  deliveryId: ({ payload }) => payload.event_id,
  fields: {},
  guessIn: ['form_response.answers', 'form_response.hidden'],
}
