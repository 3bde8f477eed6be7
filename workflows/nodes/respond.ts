import { z } from 'zod'
import { defineNode } from './define.ts'

/**
 * The headers that a workflow may set. Others belong to the connection, to the service (cookies, redirects, its own
 * policy for browsers) or to a proxy before it, which some headers make read files (`X-Accel-Redirect`).
 */
const HEADERS = [
  'cache-control',
  'content-language',
  'etag',
  'last-modified',
  'retry-after',
  'webhook-allowed-origin',
  'webhook-allowed-rate',
  'x-hook-secret',
  'x-slack-no-retry',
]

/** Bytes of a body: every waiting request of a process may have one in memory. */
const MAX_BODY = 256 * 1024

/** The forms of a body, with their content types. The API forbids a browser to run scripts in any of them. */
const TYPES = {
  json: 'application/json; charset=utf-8',
  text: 'text/plain; charset=utf-8',
  xml: 'text/xml; charset=utf-8',
} as const
const FORMS = Object.keys(TYPES) as (keyof typeof TYPES)[]

const WITHOUT_BODY = [204, 205]

const config = z
  .strictObject({
    status: z
      .int()
      .refine((status) => (status >= 200 && status <= 299) || (status >= 400 && status <= 499), {
        message:
          'must be 200 to 299 or 400 to 499: the sender of a 5xx would repeat the request, and get it again',
      })
      .default(200),
    headers: z
      .record(
        z.string().refine((name) => HEADERS.includes(name.toLowerCase()), {
          message: `is not allowed: one of ${HEADERS.join(', ')}`,
        }),
        z
          .string()
          .max(1_000)
          .regex(/^[\t\x20-\x7e]*$/, 'must be printable ASCII'),
      )
      .default({})
      .describe(`Only ${HEADERS.join(', ')}.`),
    json: z.unknown().optional().describe('The body, sent as JSON: any value.'),
    text: z.string().optional().describe('The body as plain text.'),
    xml: z.string().optional().describe('The body as XML, such as TwiML; write values with `| escape`.'),
  })
  .superRefine((given, ctx) => {
    const forms = FORMS.filter((form) => given[form] !== undefined)
    const issue = (message: string) =>
      ctx.addIssue({ code: 'custom', path: [forms.at(-1)!], message, input: given })
    if (forms.length > 1) issue('there is another body: write only one of json, text, xml')
    else if (forms.length > 0 && WITHOUT_BODY.includes(given.status))
      issue(`a response with the status ${given.status} has no body`)
    else if (Buffer.byteLength(bodyOf(given).body) > MAX_BODY) issue(`may have at most ${MAX_BODY} bytes`)
  })

export const respond = defineNode({
  type: 'respond',
  engine: 12,
  category: 'integration',
  title: 'Respond to the webhook',
  alsoCalled: ['respond_to_webhook', 'webhook_response', 'http_response', 'reply', 'answer'],
  description:
    'Answers the sender of the webhook that started the run, if the webhook waits (`response_wait`). The first answer of a run counts, a second fails with `already_responded`; the run goes on. A sender that repeats the request gets the same answer.',
  effect: 'write',
  effects: ['responses'],
  responds: true,
  config,
  output: z.strictObject({ status: z.int(), bytes: z.int().describe('The length of the body.') }),
  handles: () => [{ name: 'success', description: 'The answer is stored, and sent if the sender waits.' }],
  example: {
    config: { text: 'Order {{ inputs.order }} is on its way.' },
    inputs: { inputs: { order: 'A-7' } },
    output: { status: 200, bytes: 24 },
  },
  run: async (given, { responses }) => {
    const { status, headers } = given
    const { content_type, body } = bodyOf(given)
    await responses.respond({ status, headers, content_type, body })
    return { output: { status, bytes: Buffer.byteLength(body) } }
  },
})

function bodyOf({
  json,
  text,
  xml,
}: {
  json?: unknown
  text?: string | undefined
  xml?: string | undefined
}) {
  if (json !== undefined) return { content_type: TYPES.json, body: JSON.stringify(json) }
  if (xml !== undefined) return { content_type: TYPES.xml, body: xml }
  return { content_type: TYPES.text, body: text ?? '' }
}
