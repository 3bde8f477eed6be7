import { isObject } from '../../../../../workflows/shared/is-object.ts'
import type { Sender } from './types.ts'

/** Changes of tasks, lists and others, which are named by their id. The `user` of a change is of the workspace. */
export const clickup: Sender = {
  name: 'ClickUp',
  documentation: 'https://developer.clickup.com/docs/webhooksignature',
  verification: { type: 'hmac', header: 'X-Signature', algorithm: 'sha256', encoding: 'hex', prefix: '' },
  // Each change has an id: an equal body is a retry.
  dedupeWindow: 86_400,
  matches: ({ payload: { event, webhook_id } }) =>
    typeof webhook_id === 'string' && /^(task|list|folder|space|goal|keyResult)[A-Z]/.test(String(event)),
  isNotice: () => true,
  fields: {},
}

/** The task of an automation with the action "Call webhook". https://developer.clickup.com/docs/automationwebhookpayload */
export const clickupAutomation: Sender = {
  ...clickup,
  matches: ({ payload: { auto_id, trigger_id, payload } }) =>
    typeof auto_id === 'string' && typeof trigger_id === 'string' && isObject(payload),
  isNotice: () => false,
  fields: { tasks: { title: ['payload.name'], external_id: ['payload.id'] } },
}
