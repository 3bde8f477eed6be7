import { isObject } from '../../../../../workflows/shared/is-object.ts'
import { textAt, valueAt } from '../path.ts'
import type { Sender } from './types.ts'

/**
 * A form with an event in its field `json`, which the parser opens. The person is the signer of the event, or the only one:
 * the requester is ours.
 */
export const dropboxSign: Sender = {
  name: 'Dropbox Sign',
  documentation: 'https://developers.hellosign.com/docs/events/walkthrough/',
  verification: { type: 'dropbox_sign' },
  person: 'the signer of the event, or the only one; never the requester',
  matches: ({ payload: { json } }) => valueAt(json, 'event.event_hash') !== undefined,
  isPing: ({ payload }) => textAt(payload, 'json.event.event_type') === 'callback_test',
  // Two events of one second and type have the same one: the body counts, too.
  deliveryId: ({ payload }) => valueAt(payload, 'json.event.event_hash'),
  fields: { contacts: {} },
  primaryPaths({ payload }) {
    const signatures = valueAt(payload, 'json.signature_request.signatures')
    if (!Array.isArray(signatures)) return {}
    const signed = textAt(payload, 'json.event.event_metadata.related_signature_id')
    const place = signatures.findIndex((one) => isObject(one) && signed !== '' && one.signature_id === signed)
    if (place < 0 && signatures.length !== 1) return {}
    const of = (name: string) => [`json.signature_request.signatures[${Math.max(0, place)}].${name}`]
    return { full_name: of('signer_name'), email: of('signer_email_address') }
  },
  acknowledgement: { type: 'text/plain', body: 'Hello API Event Received' },
}
