import { isObject } from '../../../../../workflows/shared/is-object.ts'
import type { Sender } from './types.ts'

const isEvent = (one: unknown) =>
  isObject(one) && typeof one.action === 'string' && isObject(one.resource) && 'resource_type' in one.resource

/**
 * Changes of tasks, projects and others, which are named by their id; the `user` of a change is of the workspace. Its
 * handshake is answered by `repeatedHeader`.
 */
export const asana: Sender = {
  name: 'Asana',
  documentation: 'https://developers.asana.com/docs/webhooks-guide',
  verification: { type: 'token' },
  sendsBatches: true,
  // Each change has the time of its event: an equal body is a retry, of at most 24 hours.
  dedupeWindow: 86_400,
  // The change of a batch is in the place of its list.
  matches: ({ payload: { events } }) => [events].flat().length > 0 && [events].flat().every(isEvent),
  isNotice: () => true,
  fields: {},
}
