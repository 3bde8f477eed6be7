import { z } from 'zod'
import { NodeError } from '../language/node-error.ts'
import { TEXT, VALUE_DEPTH } from '../shared/limits.ts'
import type { Compute } from './computations.ts'
import { defineNode } from './define.ts'

export const parseJson = defineNode({
  type: 'parse_json',
  engine: 4,
  category: 'data',
  title: 'Parse JSON',
  alsoCalled: ['json', 'json_parse', 'from_json', 'decode_json', 'parse', 'json_to_object'],
  description:
    'Reads a JSON text, such as a custom field or the answer of a language model, into a value whose fields later nodes read. A ``` fence around the text is ignored; a value that is no text is passed on. An integer beyond 9007199254740991, such as a long id, is kept as a text, since a JSON number would be rounded. An error names line and column.',
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
  run: ({ text }, { compute }) => ({
    output: { data: typeof text === 'string' ? parsed(text, compute) : text },
  }),
})

/** The code fence that language models write around JSON. */
const FENCE = /^\s*```[a-z]*[ \t]*\r?\n(.*?)\r?\n?```\s*$/is

/** Throws NodeError `invalid_json`. */
function parsed(text: string, compute: Compute): unknown {
  const json = (FENCE.exec(text)?.[1] ?? text).replace(/^\uFEFF/, '')
  requireDepth(json)
  const data = jsonIn(json)
  if (!data) throw new NodeError('invalid_json', compute('jsonProblem', json))
  return MAYBE_INEXACT.test(json) ? JSON.parse(compute('withExactNumbers', json)) : data.value
}

function jsonIn(json: string): { value: unknown } | undefined {
  try {
    return { value: JSON.parse(json) }
  } catch {
    return undefined
  }
}

/** Throws NodeError `output_too_deep`. Brackets in texts do not count. */
function requireDepth(json: string): void {
  let depth = 0
  let inText = false
  for (let at = 0; at < json.length; at++) {
    const character = json[at]!
    if (inText) {
      if (character === '\\') at += 1
      else if (character === '"') inText = false
    } else if (character === '"') inText = true
    else if (character === '[' || character === '{') depth += 1
    else if (character === ']' || character === '}') depth -= 1
    if (depth > VALUE_DEPTH)
      throw new NodeError(
        'output_too_deep',
        `The text has more than ${VALUE_DEPTH} lists and objects within each other: so deep a value cannot be kept.`,
      )
  }
}

/** A number with 16 digits or more, or with an exponent. */
const MAYBE_INEXACT = /\d{16}|\d[eE][+-]?\d{3}/
