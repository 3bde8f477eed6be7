import { isObject } from '../../../../../workflows/shared/is-object.ts'
import type { Sender } from './types.ts'

/** Lead ads: the id of a lead, whose answers the page's owner asks for. https://developers.facebook.com/docs/marketing-api/guides/lead-ads/retrieving */
export const meta: Sender = {
  name: 'Meta',
  documentation: 'https://developers.facebook.com/docs/graph-api/webhooks/getting-started',
  verification: { type: 'meta' },
  matches: ({ payload: { object, entry } }) =>
    ['page', 'user', 'permissions', 'whatsapp_business_account', 'instagram'].includes(String(object)) &&
    Array.isArray(entry) &&
    entry.every((one) => isObject(one) && (Array.isArray(one.changes) || Array.isArray(one.messaging))),
  isNotice: () => true,
  fields: {},
}
