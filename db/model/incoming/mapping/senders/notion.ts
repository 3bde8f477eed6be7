import { isObject } from '../../../../../workflows/shared/is-object.ts'
import type { Sender } from './types.ts'

/**
 * Changes of pages and databases, which are named by their id; the authors of a change are of the workspace. The first
 * request has a token that the owner copies from the log into the settings of Notion.
 */
export const notion: Sender = {
  name: 'Notion',
  documentation: 'https://developers.notion.com/reference/webhooks',
  verification: { type: 'token' },
  matches: ({ payload }) =>
    (typeof payload.verification_token === 'string' && Object.keys(payload).length === 1) ||
    (typeof payload.subscription_id === 'string' &&
      typeof payload.integration_id === 'string' &&
      Array.isArray(payload.authors) &&
      isObject(payload.entity)),
  isPing: ({ payload }) => payload.verification_token !== undefined,
  deliveryId: ({ payload }) => payload.id,
  attemptMembers: ['attempt_number'],
  isNotice: () => true,
  fields: {},
}
