import { isObject } from '../../../../../workflows/shared/is-object.ts'
import type { Sender } from './types.ts'

/** Notifications of responses, which name them by an id; `name` is that of the webhook. It looks for the URL with HEAD. */
export const surveymonkey: Sender = {
  name: 'SurveyMonkey',
  documentation: 'https://api.surveymonkey.com/v3/docs#webhooks',
  verification: { type: 'token' },
  // Each event has an id: an equal body is a retry.
  dedupeWindow: 86_400,
  matches: ({ payload: { event_type, object_type, event_id, resources } }) =>
    typeof event_type === 'string' &&
    typeof object_type === 'string' &&
    event_id !== undefined &&
    isObject(resources),
  isNotice: () => true,
  fields: {},
}
