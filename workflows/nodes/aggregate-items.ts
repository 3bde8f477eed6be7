import { z } from 'zod'
import { NodeError } from '../language/node-error.ts'
import { fieldType, INTEGER, itemsOf, listOf, MAPPING, members, UNKNOWN } from '../language/value-types.ts'
import { currenciesOf, mixedCurrencies } from '../shared/currencies.ts'
import {
  add,
  type Decimal,
  decimalText,
  divide,
  integer,
  numberKey,
  parseDecimal,
} from '../shared/decimal.ts'
import { fieldReader } from '../shared/field-reader.ts'
import { isObject } from '../shared/is-object.ts'
import { LIST } from '../shared/limits.ts'
import { createTurns } from '../shared/turns.ts'
import { canonical, compareKeys, requireOrder, type SortKey, sortKey } from './compare.ts'
import { defineNode } from './define.ts'
import { handleName } from './fields.ts'
import { itemField, itemList, requireField } from './item-fields.ts'

const FUNCTIONS = [
  'count',
  'count_distinct',
  'sum',
  'average',
  'min',
  'max',
  'first',
  'last',
  'list',
] as const
type FunctionName = (typeof FUNCTIONS)[number]

const measure = z
  .strictObject({
    function: z
      .enum(FUNCTIONS)
      .describe(
        '`count` counts the items that have the field, or all items without `field`. All others ignore items whose field is empty.',
      ),
    field: itemField.optional(),
  })
  .refine((value) => value.function === 'count' || value.field !== undefined, {
    path: ['field'],
    message: 'is required for this function',
  })

export const aggregateItems = defineNode({
  type: 'aggregate_items',
  engine: 4,
  laterUses: [{ engine: 7, isUsed: ({ missing }) => missing !== undefined }],
  category: 'data',
  title: 'Aggregate items',
  alsoCalled: [
    'aggregate',
    'summarize',
    'group_by',
    'group_items',
    'sum',
    'sum_items',
    'count_items',
    'pivot',
  ],
  description:
    'Computes values of a list, such as a sum or an average, in total and for each group of items with equal fields. Sums are exact: numbers give a number, money (text such as `1250.00`) gives a text with as many decimals. Averages of money are rounded to two decimals, or as many as an amount has. Amounts of several currencies are not added: group by `currency`, and the total is null.',
  effect: 'pure',
  config: z.strictObject({
    items: itemList('The list.'),
    group_by: z
      .array(itemField)
      .max(LIST.fields)
      .default([])
      .describe('The fields whose values make a group; text ignores case. Default: no groups.'),
    values: z
      .record(handleName, measure)
      .refine((values) => Object.keys(values).length <= LIST.fields, `may have at most ${LIST.fields} values`)
      .default({ count: { function: 'count' } })
      .describe('The values to compute, by name: `{total: {function: sum, field: amount}}`.'),
    missing: z
      .enum(['fail', 'zero'])
      .default('fail')
      .describe('If no item has a field: `fail` the node, or `zero`: a sum of 0, and null for the others.'),
  }),
  output: z.strictObject({
    count: z.int().describe('The number of items.'),
    values: z.record(z.string(), z.unknown()).describe('The values of the whole list, by name.'),
    groups: z
      .array(
        z.strictObject({
          group: z.record(z.string(), z.unknown()),
          count: z.int(),
          values: z.record(z.string(), z.unknown()),
        }),
      )
      .describe(
        'One for each combination of the fields of `group_by`, in the order of their first items: `{group: {stage: won}, count, values}`.',
      ),
  }),
  outputType({ items, group_by = [], values = { count: 0 } }, { typeOf }) {
    const item = itemsOf(typeOf(items))
    const computed = isObject(values)
      ? members(Object.fromEntries(Object.keys(values).map((name) => [name, UNKNOWN])))
      : MAPPING
    const group = Array.isArray(group_by)
      ? members(Object.fromEntries(group_by.map((field) => [String(field), fieldType(item, String(field))])))
      : MAPPING
    const groups = listOf(members({ group, count: INTEGER, values: computed }))
    return members({ count: INTEGER, values: computed, groups })
  },
  itemFields: ({ group_by, values }) => [
    ...(Array.isArray(group_by) ? group_by : []).flatMap((field, index) =>
      typeof field === 'string' ? [{ field, path: ['group_by', index] }] : [],
    ),
    ...Object.entries(isObject(values) ? values : {}).flatMap(([name, one]) =>
      isObject(one) && typeof one.field === 'string'
        ? [{ field: one.field, path: ['values', name, 'field'] }]
        : [],
    ),
  ],
  handles: () => [{ name: 'success', description: 'The values are computed.' }],
  outputOnly: true,
  example: {
    config: {
      items: '{{ inputs.deals }}',
      group_by: ['stage'],
      values: { total: { function: 'sum', field: 'amount' } },
    },
    inputs: {
      inputs: {
        deals: [
          { stage: 'won', amount: '1250.00' },
          { stage: 'lost', amount: '80.00' },
          { stage: 'won', amount: '900.50' },
        ],
      },
    },
    output: {
      count: 3,
      values: { total: '2230.50' },
      groups: [
        { group: { stage: 'won' }, count: 2, values: { total: '2150.50' } },
        { group: { stage: 'lost' }, count: 1, values: { total: '80.00' } },
      ],
    },
  },
  async run({ items, group_by, values, missing }, { organization: { id, timezone } }) {
    const named = [...group_by, ...Object.values(values).flatMap(({ field }) => field ?? [])]
    if (missing === 'fail') for (const field of named) requireField(items, field)
    const turn = createTurns(id)
    const measures = Object.entries(values).map(([name, { function: fn, field }]) => ({ name, fn, field }))
    const computed = async (members: Member[]) => {
      const results: [string, unknown][] = []
      for (const { name, fn, field } of measures) {
        results.push([
          name,
          isMixed(fn, field, members, group_by) ? null : compute(fn, field, members, timezone),
        ])
        await turn()
      }
      return Object.fromEntries(results)
    }
    const all = items.map((item, index) => ({ item, index }))
    const groups: { group: Record<string, unknown>; count: number; values: Record<string, unknown> }[] = []
    for (const { group, members } of grouped(all, group_by, timezone))
      groups.push({ group, count: members.length, values: await computed(members) })
    return { output: { count: items.length, values: await computed(all), groups } }
  },
})

interface Member {
  item: unknown
  /** Its index in the list, for errors. */
  index: number
}

function grouped(
  all: Member[],
  fields: string[],
  timezone: string,
): { group: Record<string, unknown>; members: Member[] }[] {
  if (fields.length === 0) return []
  const readers = fields.map((field) => ({ field, read: fieldReader(field) }))
  const groups = new Map<string, { group: Record<string, unknown>; members: Member[] }>()
  for (const member of all) {
    const given = readers.map(({ field, read }) => [field, read(member.item) ?? null] as const)
    const key = JSON.stringify(given.map(([, value]) => identity(value, timezone)))
    const found = groups.get(key)
    if (found) found.members.push(member)
    else groups.set(key, { group: Object.fromEntries(given), members: [member] })
  }
  return [...groups.values()]
}

/**
 * A key that is the same for values that `eq` compares as equal, but for a day and a moment: `eq` takes a day for all
 * its moments, which are not equal to each other. Here, as in sorts, it is its first one.
 */
function identity(value: unknown, timezone: string): unknown {
  const key = sortKey(value, timezone)
  if (key === undefined) return null
  if (key.rank === 0) return numberKey(value as number | string)
  return key.rank < 4 ? [key.rank, key.value] : [key.rank, canonical(value)]
}

/**
 * Whether a sum or an average has amounts of several currencies: null for the whole list if it is grouped by them.
 * Otherwise throws NodeError.
 */
function isMixed(
  fn: FunctionName,
  field: string | undefined,
  members: Member[],
  groupedBy: readonly string[],
): boolean {
  if (field === undefined || (fn !== 'sum' && fn !== 'average')) return false
  const currencies = currenciesOf(
    members.map(({ item }) => item),
    field,
  )
  const { path, codes } = currencies
  if (codes.length < 2) return false
  // By another currency, such as that of the company, a group may still have several.
  if (groupedBy.includes(path)) return true
  throw new NodeError(
    'mixed_currencies',
    `${mixedCurrencies(field, currencies)}: add ${path} to group_by, or filter the items by it first.`,
    { details: { field, currencies: codes } },
  )
}

interface Present extends Member {
  value: unknown
  key: SortKey
}

function compute(fn: FunctionName, field: string | undefined, members: Member[], timezone: string): unknown {
  if (field === undefined) return members.length
  const read = fieldReader(field)
  const present = members.flatMap(({ item, index }): Present[] => {
    const value = read(item)
    const key = sortKey(value, timezone)
    return key === undefined ? [] : [{ item, index, value, key }]
  })
  switch (fn) {
    case 'count':
      return present.length
    case 'count_distinct':
      return new Set(present.map(({ value }) => JSON.stringify(identity(value, timezone)))).size
    case 'sum':
    case 'average':
      return total(fn, field, present)
    case 'min':
      return extreme(present, -1, field)
    case 'max':
      return extreme(present, 1, field)
    case 'first':
      return present[0]?.value ?? null
    case 'last':
      return present.at(-1)?.value ?? null
    case 'list':
      return present.map(({ value }) => value)
  }
}

/** The least or the greatest value; the first one of equal values. */
function extreme(present: Present[], sign: 1 | -1, field: string): unknown {
  requireOrder(
    present.map(({ value }) => value),
    field,
  )
  const found = present.reduce<Present | undefined>(
    (best, one) => (best && sign * compareKeys(one.key, best.key) <= 0 ? best : one),
    undefined,
  )
  return found?.value ?? null
}

/** Decimals of an average of numbers. */
const PRECISION = 15

function total(fn: 'sum' | 'average', field: string, present: Present[]): unknown {
  if (present.length === 0) return fn === 'sum' ? 0 : null
  const sum = present.map((one) => decimalOf(one, field)).reduce(add)
  const money = present.some(({ value }) => typeof value === 'string')
  if (fn === 'sum') return money ? decimalText(sum) : Number(decimalText(sum))
  const average = divide(sum, integer(present.length), Math.max(sum.places, money ? 2 : PRECISION))
  return money ? decimalText(average) : Number(decimalText(average))
}

function decimalOf({ value, index }: Present, field: string): Decimal {
  const decimal = parseDecimal(value)
  if (decimal) return decimal
  const shown = isObject(value) || Array.isArray(value) ? 'a list or a mapping' : JSON.stringify(value)
  throw new NodeError(
    'not_a_number',
    `${field} of item ${index} is no number, but ${shown.slice(0, 100)}: filter such items out first, or correct them.`,
    { details: { index } },
  )
}
