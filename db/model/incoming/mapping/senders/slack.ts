import type { Sender } from './types.ts'

/** Events and commands; the challenge of its set-up is answered for every webhook with its verification. */
export const slack: Sender = {
  name: 'Slack',
  documentation: 'https://docs.slack.dev/authentication/verifying-requests-from-slack',
  verification: { type: 'slack' },
  deliveryId: ({ payload }) => {
    if (payload.type === 'event_callback') return payload.event_id
    return payload.command === undefined ? undefined : payload.trigger_id
  },
}
