import { valueAt } from '../path.ts'
import type { Sender } from './types.ts'

const THINGS = ['issue', 'pull_request', 'discussion']

const of = (name: string) => THINGS.map((thing) => `${thing}.${name}`)

/** Events of a repository: an issue, a pull request or a discussion is a task. Users have no address, only a login. */
export const github: Sender = {
  name: 'GitHub',
  documentation: 'https://docs.github.com/en/webhooks/using-webhooks/validating-webhook-deliveries',
  verification: { type: 'github' },
  deliveryHeader: 'x-github-delivery',
  matches: ({ headers, payload }) =>
    headers['x-github-event'] !== undefined ||
    (typeof payload.zen === 'string' && payload.hook_id !== undefined) ||
    (valueAt(payload, 'repository.full_name') !== undefined &&
      valueAt(payload, 'sender.login') !== undefined),
  isPing: ({ headers, payload }) =>
    headers['x-github-event'] === 'ping' ||
    (typeof payload.zen === 'string' && payload.hook_id !== undefined),
  // Also that of a comment, which says nothing new of its issue.
  isNotice: ({ payload }) => payload.action === 'deleted',
  fields: {
    tasks: { title: of('title'), body: of('body'), external_id: of('node_id') },
  },
}
