import { textAt } from '../path.ts'
import type { Sender } from './types.ts'

/** Events of mails. The contact is the recipient: `From` is the account's owner, and `Name` that of the event. */
export const postmark: Sender = {
  name: 'Postmark',
  documentation: 'https://postmarkapp.com/developer/webhooks/webhooks-overview',
  verification: { type: 'basic', username: 'postmark' },
  person: 'the recipient; never the sender of the mail',
  matches: ({ payload }) => typeof payload.RecordType === 'string' && payload.ServerID !== undefined,
  deliveryId: ({ payload }) =>
    ['RecordType', 'MessageID', 'ID', 'BouncedAt', 'DeliveredAt', 'ReceivedAt', 'ChangedAt']
      .map((name) => textAt(payload, name))
      .join(' '),
  // A suppression after a bounce says nothing of what the person wants.
  optsOut: ({ payload: { RecordType, SuppressSending, SuppressionReason } }) =>
    RecordType === 'SpamComplaint' ||
    (RecordType === 'SubscriptionChange' && SuppressSending === true && SuppressionReason !== 'HardBounce'),
  fields: { contacts: { email: ['Email', 'Recipient'] } },
}
