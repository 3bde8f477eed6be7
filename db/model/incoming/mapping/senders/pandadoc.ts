import { isObject } from '../../../../../workflows/shared/is-object.ts'
import type { Sender } from './types.ts'

/** Only `recipient_completed` has it. */
const of = (name: string) => [`data.action_by.${name}`]

/** Documents: who has completed one, else the only recipient. `data.name` is that of the document. */
export const pandadoc: Sender = {
  name: 'PandaDoc',
  documentation: 'https://developers.pandadoc.com/docs/webhook-verification',
  verification: { type: 'pandadoc' },
  sendsBatches: true,
  person: 'the recipient who has completed the document, or the only one; never the creator',
  matches: ({ payload: { event, data } }) =>
    typeof event === 'string' &&
    /^(document|recipient|quote|template|content_library_item)_[a-z_]+$/.test(event) &&
    isObject(data) &&
    ('recipients' in data || 'created_by' in data || 'document_id' in data),
  fields: {
    contacts: { first_name: of('first_name'), last_name: of('last_name'), email: of('email') },
  },
  guessIn: ['data.recipients'],
}
