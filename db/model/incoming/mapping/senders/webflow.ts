import type { Sender } from './types.ts'

/** Submissions of forms, mapped by the names of their fields. */
export const webflow: Sender = {
  name: 'Webflow',
  documentation: 'https://developers.webflow.com/data/docs/working-with-webhooks',
  verification: { type: 'webflow' },
  dedupeWindow: 300,
}
