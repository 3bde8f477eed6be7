import { z } from 'zod'
import { itemsOf, listOf, members } from '../language/value-types.ts'
import { fieldReader } from '../shared/field-reader.ts'
import { LIST } from '../shared/limits.ts'
import { compareKeys, requireOrder, type SortKey, sortKey } from './compare.ts'
import { defineNode } from './define.ts'
import { fieldsNamed, itemField, itemList, requireField } from './item-fields.ts'

export const sortItems = defineNode({
  type: 'sort_items',
  engine: 1,
  laterUses: [{ engine: 7, isUsed: ({ missing }) => missing !== undefined }],
  category: 'data',
  title: 'Sort items',
  alsoCalled: ['sort', 'order_by', 'sort_list'],
  description:
    'Sorts a list by one or more fields of its items, each in its own direction. Numbers come before times, times before text. Text sorts case-insensitively; numbers and times written as text sort by their value. Items whose field is missing or empty come last in both directions. Equal items keep their order.',
  effect: 'pure',
  config: z.strictObject({
    items: itemList('The list to sort.'),
    by: z
      .array(
        z.strictObject({
          field: itemField,
          direction: z.enum(['asc', 'desc']).default('asc'),
        }),
      )
      .min(1)
      .max(LIST.fields)
      .describe('The sort fields; each one orders the items that are equal in the fields before it.'),
    missing: z
      .enum(['fail', 'last'])
      .default('fail')
      .describe('If no item has a field: `fail` the node, or `last`: the items keep their order.'),
  }),
  output: z.strictObject({ items: z.array(z.unknown()) }),
  outputType: ({ items }, { typeOf }) => members({ items: listOf(itemsOf(typeOf(items))) }),
  itemFields: ({ by }) => fieldsNamed(by, (index) => ['by', index, 'field']),
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
  run({ items, by, missing }, { organization: { timezone } }) {
    if (missing === 'fail') for (const { field } of by) requireField(items, field)
    const fields = by.map(({ field, direction }) => ({
      read: fieldReader(field),
      sign: direction === 'asc' ? 1 : -1,
    }))
    for (const [index, { read }] of fields.entries()) requireOrder(items.map(read), by[index]!.field)
    const rows = items.map((item) => ({
      item,
      keys: fields.map(({ read }) => sortKey(read(item), timezone)),
    }))
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

/** Empty values come last in both directions. */
function inDirection(sign: number, a: SortKey | undefined, b: SortKey | undefined): number {
  if (a && b) return sign * compareKeys(a, b)
  return a ? -1 : b ? 1 : 0
}
