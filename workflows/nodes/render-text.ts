import { z } from 'zod'
import { EXPRESSION, TEXT } from '../shared/limits.ts'
import { defineNode } from './define.ts'
import { itemList } from './item-fields.ts'

const around = (what: string) => z.string().max(EXPRESSION.template).optional().describe(what)

export const renderText = defineNode({
  type: 'render_text',
  engine: 4,
  category: 'data',
  title: 'Render text',
  alsoCalled: [
    'template',
    'text',
    'compose',
    'text_template',
    'render_template',
    'format_text',
    'join_items',
  ],
  description:
    'Writes a text once, or once for each item of a list, and joins the results. Use it for a message that lists deals, or a table in HTML. With `items`, `text` reads `item` and `index`.',
  effect: 'pure',
  perItem: ({ items }) => (items === undefined ? [] : ['text']),
  config: z.strictObject({
    text: z
      .string()
      .max(EXPRESSION.template)
      .describe(
        'The text with placeholders; with `items` that of one item: `- {{ item.name }}: {{ item.amount }}`. In HTML write `{{ item.name | escape }}`.',
      ),
    items: itemList('The list whose items are written.').optional(),
    separator: z
      .string()
      .max(TEXT.separator)
      .default('\n')
      .describe('The separator between the texts of two items. Default: a line break.'),
    before: around('What stands before the first item, if there is one.'),
    after: around('What stands after the last item, if there is one.'),
    empty: around('The whole text where the list is empty. Default: none.'),
  }),
  output: z.strictObject({
    text: z.string(),
    count: z.int().describe('The number of items; 1 without `items`.'),
  }),
  copies: (_, [member]) => (member === 'text' ? [['text'], ['before'], ['after'], ['empty']] : []),
  handles: () => [{ name: 'success', description: 'The text is written.' }],
  outputOnly: true,
  example: {
    config: {
      items: '{{ inputs.deals }}',
      before: "This week's deals:\n",
      text: '{{ index | plus: 1 }}. {{ item.name }} ({{ item.amount }} {{ org.currency }})',
    },
    inputs: {
      inputs: {
        deals: [
          { name: 'Engine', amount: '1250.00' },
          { name: 'Loom', amount: '900.00' },
        ],
      },
      org: { currency: 'CHF' },
    },
    output: { text: "This week's deals:\n1. Engine (1250.00 CHF)\n2. Loom (900.00 CHF)", count: 2 },
  },
  async run({ text, items, separator, before = '', after = '', empty = '' }, { renderItems }) {
    // The interpreter has rendered the text.
    if (!items) return { output: { text, count: 1 } }
    const joined = (await renderItems(text, items)).join(separator)
    const whole = items.length === 0 ? empty : `${before}${joined}${after}`
    return { output: { text: whole, count: items.length } }
  },
})
