import type { Sender } from './types.ts'

/** A multipart form; the answers are in `rawRequest`, which the parser opens. */
export const jotform: Sender = {
  name: 'Jotform',
  documentation: 'https://www.jotform.com/help/245-how-to-setup-a-webhook-with-jotform/',
  verification: { type: 'token' },
  person: 'who has filled in the form',
  matches: ({ payload }) => payload.formID !== undefined && payload.rawRequest !== undefined,
  deliveryId: ({ payload }) => payload.submissionID,
  fields: {},
  guessIn: ['rawRequest'],
}
