import { textAt } from '../path.ts'
import type { Sender } from './types.ts'

/** Events, and tickets as the owner of the account writes them in a trigger: the requester is the contact. */
export const zendesk: Sender = {
  name: 'Zendesk',
  documentation: 'https://developer.zendesk.com/documentation/webhooks/verifying/',
  verification: { type: 'zendesk' },
  deliveryHeader: 'x-zendesk-webhook-invocation-id',
  person: 'the requester; never the assignee',
  matches: ({ headers, payload }) =>
    headers['x-zendesk-webhook-id'] !== undefined ||
    (typeof payload.type === 'string' && payload.type.startsWith('zen:event-type:')),
  // Its agents are users too.
  isNotice: ({ payload }) => ['agent', 'admin'].includes(textAt(payload, 'detail.role')),
  guessIn: 'anywhere',
}
