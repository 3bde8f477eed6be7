import { isObject } from '../../../../../workflows/shared/is-object.ts'
import { textAt } from '../path.ts'
import type { Sender } from './types.ts'

/** Notifications of orders and attendees, which name them by an address of its API. */
export const eventbrite: Sender = {
  name: 'Eventbrite',
  documentation: 'https://www.eventbrite.com/platform/docs/webhooks',
  verification: { type: 'token' },
  // The same order may change again: only at once is an equal body a retry.
  dedupeWindow: 10,
  matches: ({ payload }) => typeof payload.api_url === 'string' && isObject(payload.config),
  isPing: ({ payload }) => textAt(payload, 'config.action') === 'test',
  isNotice: () => true,
  fields: {},
}
