import type { Sender } from './types.ts'

/** Senders that use Svix (Clerk, Resend and others), mapped by their names. */
export const svix: Sender = {
  name: 'Svix',
  documentation: 'https://docs.svix.com/receiving/verifying-payloads/how-manual',
  verification: { type: 'svix' },
  deliveryHeader: 'svix-id',
  matches: ({ headers }) => headers['svix-id'] !== undefined,
  guessIn: 'anywhere',
}
