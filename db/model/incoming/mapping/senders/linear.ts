import type { Sender } from './types.ts'

/** Issues and comments, mapped by their names. */
export const linear: Sender = {
  name: 'Linear',
  documentation: 'https://linear.app/developers/webhooks',
  verification: { type: 'linear' },
  deliveryHeader: 'linear-delivery',
}
