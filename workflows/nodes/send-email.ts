import { z } from 'zod'
import { MAIL_LIMITS } from '../effects/mail.ts'
import { NodeError } from '../language/node-error.ts'
import { fileName, givenFile } from '../shared/files.ts'
import { FILES } from '../shared/limits.ts'
import { NOT_A_MAILBOX, parseMailbox } from '../shared/mailbox.ts'
import { defineNode } from './define.ts'

const mailbox = z
  .string()
  .max(500)
  .refine((text) => parseMailbox(text) !== undefined, NOT_A_MAILBOX)

const optionalMailbox = z
  .string()
  .max(500)
  .refine((text) => text.trim() === '' || parseMailbox(text) !== undefined, NOT_A_MAILBOX)

const listOf = (item: z.ZodString) => z.array(item).max(MAIL_LIMITS.recipients)

const copies = z
  .union([optionalMailbox, listOf(optionalMailbox), z.null()])
  .default([])
  .describe('An address, or a list of addresses; an empty one, or null, counts as none.')

const body = z.string().max(MAIL_LIMITS.body).optional()

const config = z.strictObject({
  to: z
    .union([mailbox, listOf(mailbox).min(1)])
    .describe('An address, `ada@example.com` or `Ada Lovelace <ada@example.com>`, or a list of addresses.'),
  cc: copies,
  bcc: copies,
  reply_to: optionalMailbox.optional().describe('Where answers go; default: to the address of the service.'),
  from_name: z
    .string()
    .max(200)
    .optional()
    .describe(
      'The name of the sender that recipients see, to which `via` and the name of the service are added; the address is that of the service.',
    ),
  subject: z.string().min(1).max(MAIL_LIMITS.subject).describe('Line breaks in it become spaces.'),
  text: body.describe('The mail as plain text.'),
  html: body.describe('The mail as HTML. Values of placeholders need the filter `escape`.'),
  attachments: z
    .array(givenFile.extend({ name: fileName.optional() }))
    .max(FILES.attachments)
    .default([])
    .describe(
      `Files, such as \`["{{ nodes.<id>.output.file }}"]\` of an api_request. At most ${FILES.attachments}, together ${FILES.attachmentBytes / 1024 / 1024} MiB; \`name\` replaces the name of a file.`,
    ),
})

export const sendEmail = defineNode({
  type: 'send_email',
  engine: 1,
  laterUses: [{ engine: 8, isUsed: ({ attachments }) => attachments !== undefined }],
  category: 'integration',
  title: 'Send email',
  alsoCalled: ['email', 'mail', 'send_mail', 'smtp', 'gmail', 'sendgrid', 'mailgun', 'notify_by_email'],
  description: `Sends a mail through the SMTP server of the service, from its address, to at most ${MAIL_LIMITS.recipients} recipients. \`text\` or \`html\` is required; with both, the mail has two alternatives. The Message-ID is the same for every attempt, so that mail systems recognize a mail that was sent twice. If the server answers 4xx or cannot be reached, the attempt is retried as set by \`retry\`; not after 5xx. Above the recipients per minute of the plan the node waits, above those per day it fails. Addresses that unsubscribed, bounced or complained get no mail, and are in \`rejected\`.`,
  effect: 'external',
  effects: ['mail'],
  html: ['html'],
  addresses: ['to', 'cc', 'bcc', 'reply_to'],
  // Which record a file belongs to is known only when it is sent.
  scopes: ({ attachments }, { entities }) =>
    attachments === undefined ? [] : Object.keys(entities).map((kind) => `${kind}:read`),
  config,
  output: z.strictObject({
    message_id: z.string().describe('The Message-ID of the mail.'),
    accepted: z.array(z.string()).describe('The addresses that the server has accepted.'),
    rejected: z
      .array(z.strictObject({ address: z.string(), reply: z.string() }))
      .describe('The addresses that the server has refused, each with its reply.'),
  }),
  handles: () => [
    { name: 'success', description: 'The server has accepted the mail for at least one recipient.' },
  ],
  retry: { max_attempts: 3 },
  check: (given) =>
    // An unknown setting may be a misspelt `text` or `html`.
    given.text !== undefined || given.html !== undefined || Object.keys(given).some(isUnknown)
      ? []
      : [
          {
            code: 'missing_value',
            message: 'config has neither text nor html',
            path: [],
            hint: 'add `text: …`',
          },
        ],
  example: {
    config: {
      to: '{{ inputs.name }} <{{ inputs.email }}>',
      subject: 'Welcome, {{ inputs.name }}',
      text: 'Hello {{ inputs.name }}, we are glad that you are here.',
    },
    inputs: { inputs: { name: 'Ada', email: 'ada@example.com' } },
    output: {
      message_id: '<2f8b6c0e4d1a79355c3e9b7f60d2a481@example.com>',
      accepted: ['ada@example.com'],
      rejected: [],
    },
  },
  async run(
    { to, cc, bcc, reply_to = '', from_name, subject, text, html, attachments },
    { mail, idempotencyKey },
  ) {
    if (!text && !html) throw new NodeError('invalid_config', 'text and html are both empty: one is required')
    const recipients = { to: mailboxesIn(to), cc: mailboxesIn(cc ?? []), bcc: mailboxesIn(bcc ?? []) }
    const count = Object.values(recipients).flat().length
    if (count > MAIL_LIMITS.recipients)
      throw new NodeError(
        'too_many_recipients',
        `to, cc and bcc have ${count} addresses, at most ${MAIL_LIMITS.recipients} are sent at once: use for_each`,
      )
    return {
      output: await mail.send({
        key: idempotencyKey,
        ...recipients,
        replyTo: parseMailbox(reply_to),
        fromName: from_name,
        subject,
        text,
        html,
        attachments,
      }),
    }
  },
})

const isUnknown = (name: string) => !Object.hasOwn(config.shape, name)

const mailboxesIn = (given: string | string[]) => [given].flat().flatMap((text) => parseMailbox(text) ?? [])
