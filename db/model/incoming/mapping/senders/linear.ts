import type { Sender } from './types.ts'

/** Events of a workspace. Its people are ours, and a comment or a reaction is no task. */
export const linear: Sender = {
  name: 'Linear',
  documentation: 'https://linear.app/developers/webhooks',
  verification: { type: 'linear' },
  deliveryHeader: 'linear-delivery',
  matches: ({ headers, payload: { webhookId, webhookTimestamp } }) =>
    headers['linear-delivery'] !== undefined ||
    (typeof webhookId === 'string' && typeof webhookTimestamp === 'number'),
  isNotice: ({ payload }) => payload.action === 'remove',
  fields: {},
}

/** An issue is a task. */
export const linearIssue: Sender = {
  ...linear,
  matches: (request) => linear.matches(request) && request.payload.type === 'Issue',
  fields: {
    tasks: {
      title: ['data.title'],
      body: ['data.description'],
      due_at: ['data.dueDate'],
      external_id: ['data.id'],
    },
  },
}
