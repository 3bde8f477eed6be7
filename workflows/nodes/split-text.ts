import { z } from 'zod'
import { NodeError } from '../language/node-error.ts'
import { TEXT } from '../shared/limits.ts'
import { defineNode } from './define.ts'

const MAX_SEPARATORS = 20

const separator = z.string().min(1).max(TEXT.separator)

export const splitText = defineNode({
  type: 'split_text',
  engine: 4,
  category: 'data',
  title: 'Split text',
  alsoCalled: ['split', 'split_string', 'text_split', 'explode', 'tokenize', 'split_lines'],
  description:
    'Splits a text at one or more separators into a list of texts. Use it for addresses, or for lines.',
  effect: 'pure',
  config: z.strictObject({
    text: z.string().max(TEXT.characters).describe('The text to split.'),
    separator: z
      .union([separator, z.array(separator).min(1).max(MAX_SEPARATORS)])
      .default(',')
      .describe(
        'The text between two parts, or a list of such texts: `[",", ";"]`. Write a line break in double quotes, `"\\n"`; it stands for line ends of all kinds.',
      ),
    trim: z.boolean().default(true).describe('Whether to remove white space around each part.'),
    drop_empty: z.boolean().default(true).describe('Whether to leave out empty parts.'),
    max_parts: z
      .int()
      .min(1)
      .max(TEXT.parts)
      .optional()
      .describe(
        'The most parts; the last one holds the rest of the text. Default: all parts, at most 10000.',
      ),
  }),
  output: z.strictObject({
    parts: z.array(z.string()),
    count: z.int(),
    first: z.string().nullable().describe('The first part; null if there is none.'),
    last: z
      .string()
      .nullable()
      .describe('The last part, which is the first if there is one only; null if there is none.'),
  }),
  handles: () => [{ name: 'success', description: 'The text is split.' }],
  outputOnly: true,
  example: {
    config: { text: '{{ inputs.guests }}', separator: [',', ';'] },
    inputs: { inputs: { guests: 'ada@example.com, bob@example.com; ' } },
    output: {
      parts: ['ada@example.com', 'bob@example.com'],
      count: 2,
      first: 'ada@example.com',
      last: 'bob@example.com',
    },
  },
  run({ text, separator, trim, drop_empty, max_parts }) {
    const parts = [...pieces(text, [separator].flat(), { trim, drop_empty, most: max_parts })]
    const [first = null] = parts
    return { output: { parts, count: parts.length, first, last: parts.at(-1) ?? null } }
  },
})

/** Throws NodeError `too_many_parts`. */
function* pieces(
  text: string,
  separators: string[],
  { trim, drop_empty, most }: { trim: boolean; drop_empty: boolean; most: number | undefined },
): Generator<string> {
  const pattern = patternOf(separators)
  let from = 0
  for (let count = 0; from <= text.length; ) {
    const isLast = count + 1 === most
    const match = isLast ? null : pattern.exec(text)
    const raw = text.slice(from, match?.index)
    const part = trim ? raw.trim() : raw
    from = match ? pattern.lastIndex : text.length + 1
    if (drop_empty && part === '') continue
    if (count++ === TEXT.parts)
      throw new NodeError(
        'too_many_parts',
        `The text has more than ${TEXT.parts} parts: split a shorter one.`,
      )
    yield part
  }
}

/** A pattern of literal texts, so that its time is linear. The longer one of two with the same beginning wins. */
const patternOf = (separators: string[]) =>
  new RegExp(
    separators
      .toSorted((a, b) => b.length - a.length)
      .map((one) => one.replaceAll(/[\\^$.*+?()[\]{}|/-]/g, '\\$&').replaceAll('\n', '(?:\\r\\n|\\n|\\r)'))
      .join('|'),
    'g',
  )
