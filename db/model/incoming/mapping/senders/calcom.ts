import type { Sender, SenderRequest } from './types.ts'

/** The request of "Ping test" names a made-up attendee. */
const isPing = ({ payload }: SenderRequest): boolean => payload.triggerEvent === 'PING'

/** Bookings: the attendee is the contact, never the organizer. */
export const calcom: Sender = {
  name: 'Cal.com',
  documentation: 'https://cal.com/docs/developing/guides/automation/webhooks',
  verification: {
    type: 'hmac',
    header: 'X-Cal-Signature-256',
    algorithm: 'sha256',
    encoding: 'hex',
    prefix: '',
  },
  // All else is mapped as of an unknown sender.
  matches: isPing,
  isPing,
  // Each body has the time of its event: an equal one is a retry.
  dedupeWindow: 86_400,
}
