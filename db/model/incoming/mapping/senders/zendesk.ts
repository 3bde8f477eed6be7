import type { Sender } from './types.ts'

/** Tickets and users: the requester is the contact. */
export const zendesk: Sender = {
  name: 'Zendesk',
  documentation: 'https://developer.zendesk.com/documentation/webhooks/verifying/',
  verification: { type: 'zendesk' },
  deliveryHeader: 'x-zendesk-webhook-invocation-id',
}
