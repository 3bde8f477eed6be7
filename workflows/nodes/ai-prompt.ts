import { z } from 'zod'
import { NodeError } from '../language/node-error.ts'
import { NULL, typeOfSchema } from '../language/value-types.ts'
import { isObject } from '../shared/is-object.ts'
import { AI_TOOLS } from '../shared/limits.ts'
import {
  type Answer,
  dataOf,
  type Message,
  messagesOf,
  OPENAI,
  read,
  refused,
  requestOf,
} from './ai-completion.ts'
import {
  type AskedCall,
  answerCall,
  type MadeCall,
  toolProblems,
  toolScopes,
  toolsSchema,
} from './ai-tools.ts'
import { defineNode } from './define.ts'
import { declaredType, outputSchemaProblems, schemaProblems } from './output-schema.ts'

const MAX_TEXT = 500_000

const text = z.string().min(1).max(MAX_TEXT)

const result = z.strictObject({
  text: z.string().describe('The answer as the model wrote it.'),
  data: z
    .record(z.string(), z.unknown())
    .nullable()
    .describe('The answer as `output_schema` describes it; null without one.'),
  model: z.string().describe('The model that has answered.'),
  finish_reason: z.string().nullable().describe('`stop`, or `length` if `max_tokens` cut the answer.'),
  usage: z
    .strictObject({ input_tokens: z.int(), output_tokens: z.int() })
    .nullable()
    .describe('The tokens of all requests together.'),
  tool_calls: z
    .array(
      z.strictObject({
        tool: z.string(),
        arguments: z.record(z.string(), z.unknown()).nullable(),
        error: z.string().nullable(),
      }),
    )
    .describe('The calls of the model, in order; `error` says why a call was refused.'),
})

export const aiPrompt = defineNode({
  type: 'ai_prompt',
  engine: 1,
  laterUses: [{ engine: 5, isUsed: ({ tools }) => tools !== undefined }],
  category: 'integration',
  title: 'AI prompt',
  alsoCalled: ['ai', 'llm', 'openai', 'chatgpt', 'gpt', 'claude', 'ai_agent', 'chat_completion', 'prompt'],
  description:
    'Asks a language model at any endpoint with the chat completions API of OpenAI: Azure, Mistral, Groq, Ollama and others. With `output_schema` the answer is checked, and `output.data` has exactly its members; an answer that does not fit fails the attempt, which can be retried. With `tools` the model may read records of the organization before it answers.',
  effect: 'external',
  effects: ['http', 'lookups'],
  scopes: ({ tools }, catalogue) => toolScopes(tools, catalogue),
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
    system: text.optional().describe('The system message: the role and the rules of the model.'),
    messages: z
      .array(z.strictObject({ role: z.enum(['system', 'user', 'assistant']), content: text }))
      .max(200)
      .default([])
      .describe('The conversation before `prompt`.'),
    prompt: text.optional().describe('The message of the user. Required without `messages`.'),
    output_schema: z
      .record(z.string(), z.unknown())
      .optional()
      .describe('A JSON Schema with `type: object` that the answer must fit. It is also sent to the model.'),
    tools: toolsSchema,
    temperature: z.number().min(0).max(2).optional(),
    max_tokens: z.int().min(1).max(1_000_000).optional().describe('The most tokens of the answer.'),
  }),
  output: result,
  outputType({ output_schema }) {
    const { properties, ...output } = typeOfSchema(result)
    const data = output_schema === undefined ? NULL : declaredType(output_schema)
    return { ...output, properties: { ...properties, data } }
  },
  handles: () => [{ name: 'success', description: 'The model has answered, as the schema requires.' }],
  retry: { max_attempts: 3 },
  check: ({ prompt, messages, output_schema, tools }, catalogue) => [
    ...toolProblems(tools, catalogue),
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
    ...outputSchemaProblems(
      isObject(output_schema) && output_schema.type !== 'object'
        ? [{ path: ['type'], message: 'output_schema must have `type: object`', hint: 'write type: object' }]
        : schemaProblems(output_schema),
    ),
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
      tool_calls: [],
    },
  },
  async run(config, { http, lookups, idempotencyKey }) {
    const { model, output_schema, tools } = config
    const messages: Message[] = messagesOf(config)
    if (!messages.some(({ role }) => role === 'user'))
      throw new NodeError('invalid_config', 'prompt is empty, and messages has no message of the user')
    const [problem] = schemaProblems(output_schema)
    if (output_schema && output_schema.type !== 'object')
      throw new NodeError('invalid_config', 'output_schema must have `type: object`')
    if (problem) throw new NodeError('invalid_config', problem.message)
    const calls: MadeCall[] = []
    let usage: Answer['usage'] = null
    for (let round = 0; ; round++) {
      const request = requestOf(config, messages, { idempotencyKey, last: round === AI_TOOLS.rounds })
      const offered = round === 0 && tools.length > 0 ? lookups.offer(tools) : undefined
      const [response] = await Promise.all([http.request(request), offered])
      if (response.status < 200 || response.status > 299) throw refused(response)
      const { asked, ...answer } = read(response, model)
      usage = added(usage, answer.usage)
      if (asked.length === 0) {
        const data = output_schema ? dataOf(answer, output_schema) : null
        return { output: { ...answer, usage, data, tool_calls: calls } }
      }
      if (round === AI_TOOLS.rounds)
        throw new NodeError(
          'ai_too_many_calls',
          `The model still calls tools after ${AI_TOOLS.rounds} rounds.`,
        )
      messages.push({ role: 'assistant', content: answer.text || null, tool_calls: asked })
      for (const [index, call] of asked.entries()) {
        const { content, made } =
          index < AI_TOOLS.callsPerRound ? await answerCall(lookups, tools, call) : tooMany(call)
        calls.push(made)
        messages.push({ role: 'tool', tool_call_id: call.id, content })
      }
    }
  },
})

function tooMany({ function: { name } }: AskedCall): { content: string; made: MadeCall } {
  const error = `at most ${AI_TOOLS.callsPerRound} calls are made at once`
  return { content: JSON.stringify({ error }), made: { tool: name.slice(0, 100), arguments: null, error } }
}

const added = (sum: Answer['usage'], more: Answer['usage']): Answer['usage'] =>
  sum && more
    ? {
        input_tokens: sum.input_tokens + more.input_tokens,
        output_tokens: sum.output_tokens + more.output_tokens,
      }
    : (more ?? sum)
