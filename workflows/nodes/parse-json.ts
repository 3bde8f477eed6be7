import { type ParseError, parse, printParseErrorCode } from 'jsonc-parser'
import { z } from 'zod'
import { TEXT } from '../limits.ts'
import { defineNode, NodeError } from './define.ts'

export const parseJson = defineNode({
  type: 'parse_json',
  category: 'data',
  title: 'Parse JSON',
  alsoCalled: ['json', 'json_parse', 'from_json', 'decode_json', 'parse', 'json_to_object'],
  engine: () => 4,
  description:
    'Reads a JSON text, such as a custom field or the answer of a language model, into a value whose fields later nodes read. A ``` fence around the text is ignored; a value that is no text is passed on. An error names line and column.',
  effect: 'pure',
  config: z.strictObject({
    text: z
      .union([
        z.string().max(TEXT.characters),
        z.record(z.string(), z.unknown()),
        z.array(z.unknown()),
        z.number(),
        z.boolean(),
      ])
      .describe('The JSON text. A mapping, list, number or boolean is already read, and passed on.'),
  }),
  output: z.strictObject({
    data: z.unknown().describe('The value: `{{ nodes.<id>.output.data.name }}`.'),
  }),
  handles: () => [{ name: 'success', description: 'The text is JSON.' }],
  outputOnly: true,
  example: {
    config: { text: '{{ trigger.payload.metadata }}' },
    inputs: { trigger: { payload: { metadata: '{"plan": "pro", "seats": 5}' } } },
    output: { data: { plan: 'pro', seats: 5 } },
  },
  run: ({ text }) => ({ output: { data: typeof text === 'string' ? parsed(text) : text } }),
})

/** What language models write around JSON. */
const FENCE = /^\s*```[a-z]*[ \t]*\r?\n(.*?)\r?\n?```\s*$/is

/** Throws NodeError `invalid_json`. */
function parsed(text: string): unknown {
  const json = (FENCE.exec(text)?.[1] ?? text).replace(/^\uFEFF/, '')
  try {
    return JSON.parse(json)
  } catch {
    throw new NodeError('invalid_json', problemOf(json))
  }
}

function problemOf(json: string): string {
  if (json.trim() === '') return 'The text is empty: there is no JSON in it.'
  const errors: ParseError[] = []
  try {
    parse(json, errors, { disallowComments: true, allowTrailingComma: false })
  } catch {
    // Nested too deeply for it.
  }
  const [error] = errors
  if (!error) return 'The text is not JSON.'
  const before = json.slice(0, error.offset).split('\n')
  const place = `line ${before.length}, column ${before.at(-1)!.length + 1}`
  const words = printParseErrorCode(error.error)
    .replaceAll(/([a-z])([A-Z])/g, '$1 $2')
    .toLowerCase()
  return `The text is not JSON: ${words} at ${place}, near ${JSON.stringify(json.slice(error.offset, error.offset + 20))}.`
}
