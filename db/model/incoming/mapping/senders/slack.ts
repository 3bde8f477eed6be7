import type { Sender } from './types.ts'

/**
 * Events and commands of the members of a workspace, who are ours: they start workflows. The challenge of its set-up is
 * answered for every webhook with its verification.
 */
export const slack: Sender = {
  name: 'Slack',
  documentation: 'https://docs.slack.dev/authentication/verifying-requests-from-slack',
  verification: { type: 'slack' },
  matches: ({ headers, payload: { type, team_id, api_app_id, command, trigger_id } }) =>
    headers['x-slack-signature'] !== undefined ||
    (type === 'event_callback' && (team_id ?? api_app_id) !== undefined) ||
    (command !== undefined && trigger_id !== undefined),
  deliveryId: ({ payload }) => {
    if (payload.type === 'event_callback') return payload.event_id
    return payload.command === undefined ? undefined : payload.trigger_id
  },
  fields: {},
}
