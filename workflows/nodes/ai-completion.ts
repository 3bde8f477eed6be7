import { createHash } from 'node:crypto'
import { z } from 'zod'
import type { HttpRequest, HttpResponse } from '../effects/http.ts'
import type { Grant } from '../effects/lookups.ts'
import { NodeError } from '../language/node-error.ts'
import { isObject } from '../shared/is-object.ts'
import { type AskedCall, functionsOf } from './ai-tools.ts'
import { isStrict, mismatchOf } from './output-schema.ts'
import { isTransientStatus, retryAfterMs } from './retry-after.ts'

/** OpenAI's chat completions protocol: requests to an endpoint, and the meaning of its answers. */

export const OPENAI = 'https://api.openai.com/v1'

export interface Message {
  role: string
  content: string | null
  tool_calls?: AskedCall[]
  tool_call_id?: string
}

interface Conversation {
  system?: string | undefined
  messages: { role: string; content: string }[]
  prompt?: string | undefined
}

interface CompletionConfig extends Conversation {
  base_url: string
  api_key?: string | undefined
  model: string
  output_schema?: Record<string, unknown> | undefined
  tools: Grant[]
  temperature?: number | undefined
  max_tokens?: number | undefined
}

/** The request for the next answer; `last`: the model must answer now. */
export function requestOf(
  config: CompletionConfig,
  messages: Message[],
  { idempotencyKey, last }: { idempotencyKey: string; last: boolean },
): HttpRequest {
  const { base_url, api_key, model, output_schema, tools, temperature, max_tokens } = config
  const limit = base_url === OPENAI ? 'max_completion_tokens' : 'max_tokens'
  const isFirst = !messages.some(({ role }) => role === 'tool')
  // The key depends on the conversation, because the calls of the model may differ in another attempt.
  const conversation = createHash('sha256').update(JSON.stringify(messages)).digest('base64url')
  return {
    method: 'POST',
    url: `${base_url.replace(/\/+$/, '')}/chat/completions`,
    headers: {
      'Idempotency-Key': isFirst ? idempotencyKey : `${idempotencyKey}:${conversation}`,
      ...(api_key ? { Authorization: `Bearer ${api_key}` } : {}),
    },
    body: {
      model,
      messages,
      ...(temperature === undefined ? {} : { temperature }),
      ...(max_tokens === undefined ? {} : { [limit]: max_tokens }),
      ...(output_schema ? { response_format: formatOf(output_schema) } : {}),
      ...(tools.length > 0 ? { tools: functionsOf(tools), tool_choice: last ? 'none' : 'auto' } : {}),
    },
    // The API key is for this endpoint only.
    follow_redirects: false,
  }
}

export const messagesOf = (given: Conversation): Message[] => [
  ...(given.system ? [{ role: 'system', content: given.system }] : []),
  ...given.messages,
  ...(given.prompt ? [{ role: 'user', content: given.prompt }] : []),
]

const formatOf = (schema: Record<string, unknown>) => ({
  type: 'json_schema',
  json_schema: { name: 'answer', schema, strict: isStrict(schema) },
})

/** The error of an endpoint, with the endpoint's message. */
export function refused({ status, headers, body }: HttpResponse): NodeError {
  const error = isObject(body) && isObject(body.error) ? body.error : {}
  const said = typeof error.message === 'string' ? `: ${error.message.slice(0, 500)}` : ''
  const details = { status, ...(typeof error.code === 'string' ? { code: error.code.slice(0, 100) } : {}) }
  if (status === 401 || status === 403)
    return new NodeError('ai_unauthorized', `The endpoint refused the key (${status})${said}`, { details })
  // The account has no credit left: waiting does not help.
  const retryable = isTransientStatus(status) && error.code !== 'insufficient_quota'
  return new NodeError('ai_failed', `The endpoint answered ${status}${said}`, {
    retryable,
    details,
    ...(retryable ? { retryAfterMs: retryAfterMs(headers) } : {}),
  })
}

/** The answer of an endpoint; only the content is required. */
const completion = z.object({
  model: z.string().optional(),
  choices: z
    .array(
      z.object({
        message: z.object({
          content: z.string().nullish(),
          refusal: z.string().nullish(),
          tool_calls: z
            .array(
              z.object({ id: z.string(), function: z.object({ name: z.string(), arguments: z.string() }) }),
            )
            .nullish(),
        }),
        finish_reason: z.string().nullish(),
      }),
    )
    .min(1),
  usage: z.object({ prompt_tokens: z.int(), completion_tokens: z.int() }).nullish().catch(null),
})

export interface Answer {
  text: string
  model: string
  finish_reason: string | null
  usage: { input_tokens: number; output_tokens: number } | null
}

export function read({ body }: HttpResponse, wanted: string): Answer & { asked: AskedCall[] } {
  const parsed = completion.safeParse(body)
  if (!parsed.success)
    throw new NodeError(
      'ai_failed',
      'The endpoint answered something else than a chat completion: check base_url',
    )
  const { model = wanted, choices, usage } = parsed.data
  const { message, finish_reason = null } = choices[0]!
  if (message.refusal || finish_reason === 'content_filter')
    throw new NodeError(
      'ai_refused',
      `The model refused to answer: ${(message.refusal ?? 'content filter').slice(0, 500)}`,
    )
  return {
    text: message.content ?? '',
    model,
    finish_reason,
    asked: (message.tool_calls ?? []).map((call) => ({ type: 'function', ...call })),
    usage: usage ? { input_tokens: usage.prompt_tokens, output_tokens: usage.completion_tokens } : null,
  }
}

/** Endpoints without structured output return JSON in a Markdown code fence. */
const FENCE = /^\s*```(?:json)?\s*\n([\s\S]*?)\n\s*```\s*$/

export function dataOf(
  { text, finish_reason }: { text: string; finish_reason: string | null },
  schema: Record<string, unknown>,
): Record<string, unknown> {
  if (finish_reason === 'length')
    throw new NodeError('ai_truncated', 'The answer was cut: max_tokens is too small for it.')
  let data: unknown
  try {
    data = JSON.parse(FENCE.exec(text)?.[1] ?? text)
  } catch {
    throw unfit('it is not JSON', text)
  }
  const mismatch = mismatchOf(schema, data)
  if (mismatch !== undefined) throw unfit(mismatch, text)
  return data as Record<string, unknown>
}

/** Retryable: another attempt may get a valid answer. */
const unfit = (why: string, text: string) =>
  new NodeError('ai_output_invalid', `The answer does not fit output_schema: ${why.slice(0, 500)}`, {
    retryable: true,
    details: { text: text.slice(0, 2_000) },
  })
