import { z } from 'zod'
import { weightOf } from '../language/expressions/work.ts'
import { NodeError } from '../language/node-error.ts'
import { INTEGER, itemsOf, listOf, members } from '../language/value-types.ts'
import { fieldReader } from '../shared/field-reader.ts'
import { LIST } from '../shared/limits.ts'
import { meantField } from '../shared/misspelt-field.ts'
import { CONDITION_OPERATORS, operandsOf } from '../shared/operators.ts'
import { createTurns } from '../shared/turns.ts'
import { comparison } from './compare.ts'
import { comparedValues } from './compared-values.ts'
import { defineNode } from './define.ts'
import { fieldsNamed, itemField, itemList, missingField } from './item-fields.ts'

const condition = z
  .strictObject({
    field: itemField
      .optional()
      .describe(
        'The field of each item to test; dots separate nested fields: `custom_fields.score`. Default: the item itself, such as a text.',
      ),
    operator: z.enum(CONDITION_OPERATORS),
    right: z
      .unknown()
      .optional()
      .describe(
        'The value to compare with, the same for all items; a list for `in` and `not_in`. None for `is_empty` and `is_not_empty`.',
      ),
  })
  .refine(({ operator, right }) => operandsOf(operator) === 'nothing' || right !== undefined, {
    path: ['right'],
    message: 'is required for this operator',
  })

export const filterItems = defineNode({
  type: 'filter_items',
  engine: 4,
  category: 'data',
  title: 'Filter items',
  alsoCalled: ['filter_list', 'filter_array', 'where', 'select_items', 'find_items', 'list_filter'],
  compared: true,
  description:
    'Keeps the items of a list for which all (or any, see `match`) of the conditions hold, in their order. It compares as a condition does: text ignores case, numeric text compares as a number, times as times.',
  effect: 'pure',
  config: z.strictObject({
    items: itemList('The list to filter.'),
    match: z.enum(['all', 'any']).default('all').describe('Whether all conditions must hold, or any.'),
    conditions: z
      .array(condition)
      .min(1)
      .max(LIST.conditions)
      .describe('Each tests a field of the item: `{field: amount, operator: gte, right: 1000}`.'),
  }),
  output: z.strictObject({
    items: z.array(z.unknown()).describe('The items that were kept.'),
    count: z.int().describe('The number of kept items.'),
    removed: z.int().describe('The number of removed items.'),
  }),
  outputType: ({ items }, { typeOf }) =>
    members({ items: listOf(itemsOf(typeOf(items))), count: INTEGER, removed: INTEGER }),
  itemFields: ({ conditions }) => fieldsNamed(conditions, (index) => ['conditions', index, 'field']),
  comparisons: ({ conditions }) =>
    comparedValues(conditions, ({ field }) => (typeof field === 'string' ? { field } : undefined)),
  handles: () => [{ name: 'success', description: 'The list is filtered; it may be empty.' }],
  outputOnly: true,
  example: {
    config: {
      items: '{{ inputs.deals }}',
      conditions: [
        { field: 'amount', operator: 'gte', right: 1000 },
        { field: 'stage', operator: 'in', right: ['proposal', 'negotiation'] },
      ],
    },
    inputs: {
      inputs: {
        deals: [
          { name: 'Loom', amount: '900.00', stage: 'proposal' },
          { name: 'Engine', amount: '1250.00', stage: 'negotiation' },
          { name: 'Mill', amount: '5000.00', stage: 'won' },
        ],
      },
    },
    output: {
      items: [{ name: 'Engine', amount: '1250.00', stage: 'negotiation' }],
      count: 1,
      removed: 2,
    },
  },
  async run({ items, match, conditions }, { organization }) {
    for (const { field } of conditions) {
      const meant = field === undefined ? undefined : meantField(items, field)
      if (field !== undefined && meant !== undefined) throw missingField(field, `did you mean ${meant}?`)
    }
    const tests = conditions.map(({ field, operator, right }) => ({
      field,
      read: fieldReader(field),
      holds: comparison(operator, right, organization.timezone),
      // A list is searched in constant time.
      cost: operator === 'in' || operator === 'not_in' ? 1 : costOf(right),
    }))
    const turn = createTurns(organization.id)
    const kept: unknown[] = []
    let left: number = LIST.comparisons
    for (const [index, item] of items.entries()) {
      const holds = ({ field, read, holds, cost }: (typeof tests)[number]) => {
        const value = read(item)
        left -= cost + costOf(value)
        if (left < 0) throw tooExpensive()
        try {
          return holds(value)
        } catch (error) {
          throw error instanceof NodeError ? ofItem(error, index, field) : error
        }
      }
      if (match === 'all' ? tests.every(holds) : tests.some(holds)) kept.push(item)
      await turn()
    }
    return { output: { items: kept, count: kept.length, removed: items.length - kept.length } }
  },
})

function costOf(value: unknown): number {
  if (typeof value === 'string') return 1 + value.length / 100
  return typeof value === 'object' && value !== null ? 1 + weightOf(value, LIST.comparisons) / 10 : 1
}

/** The error of a comparison, with the item that it is of: the author sees which row to correct or to filter out. */
const ofItem = ({ code, message }: NodeError, index: number, field: string | undefined) =>
  new NodeError(code, `${field === undefined ? 'Item' : `${field} of item`} ${index}: ${message}`, {
    details: { index, ...(field !== undefined && { field }) },
  })

const tooExpensive = () =>
  new NodeError(
    'too_expensive',
    'The conditions compare too many values: filter a shorter list, or compare with shorter values.',
  )
