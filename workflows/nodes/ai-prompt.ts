import { z } from 'zod'
import type { HttpResponse } from '../effects/http.ts'
import { isObject } from '../is-object.ts'
import { defineNode, NodeError } from './define.ts'
import { isStrict, mismatchOf, schemaProblems } from './output-schema.ts'
import { isTransientStatus, retryAfterMs } from './retry-after.ts'

const OPENAI = 'https://api.openai.com/v1'
const MAX_TEXT = 500_000

const text = z.string().min(1).max(MAX_TEXT)

export const aiPrompt = defineNode({
  type: 'ai_prompt',
  category: 'integration',
  title: 'AI prompt',
  alsoCalled: ['ai', 'llm', 'openai', 'chatgpt', 'gpt', 'claude', 'ai_agent', 'chat_completion', 'prompt'],
  description:
    'Asks a language model at any endpoint that has the chat completions API of OpenAI: OpenAI, Azure, Mistral, Groq, OpenRouter, Ollama, vLLM and others. With `output_schema` the answer is checked, and `output.data` has exactly its members; an answer that does not fit fails the attempt, and another attempt may do better. Tools are not supported.',
  effect: 'external',
  effects: ['http'],
  config: z.strictObject({
    base_url: z
      .string()
      .regex(/^https?:\/\/[^\s?#]+$/i, 'must be an http or https URL without a query')
      .default(OPENAI)
      .describe('The URL before `/chat/completions`.'),
    api_key: z
      .string()
      .max(1_000)
      .optional()
      .describe('Sent as a bearer token: `{{ secrets.<name> }}`. Some endpoints need none.'),
    model: z.string().min(1).max(200).describe('The name of a model at the endpoint.'),
    system: text.optional().describe('What the model is to be and to do, for every message.'),
    messages: z
      .array(z.strictObject({ role: z.enum(['system', 'user', 'assistant']), content: text }))
      .max(200)
      .default([])
      .describe('A conversation so far; it comes before `prompt`.'),
    prompt: text.optional().describe('The message of the user. Required without `messages`.'),
    output_schema: z
      .record(z.string(), z.unknown())
      .optional()
      .describe('A JSON Schema with `type: object`, which the answer fits. It is sent along, too.'),
    temperature: z.number().min(0).max(2).optional(),
    max_tokens: z.int().min(1).max(1_000_000).optional().describe('The most tokens of the answer.'),
  }),
  output: z.strictObject({
    text: z.string().describe('The answer as the model wrote it.'),
    data: z
      .record(z.string(), z.unknown())
      .nullable()
      .describe('The answer as `output_schema` describes it; null without one.'),
    model: z.string().describe('The model that has answered.'),
    finish_reason: z.string().nullable().describe('`stop`, or `length` if `max_tokens` cut the answer.'),
    usage: z.strictObject({ input_tokens: z.int(), output_tokens: z.int() }).nullable(),
  }),
  handles: () => [{ name: 'success', description: 'The model has answered, as the schema asks.' }],
  retry: { max_attempts: 3 },
  check: ({ prompt, messages, output_schema }) => [
    ...(prompt === undefined && messages === undefined
      ? [
          {
            code: 'missing_value' as const,
            message: 'config has neither prompt nor messages',
            path: [],
            hint: 'add `prompt: …`',
          },
        ]
      : []),
    ...schemaProblems(output_schema).map(({ path, ...problem }) => ({
      code: 'invalid_config' as const,
      ...problem,
      path: ['output_schema', ...path],
    })),
  ],
  example: {
    config: {
      api_key: '{{ secrets.openai_key }}',
      model: 'gpt-4.1-mini',
      prompt: 'How urgent is this message? {{ inputs.message }}',
      output_schema: {
        type: 'object',
        properties: { urgency: { enum: ['low', 'high'] } },
        required: ['urgency'],
        additionalProperties: false,
      },
    },
    inputs: { inputs: { message: 'Our shop is down!' } },
    output: {
      text: '{"urgency":"high"}',
      data: { urgency: 'high' },
      model: 'gpt-4.1-mini',
      finish_reason: 'stop',
      usage: { input_tokens: 42, output_tokens: 5 },
    },
  },
  async run(config, { http, idempotencyKey }) {
    const { base_url, api_key, model, output_schema, temperature, max_tokens } = config
    const messages = messagesOf(config)
    if (!messages.some(({ role }) => role === 'user'))
      throw new NodeError('invalid_config', 'prompt is empty, and messages has no message of the user')
    const [problem] = schemaProblems(output_schema)
    if (problem) throw new NodeError('invalid_config', problem.message)
    const limit = base_url === OPENAI ? 'max_completion_tokens' : 'max_tokens'
    const response = await http.request({
      method: 'POST',
      url: `${base_url.replace(/\/+$/, '')}/chat/completions`,
      headers: {
        'Idempotency-Key': idempotencyKey,
        ...(api_key ? { Authorization: `Bearer ${api_key}` } : {}),
      },
      body: {
        ...{ model, messages },
        ...(temperature === undefined ? {} : { temperature }),
        ...(max_tokens === undefined ? {} : { [limit]: max_tokens }),
        ...(output_schema ? { response_format: formatOf(output_schema) } : {}),
      },
      // The key is for this endpoint only.
      follow_redirects: false,
    })
    if (response.status < 200 || response.status > 299) throw refused(response)
    const answer = read(response, model)
    return { output: { ...answer, data: output_schema ? dataOf(answer, output_schema) : null } }
  },
})

interface Message {
  role: string
  content: string
}

const messagesOf = (given: {
  system?: string | undefined
  messages: Message[]
  prompt?: string | undefined
}) => [
  ...(given.system ? [{ role: 'system', content: given.system }] : []),
  ...given.messages,
  ...(given.prompt ? [{ role: 'user', content: given.prompt }] : []),
]

const formatOf = (schema: Record<string, unknown>) => ({
  type: 'json_schema',
  json_schema: { name: 'answer', schema, strict: isStrict(schema) },
})

/** The error of an endpoint, with its own words. */
function refused({ status, headers, body }: HttpResponse): NodeError {
  const error = isObject(body) && isObject(body.error) ? body.error : {}
  const said = typeof error.message === 'string' ? `: ${error.message.slice(0, 500)}` : ''
  const details = { status, ...(typeof error.code === 'string' ? { code: error.code.slice(0, 100) } : {}) }
  if (status === 401 || status === 403)
    return new NodeError('ai_unauthorized', `The endpoint refused the key (${status})${said}`, { details })
  // The account has no money left: to wait does not help.
  const retryable = isTransientStatus(status) && error.code !== 'insufficient_quota'
  return new NodeError('ai_failed', `The endpoint answered ${status}${said}`, {
    ...{ retryable, details },
    ...(retryable ? { retryAfterMs: retryAfterMs(headers) } : {}),
  })
}

/** What endpoints answer; only the content is there in all of them. */
const completion = z.object({
  model: z.string().optional(),
  choices: z
    .array(
      z.object({
        message: z.object({ content: z.string().nullish(), refusal: z.string().nullish() }),
        finish_reason: z.string().nullish(),
      }),
    )
    .min(1),
  usage: z.object({ prompt_tokens: z.int(), completion_tokens: z.int() }).nullish().catch(null),
})

function read({ body }: HttpResponse, asked: string) {
  const parsed = completion.safeParse(body)
  if (!parsed.success)
    throw new NodeError(
      'ai_failed',
      'The endpoint answered something else than a chat completion: check base_url',
    )
  const { model = asked, choices, usage } = parsed.data
  const { message, finish_reason = null } = choices[0]!
  if (message.refusal || finish_reason === 'content_filter')
    throw new NodeError(
      'ai_refused',
      `The model refused to answer: ${(message.refusal ?? 'content filter').slice(0, 500)}`,
    )
  return {
    ...{ text: message.content ?? '', model, finish_reason },
    usage: usage ? { input_tokens: usage.prompt_tokens, output_tokens: usage.completion_tokens } : null,
  }
}

/** Endpoints without structured output put the JSON into a fence. */
const FENCE = /^\s*```(?:json)?\s*\n([\s\S]*?)\n\s*```\s*$/

function dataOf(
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

/** The model may do better in another attempt. */
const unfit = (why: string, text: string) =>
  new NodeError('ai_output_invalid', `The answer does not fit output_schema: ${why.slice(0, 500)}`, {
    retryable: true,
    details: { text: text.slice(0, 2_000) },
  })
