import type { Sender } from './types.ts'

/** Events of issues: an issue is a task. `user` is who has changed it, and the description is no text in each version. */
export const jira: Sender = {
  name: 'Jira',
  documentation: 'https://developer.atlassian.com/cloud/jira/platform/webhooks/',
  verification: {
    type: 'hmac',
    header: 'X-Hub-Signature',
    algorithm: 'sha256',
    encoding: 'hex',
    prefix: 'sha256=',
  },
  deliveryHeader: 'x-atlassian-webhook-identifier',
  matches: ({ payload: { webhookEvent, timestamp } }) =>
    typeof webhookEvent === 'string' && timestamp !== undefined,
  isNotice: ({ payload }) => !String(payload.webhookEvent).startsWith('jira:issue_'),
  fields: {
    tasks: {
      title: ['issue.fields.summary'],
      body: ['issue.fields.description'],
      due_at: ['issue.fields.duedate'],
      external_id: ['issue.id'],
    },
  },
}
