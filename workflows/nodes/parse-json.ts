import { createScanner, type ParseError, parse, printParseErrorCode } from 'jsonc-parser'
import { z } from 'zod'
import { NodeError } from '../language/node-error.ts'
import { TEXT, VALUE_DEPTH } from '../shared/limits.ts'
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
  run: ({ text }) => ({ output: { data: typeof text === 'string' ? parsed(text) : text } }),
})

/** The code fence that language models write around JSON. */
const FENCE = /^\s*```[a-z]*[ \t]*\r?\n(.*?)\r?\n?```\s*$/is

/** Throws NodeError `invalid_json`. */
function parsed(text: string): unknown {
  const json = (FENCE.exec(text)?.[1] ?? text).replace(/^\uFEFF/, '')
  requireDepth(json)
  try {
    const data: unknown = JSON.parse(json)
    return MAYBE_INEXACT.test(json) ? JSON.parse(withExactNumbers(json)) : data
  } catch {
    throw new NodeError('invalid_json', problemOf(json))
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

/** Values of jsonc-parser's SyntaxKind, a `const enum` without a value at run time. */
const [NUMBER, END] = [11, 17]

/** The same JSON, with a text in place of each integer that would be rounded, and of each number that is too large. */
function withExactNumbers(json: string): string {
  const scanner = createScanner(json, true)
  let exact = ''
  let from = 0
  for (let token: number = scanner.scan(); token !== END; token = scanner.scan()) {
    const written = scanner.getTokenValue()
    const value = Number(written)
    const isExact = Number.isFinite(value) && (!/^-?\d+$/.test(written) || Number.isSafeInteger(value))
    if (token !== NUMBER || isExact) continue
    const at = scanner.getTokenOffset()
    exact += `${json.slice(from, at)}"${written}"`
    from = at + written.length
  }
  return exact + json.slice(from)
}

function problemOf(json: string): string {
  if (json.trim() === '') return 'The text is empty: there is no JSON in it.'
  const errors: ParseError[] = []
  try {
    parse(json, errors, { disallowComments: true, allowTrailingComma: false })
  } catch {
    // The nesting overflows the parser's stack: the position is unknown.
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
