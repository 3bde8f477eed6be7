import { z } from 'zod'
import type { HttpResponse } from '../effects/http.ts'
import { NodeError } from '../language/node-error.ts'
import { defineNode } from './define.ts'
import { httpUrl } from './http-fields.ts'
import { isTransientStatus } from './retry-after.ts'

/** Limits of Slack. */
const MAX_TEXT = 40_000
const MAX_BLOCKS = 50

export const slackMessage = defineNode({
  type: 'slack_message',
  engine: 4,
  category: 'integration',
  title: 'Send Slack message',
  alsoCalled: [
    'slack',
    'send_slack',
    'slack_send',
    'slack_notification',
    'notify_slack',
    'post_message',
    'chat',
  ],
  description:
    "Posts a message to a Slack channel through an incoming webhook. Its URL belongs to one channel. Slack cannot recognize a repetition: after an answer that was lost, a retry posts the message again. Slack's errors are explained; see `error.details.slack_error`.",
  effect: 'external',
  effects: ['http'],
  config: z.strictObject({
    webhook_url: httpUrl.describe(
      'The URL of the incoming webhook. Store it as a secret, and write `{{ secrets.<name> }}`.',
    ),
    text: z
      .string()
      .min(1)
      .max(MAX_TEXT)
      .describe(
        "The message in Slack's format: `*bold*`, `<https://example.com|a link>`. With `blocks`, the notification.",
      ),
    blocks: z
      .array(z.looseObject({ type: z.string() }))
      .max(MAX_BLOCKS)
      .optional()
      .describe("The layout of the message, as Slack's Block Kit Builder writes it."),
    mentions: z
      .boolean()
      .default(false)
      .describe(
        'Whether `<!channel>`, `<!here>` and `<@U…>` notify people. If false they are plain text, also where a record holds them.',
      ),
  }),
  errorDetails: z.strictObject({ status: z.int(), slack_error: z.string() }),
  output: z.strictObject({ sent: z.literal(true) }),
  handles: () => [{ name: 'success', description: 'Slack has accepted the message.' }],
  retry: { max_attempts: 3, initial_interval: '2s' },
  example: {
    config: {
      webhook_url: '{{ secrets.slack_sales }}',
      text: 'Won: *{{ trigger.record.name }}* ({{ trigger.record.amount }} {{ trigger.record.currency }})',
    },
    inputs: {
      trigger: { record: { name: 'Acme renewal', amount: '1250.00', currency: 'USD' } },
      secrets: { slack_sales: 'https://hooks.slack.example/services/sales' },
    },
    output: { sent: true },
  },
  async run({ webhook_url, text, blocks, mentions }, { http }) {
    const message = { text, ...(blocks === undefined ? {} : { blocks }) }
    const response = await http.request({
      method: 'POST',
      url: webhook_url,
      follow_redirects: false,
      body: mentions ? message : (withoutMentions(message) as typeof message),
    })
    if (response.status < 200 || response.status > 299) throw slackError(response)
    return { output: { sent: true } }
  },
})

/** Slack shows `&lt;` as `<`. */
function withoutMentions(value: unknown): unknown {
  if (typeof value === 'string') return value.replaceAll(/<(?=[!@])/g, '&lt;')
  if (Array.isArray(value)) return value.map(withoutMentions)
  if (typeof value !== 'object' || value === null) return value
  return Object.fromEntries(Object.entries(value).map(([key, member]) => [key, withoutMentions(member)]))
}

const REMOVED = 'the webhook no longer exists: create another one in Slack, and replace the secret'
const FORBIDDEN = 'an admin of the workspace has restricted who can post to the channel'

/** The errors of Slack's incoming webhooks, each with its remedy. */
const EXPLAINED: Record<string, string> = {
  invalid_payload: 'the message is not as Slack expects it: check `text` and `blocks`',
  invalid_blocks: 'the blocks are not as Slack expects them: check them in the Block Kit Builder',
  invalid_blocks_format: 'the blocks are not as Slack expects them: check them in the Block Kit Builder',
  no_text: 'the message has no text',
  user_not_found: 'the user that the message is for does not exist',
  channel_not_found: 'the channel of the webhook no longer exists: choose another one in Slack',
  channel_is_archived: 'the channel of the webhook is archived: unarchive it, or choose another one',
  action_prohibited: FORBIDDEN,
  posting_to_general_channel_denied: FORBIDDEN,
  too_many_attachments: 'the message has more attachments than Slack takes',
  no_service: REMOVED,
  no_service_id: REMOVED,
  no_team: 'the workspace does not exist: check the URL of the webhook',
  team_disabled: 'the workspace is disabled',
  invalid_token: 'the URL of the webhook is wrong: copy it from Slack again',
  rollup_error: 'Slack could not process the message',
  rate_limited: 'too many messages: a webhook takes about one per second',
}

function slackError({ status, body }: HttpResponse): NodeError {
  const answer = typeof body === 'string' ? body.trim().slice(0, 200) : ''
  const meaning = Object.hasOwn(EXPLAINED, answer) ? EXPLAINED[answer] : undefined
  const said = answer ? `Slack answered ${status} ${answer}` : `Slack answered ${status}`
  return new NodeError('slack_error', meaning ? `${said}: ${meaning}` : said, {
    retryable: isTransientStatus(status),
    details: { status, slack_error: answer },
  })
}
