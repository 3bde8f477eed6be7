import { isObject } from '../../../../../workflows/shared/is-object.ts'
import type { Sender } from './types.ts'

/** Changes of the items of a board. A column of addresses or numbers has that of a person, in its new value. */
export const monday: Sender = {
  name: 'monday.com',
  documentation: 'https://developer.monday.com/api-reference/reference/webhooks',
  verification: { type: 'token' },
  person: 'the address or the number in the changed column',
  // Each event has an id: an equal body is a retry.
  dedupeWindow: 86_400,
  matches: ({ payload: { event } }) =>
    isObject(event) && event.boardId !== undefined && event.pulseId !== undefined,
  fields: {
    contacts: { email: ['event.value.email'], phone: ['event.value.phone'] },
    tasks: { title: ['event.pulseName'], external_id: ['event.pulseId'] },
  },
}
