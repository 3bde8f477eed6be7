import { z } from 'zod'
import { compareKeys, type SortKey, sortKey } from './compare.ts'
import { defineNode } from './define.ts'
import { isObject } from './fields.ts'

const MAX_ITEMS = 10_000
const MAX_FIELDS = 10

export const sortItems = defineNode({
  type: 'sort_items',
  category: 'data',
  title: 'Sort items',
  alsoCalled: ['sort', 'order_by', 'sort_list'],
  description:
    'Sorts a list by one or more fields of its items, each in its own direction. Numbers come before times, times before text. Text sorts case-insensitively; numbers and times written as text sort by their value. Items whose field is missing or empty come last in both directions. Equal items keep their order.',
  effect: 'pure',
  config: z.strictObject({
    items: z
      .array(z.unknown())
      .max(MAX_ITEMS)
      .describe('The list to sort; usually a placeholder: `{{ nodes.find.output.data }}`.'),
    by: z
      .array(
        z.strictObject({
          field: z
            .string()
            .min(1)
            .max(200)
            .describe('A field of the items; dots separate nested fields: `custom_fields.score`.'),
          direction: z.enum(['asc', 'desc']).default('asc'),
        }),
      )
      .min(1)
      .max(MAX_FIELDS)
      .describe('The sort fields; each one orders the items that are equal in the fields before it.'),
  }),
  output: z.strictObject({ items: z.array(z.unknown()) }),
  handles: () => [{ name: 'success', description: 'The items are sorted.' }],
  outputOnly: true,
  example: {
    config: {
      items: '{{ inputs.deals }}',
      by: [{ field: 'amount', direction: 'desc' }, { field: 'name' }],
    },
    inputs: {
      inputs: {
        deals: [
          { name: 'Loom', amount: '900.00' },
          { name: 'Mill' },
          { name: 'Engine', amount: '1250.00' },
          { name: 'Gears', amount: 900 },
        ],
      },
    },
    output: {
      items: [
        { name: 'Engine', amount: '1250.00' },
        { name: 'Gears', amount: 900 },
        { name: 'Loom', amount: '900.00' },
        { name: 'Mill' },
      ],
    },
  },
  run({ items, by }) {
    const fields = by.map(({ field, direction }) => ({
      path: field.split('.'),
      sign: direction === 'asc' ? 1 : -1,
    }))
    const rows = items.map((item) => ({ item, keys: fields.map(({ path }) => sortKey(valueAt(item, path))) }))
    rows.sort((a, b) => {
      for (let index = 0; index < fields.length; index++) {
        const order = inDirection(fields[index]!.sign, a.keys[index], b.keys[index])
        if (order !== 0) return order
      }
      return 0
    })
    return { output: { items: rows.map(({ item }) => item) } }
  },
})

function valueAt(item: unknown, path: string[]): unknown {
  let value = item
  for (const key of path) {
    if (!isObject(value) || !Object.hasOwn(value, key)) return undefined
    value = value[key]
  }
  return value
}

/** Empty values come last in both directions. */
function inDirection(sign: number, a: SortKey | undefined, b: SortKey | undefined): number {
  if (a && b) return sign * compareKeys(a, b)
  return a ? -1 : b ? 1 : 0
}
