import { deepEqual, equal, match, ok } from 'node:assert/strict'
import fc from 'fast-check'
import { compare, comparison } from '../../../workflows/nodes/compare.ts'
import { LIST } from '../../../workflows/shared/limits.ts'
import { CONDITION_OPERATORS } from '../../../workflows/shared/operators.ts'
import { errorOf, outputOf } from '../../support/execute-node.ts'
import { stepsOf } from '../../support/steps.ts'

describe('filter_items', () => {
  const people = [
    { name: 'Ada', tags: ['vip'], address: { city: 'Zürich' }, score: '10' },
    { name: 'Bob', tags: [], address: null, score: 9 },
    { name: 'Cy', score: '' },
  ]
  const names = async (conditions: unknown[], match = 'all') => {
    const { items } = await outputOf('filter_items', { items: people, match, conditions })
    return (items as { name: string }[]).map(({ name }) => name)
  }

  it('keeps items in their order by all or any of the conditions', async () => {
    const rich = { field: 'score', operator: 'gte', right: 9 }
    const vip = { field: 'tags', operator: 'contains', right: 'VIP' }
    deepEqual(await names([rich]), ['Ada', 'Bob'])
    deepEqual(await names([rich, vip]), ['Ada'])
    deepEqual(await names([vip, { field: 'name', operator: 'in', right: ['cy', 'x'] }], 'any'), ['Ada', 'Cy'])
    deepEqual(await names([{ field: 'name', operator: 'not_in', right: ['cy'] }]), ['Ada', 'Bob'])
    deepEqual(await names([{ field: 'address.city', operator: 'is_empty' }]), ['Bob', 'Cy'])
    deepEqual(await names([{ field: 'constructor', operator: 'is_not_empty' }]), [])
  })

  it('tests the items themselves without a field, and counts what it removed', async () => {
    const items = ['a@x.ch', 'b@y.com', null, 'C@X.CH']
    const conditions = [{ operator: 'ends_with', right: '@x.ch' }]
    deepEqual(await outputOf('filter_items', { items, conditions }), {
      items: ['a@x.ch', 'C@X.CH'],
      count: 2,
      removed: 2,
    })
  })

  it('compares with one of many values as `in` of a condition does, in constant time', () => {
    const scalar = fc.oneof(
      fc.integer({ min: -3, max: 3 }),
      fc.constantFrom('a', 'A', '1', '1.0', '', ' 2', '1e+21', 1e21, '=1', '@0'),
      fc.constantFrom('01', '001', ' 02', '-01.50', -1.5, '12345678901234567', '012345678901234567'),
      fc.constantFrom('2026-01-31', '2026-01-31T00:00:00Z'),
      fc.boolean(),
      fc.constant(null),
      fc.constant({ a: 1 }),
      fc.constant(['a']),
    )
    fc.assert(
      fc.property(
        fc.constantFrom(...CONDITION_OPERATORS),
        scalar,
        fc.array(scalar),
        (operator, left, right) => equal(comparison(operator, right)(left), compare(left, operator, right)),
      ),
    )
    // Lists of scalars alone are the ones that are searched in constant time.
    fc.assert(
      fc.property(scalar, fc.array(scalar, { minLength: 1, maxLength: 3 }), (left, given) => {
        const right = given.filter((one) => one !== null && typeof one !== 'object')
        equal(comparison('in', right)(left), compare(left, 'in', right))
      }),
      { numRuns: 3_000 },
    )
  })

  it('filters 10,000 items by 1,000 values, and refuses what compares more than its limit', async () => {
    const items = Array.from({ length: LIST.items }, (_, id) => ({ id, tags: [1, 2] }))
    const right = Array.from({ length: 1_000 }, (_, id) => String(id * 2))
    const { count } = await outputOf('filter_items', {
      items,
      conditions: [{ field: 'id', operator: 'in', right }],
    })
    equal(count, 1_000)
    const long = { field: 'tags', operator: 'eq', right: 'x'.repeat(20_000) }
    const [code, message] = await errorOf('filter_items', { items, conditions: [long] })
    equal(code, 'too_expensive')
    match(message, /shorter list/)
    const [tooMany, why] = await errorOf('filter_items', { items: [...items, 1], conditions: [long] })
    equal(tooMany, 'invalid_config')
    match(why, /at most 10000 items/)
  })
})

describe('aggregate_items', () => {
  const aggregate = (items: unknown[], values: Record<string, unknown>, group_by?: string[]) =>
    outputOf('aggregate_items', { items, values, ...(group_by ? { group_by } : {}) })
  const one = async (fn: string, items: unknown[]) =>
    (
      (
        await aggregate(
          items.map((n) => ({ n })),
          { it: { function: fn, field: 'n' } },
        )
      ).values as { it: unknown }
    ).it

  it('adds numbers and money exactly', async () => {
    equal(await one('sum', [0.1, 0.2]), 0.3)
    equal(await one('sum', ['0.10', '0.20', '12345678901234567890.05']), '12345678901234567890.35')
    equal(await one('sum', ['1.50', 2, null, '']), '3.50')
    equal(await one('sum', [-5, 2]), -3)
    equal(await one('sum', ['-0.05', '0.04']), '-0.01')
    equal(await one('sum', [1e-7, 2e21]), 2e21)
    equal(await one('sum', []), 0)
    equal(await one('average', [1, 2]), 1.5)
    equal(await one('average', [1, 1, 2]), 1.333333333333333)
    equal(await one('average', ['10.00', '10.01']), '10.01')
    equal(await one('average', ['-10.00', '-10.01']), '-10.01')
    equal(await one('average', [null]), null)
  })

  it('agrees with integers of any size', () =>
    fc.assert(
      fc.asyncProperty(
        fc.array(fc.bigInt({ min: -(10n ** 30n), max: 10n ** 30n }), { minLength: 1 }),
        async (all) => {
          equal(await one('sum', all.map(String)), String(all.reduce((a, b) => a + b, 0n)))
        },
      ),
      { numRuns: 50 },
    ))

  it('finds the least, the greatest, the first and the last value, and lists and counts them', async () => {
    const dates = ['2026-03-01', null, '2025-01-31T00:00:00Z', '2026-03-01']
    equal(await one('min', dates), '2025-01-31T00:00:00Z')
    equal(await one('max', ['9', 10, '']), 10)
    equal(await one('first', dates), '2026-03-01')
    equal(await one('last', [1, null]), 1)
    deepEqual(await one('list', dates), ['2026-03-01', '2025-01-31T00:00:00Z', '2026-03-01'])
    equal(await one('count', dates), 3)
    equal(await one('count_distinct', ['a', 'A', '1', 1, '1.0', null]), 2)
    equal(await one('max', []), null)
  })

  it('groups by several fields, as `eq` compares them, in the order of their first items', async () => {
    const items = [
      { stage: 'Won', owner: { id: 7 }, amount: 1 },
      { stage: 'lost', owner: null, amount: 2 },
      { stage: 'won', owner: { id: '7' }, amount: 3 },
      { amount: 4 },
    ]
    const values = { n: { function: 'count' }, total: { function: 'sum', field: 'amount' } }
    deepEqual(await aggregate(items, values, ['stage', 'owner.id']), {
      count: 4,
      values: { n: 4, total: 10 },
      groups: [
        { group: { stage: 'Won', 'owner.id': 7 }, count: 2, values: { n: 2, total: 4 } },
        { group: { stage: 'lost', 'owner.id': null }, count: 1, values: { n: 1, total: 2 } },
        { group: { stage: null, 'owner.id': null }, count: 1, values: { n: 1, total: 4 } },
      ],
    })
  })

  it('says which value is no number, and which function needs a field', async () => {
    const items = [{ n: 1 }, { n: 'about 5' }]
    const [code, message] = await errorOf('aggregate_items', {
      items,
      values: { s: { function: 'sum', field: 'n' } },
    })
    equal(code, 'not_a_number')
    match(message, /^n of item 1 is no number, but "about 5"/)
    const [, missing] = await errorOf('aggregate_items', { items, values: { s: { function: 'sum' } } })
    match(missing, /field is required for this function/)
  })

  it('groups 10,000 items by ten fields by few steps for each', async () => {
    const fields = Array.from({ length: LIST.fields }, (_, n) => `f${n}`)
    const items = Array.from({ length: LIST.items }, (_, n) =>
      Object.fromEntries(fields.map((f) => [f, n % 500])),
    )
    const values = Object.fromEntries(fields.map((field) => [field, { function: 'sum', field }]))
    const { groups } = await aggregate(items, values, fields)
    equal((groups as unknown[]).length, 500)
    const part = items.slice(0, 1_000)
    const steps = await stepsOf(() => aggregate(part, values, fields))
    ok(steps < 100 * part.length * LIST.fields, `${steps} steps`)
  })
})

describe('a field that no item has', () => {
  const items = [
    { amount: '1.00', stage: null },
    { amount: '2.00', stage: null },
  ]
  const sum = (field: string, more = {}) => ({ items, values: { x: { function: 'sum', field } }, ...more })

  it('fails a node that sums, groups or sorts by it, with the nearest name', async () => {
    const cases: [string, Record<string, unknown>][] = [
      ['aggregate_items', sum('amuont')],
      ['aggregate_items', { items, group_by: ['amuont'] }],
      ['sort_items', { items, by: [{ field: 'amuont' }] }],
    ]
    for (const [type, config] of cases) {
      deepEqual(await errorOf(type, config), [
        'missing_field',
        'No item has the field amuont: did you mean amount?',
      ])
    }
    match((await errorOf('sort_items', { items: [1, 2], by: [{ field: 'x' }] }))[1], /are no mappings/)
  })

  it('does not if the node says so, nor one that is empty, nor a custom field', async () => {
    equal(
      JSON.stringify(await outputOf('aggregate_items', sum('gone', { missing: 'zero' }))).includes('"x":0'),
      true,
    )
    deepEqual(await outputOf('sort_items', { items, by: [{ field: 'gone' }], missing: 'last' }), { items })
    deepEqual(await outputOf('sort_items', { items, by: [{ field: 'stage' }] }), { items })
    deepEqual(await outputOf('sort_items', { items: [], by: [{ field: 'gone' }] }), { items: [] })
    deepEqual(await outputOf('sort_items', { items, by: [{ field: 'custom_fields.score' }] }), { items })
  })
})
