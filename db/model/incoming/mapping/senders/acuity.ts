import type { Sender } from './types.ts'

/** Notifications of appointments and orders, which name them by an id. */
export const acuity: Sender = {
  name: 'Acuity',
  documentation: 'https://developers.acuityscheduling.com/docs/webhooks',
  verification: {
    type: 'hmac',
    header: 'X-Acuity-Signature',
    algorithm: 'sha256',
    encoding: 'base64',
    prefix: '',
  },
  // The same appointment may change again: only at once is an equal body a retry.
  dedupeWindow: 10,
  matches: ({ headers, payload: { action, id, calendarID, appointmentTypeID } }) =>
    headers['x-acuity-signature'] !== undefined ||
    (typeof action === 'string' &&
      id !== undefined &&
      calendarID !== undefined &&
      appointmentTypeID !== undefined),
  isNotice: () => true,
  fields: {},
}
