import { deepEqual, equal, match, ok, throws } from 'node:assert/strict'
import { render } from '../../../workflows/language/expressions/liquid.ts'
import { compare, comparison } from '../../../workflows/nodes/compare.ts'
import { errorOf, executeNode, outputOf } from '../../support/execute-node.ts'

/** What authors wrote in good faith, and what gave a result that only looked right. */
describe('values that look right', () => {
  const value = (text: string, inputs: object = {}) => render(`{{ ${text} }}`, { inputs })

  it('are numbers where a text with a zero before it is compared with a number', () => {
    equal(compare('08', 'gte', 8), true)
    equal(compare('09', 'lt', 18), true)
    equal(compare('03', 'in', [3, 4, 5]), true)
    equal(comparison('in', [9, 10, 11])('09'), true)
    equal(value("'09' <= 6 ? 1 : 2"), 2)
    equal(value("'03' <= 6 ? 1 : 2"), 1)
    equal(compare('01010', 'eq', '1010'), false)
    equal(comparison('in', ['1010'])('01010'), false)
    equal(comparison('in', ['08', '09'])(8), true)
    equal(comparison('in', ['008'])('08'), false)
    equal(comparison('in', [8])('=8'), false)
  })

  it('are sorted last if they are empty texts, and the others in order', () => {
    const list = ['b', '', 'a', ' ', null, 'c']
    for (const filter of ['sort', 'sort_natural']) {
      deepEqual(value(`inputs.list | ${filter}`, { list }), ['a', 'b', 'c', '', ' ', null])
      deepEqual(value(`inputs.list | ${filter} | reverse | slice: 0, 3`, { list }), ['c', 'b', 'a'])
    }
    const items = ['x', '', '3', '1'].map((n) => ({ n }))
    deepEqual(value("inputs.items | sort: 'n' | map: 'n'", { items }), ['1', '3', 'x', ''])
  })

  it('are not lost by `uniq` if they lack the field', () => {
    const list = [
      { n: 'A', e: 'a' },
      { n: 'B', e: null },
      { n: 'C', e: null },
      { n: 'D', e: 'a' },
      { n: 'E' },
      { n: 'F', e: '' },
      { n: 'G', e: '' },
    ]
    deepEqual(value("inputs.list | uniq: 'e' | map: 'n'", { list }), ['A', 'B', 'C', 'E', 'F', 'G'])
    deepEqual(value('inputs.list | uniq', { list: [null, 1, null] }), [null, 1])
  })

  it('fail where a field is misspelt, in filters and in filter_items', async () => {
    const list = [
      { amount: 20, stage: 'declined' },
      { amount: 5, stage: 'x' },
    ]
    for (const text of [
      "where: 'stagee', 'x'",
      "reject: 'stagee', 'x'",
      "map: 'amout'",
      "sum: 'amout'",
      "map: 'amuont'",
      "map: 'Amount'",
      "sort: 'amout'",
      "uniq: 'stagee'",
      "has: 'stagee', 'x'",
      "group_by: 'stagee'",
    ])
      throws(() => value(`inputs.list | ${text}`, { list }), /did you mean (stage|amount)\?/, text)
    throws(() => value('inputs.list | where: true', { list }), /where takes the name of a field/)
    const conditions = [{ field: 'stagee', operator: 'ne', right: 'declined' }]
    const [code, message] = await errorOf('filter_items', { items: list, conditions })
    equal(code, 'missing_field')
    match(message, /did you mean stage\?/)
    // A field that is only missing everywhere is no mistake, though others have a name like it.
    for (const [field, other] of [
      ['first_name', 'last_name'],
      ['updated_at', 'created_at'],
      ['phone2', 'phone'],
      ['line2', 'line1'],
      ['to', 'no'],
      ['state', 'stage'],
      ['date', 'rate'],
      ['from', 'form'],
    ] as const) {
      const items = [{ [other]: 'a' }]
      deepEqual(value(`inputs.items | where: '${field}', 'a'`, { items }), [], field)
      const missing = [{ field, operator: 'is_empty' }]
      equal((await outputOf('filter_items', { items, conditions: missing })).count, 1, field)
    }
    deepEqual(value("inputs.list | where: 'vip'", { list }), [])
    const optional = [{ field: 'closed_at', operator: 'is_empty' }]
    equal((await outputOf('filter_items', { items: list, conditions: optional })).count, 2)
  })

  it('are days as they are written, in every time zone', () => {
    equal(value("'1980-11-27' | date: '%d.%m.%Y', 'America/New_York'"), '27.11.1980')
    equal(value("'1980-11-27T02:00:00Z' | date: '%d.%m.%Y', 'America/New_York'"), '26.11.1980')
  })

  it('are not added across currencies', async () => {
    const items = [
      { amount: '1304.99', currency: 'CHF' },
      { amount: '1000.00', currency: 'EUR' },
      { amount: '1.01', currency: 'CHF' },
    ]
    const values = { total: { function: 'sum', field: 'amount' } }
    const [code, message] = await errorOf('aggregate_items', { items, values })
    equal(code, 'mixed_currencies')
    match(message, /CHF and EUR.*group_by/)
    const grouped = await outputOf('aggregate_items', { items, values, group_by: ['currency'] })
    deepEqual(grouped.values, { total: null })
    deepEqual(
      (grouped.groups as { values: object }[]).map((one) => one.values),
      [{ total: '1306.00' }, { total: '1000.00' }],
    )
    throws(() => value("inputs.items | sum: 'amount'", { items }), /CHF and EUR/)
    equal(value("inputs.items | where: 'currency', 'CHF' | sum: 'amount'", { items }), '1306.00')
    equal(
      value("inputs.items | sum: 'quantity'", {
        items: [
          { quantity: 1, currency: 'A' },
          { quantity: 2, currency: 'B' },
        ],
      }),
      3,
    )
  })

  it('are added where an item of another currency has no amount', async () => {
    const items = [
      { amount: '5.00', currency: 'CHF' },
      ...[null, '', undefined].map((amount) => ({ amount, currency: 'EUR' })),
      { currency: 'USD' },
      { amount: '1.00', currency: 'chf' },
    ]
    equal(value("inputs.items | sum: 'amount'", { items }), '6.00')
    const values = { total: { function: 'sum', field: 'amount' } }
    deepEqual((await outputOf('aggregate_items', { items, values })).values, { total: '6.00' })
  })

  it('are told by a hint that selects amounts as they are written', () => {
    const items = [
      { order: { total: '5.00', currency: 'chf' } },
      { order: { total: '7.00', currency: 'eur' } },
    ]
    throws(
      () => value("inputs.items | sum: 'order.total'", { items }),
      /select one before, `\| where: "order\.currency", "chf"`/,
    )
    equal(value("inputs.items | where: 'order.currency', 'chf' | sum: 'order.total'", { items }), '5.00')
  })

  it('are not null for groups by the currency of something else', async () => {
    const items = [
      { amount: '1.00', currency: 'CHF', company: { currency: 'USD' } },
      { amount: '2.00', currency: 'EUR', company: { currency: 'USD' } },
    ]
    const values = { total: { function: 'sum', field: 'amount' } }
    const [code, message] = await errorOf('aggregate_items', {
      items,
      values,
      group_by: ['company.currency'],
    })
    equal(code, 'mixed_currencies')
    match(message, /add currency to group_by/)
  })

  it('are not compared letter by letter if they are days or numbers in a local form', async () => {
    for (const [left, right] of [
      ['01.12.2026', '2026-11-27'],
      ["1'000", '500'],
      ['12,50', 13],
      ['01.12.2026', '27.11.2026'],
      ['12/31/26 10:00', '1/2/26'],
      ["1'000", "2'000"],
      ['9,50', '12,50'],
      ['1.234,50', '900,00'],
      ['01.12.26', '27.11.26'],
      ['01.12.26', '2026-11-27'],
      ['27.11.26', '12.10.26'],
      ['01-12-26', '27-11-26'],
      ['1 Dec 2026', '2026-11-27'],
      ['Dec 1, 2026', 'Nov 27, 2026'],
      ['1. Dezember 2026', '27.11.2026'],
      ['Tue, 1 Dec 2026 10:00:00 GMT', '2026-11-27T10:00:00Z'],
      ['2026/12/1', '2026-11-27'],
      ['2026-2-1', '2026-11-27'],
      ['2026-02-30', '2026-03-01'],
      ['2026-11-27T25:00', '2026-11-27'],
      ['1,00,000', '99,999'],
      ['1,00,000', 500],
      ['12,34,567.50', '1,00,000'],
      ['CHF 1000', 'CHF 500'],
      ['$1,000.00', '500'],
      ['50%', '9 %'],
    ] as const) {
      throws(() => value('inputs.left < inputs.right', { left, right }), /cannot be compared with one/)
      throws(() => compare(left, 'gt', right), /cannot be compared with one/)
    }
    equal(value('inputs.left < inputs.right', { left: 'abc', right: 'abd' }), true)
    for (const left of ['', '  ']) {
      equal(value('inputs.left < inputs.right', { left, right: '2026-01-01' }), false)
      equal(compare(left, 'lt', '2026-01-01'), false)
    }
    equal(compare('1.5', 'lt', '10'), true)
    // Versions, phone numbers, addresses and sizes are texts.
    for (const [left, right] of [
      ['1.2.345', '1.2.346'],
      ['1.2.3', '1.3'],
      ['10.11.12', '10.11.13'],
      ['10.234.5', '9.1'],
      ['044 123 45 67', '079 123 45 67'],
      ['10.0.0.1', '10.0.0.2'],
      ["6'2", "6'3"],
      ['01010', '08001'],
      ['1.2.30', '1.2.31'],
      ['2026/03/01', '2026/11/27'],
      ['2026-03-01 Invoice', '2026-11-27 Invoice'],
      ['may 5', 'may 6'],
      ['A-100', 'A-99'],
    ] as const) {
      const inOrder = left < right
      equal(value('inputs.left < inputs.right', { left, right }), inOrder, left)
      equal(compare(left, 'lt', right), inOrder, left)
    }
  })

  it('are not sorted letter by letter either, nor are their least and greatest', async () => {
    for (const list of [
      ['05.12.2026', '28.11.2026'],
      ['05.12.2026', 'unknown', '28.11.2026'],
      ['2026-11-27', 'unknown', '', '01.12.26'],
      ['9,50', '12,00', '101,00'],
      [13, 'free', '12,50'],
      ['CHF 20', 'CHF 100'],
    ]) {
      const items = list.map((due) => ({ due }))
      for (const filter of ['sort', 'sort_natural', 'sort | reverse'])
        throws(() => value(`inputs.list | ${filter}`, { list }), /cannot be compared with one/, String(list))
      throws(() => value('inputs.items | sort: "due"', { items }), /cannot be compared with one/)
      const cases: [type: string, config: object][] = [
        ['sort_items', { by: [{ field: 'due', direction: 'desc' }] }],
        ['aggregate_items', { values: { first: { function: 'min', field: 'due' } } }],
        ['aggregate_items', { values: { last: { function: 'max', field: 'due' } } }],
      ]
      for (const [type, config] of cases) {
        const outcome = await executeNode(type, { items, ...config })
        ok(outcome.status === 'failed', `${type} of ${list}`)
        equal(outcome.error.code, 'not_comparable')
        deepEqual(outcome.error.details, { field: 'due' })
        match(outcome.error.message, /^due: "/)
      }
    }
    for (const list of [
      ['1.2.3', '10.2.1', '9.1.1'],
      ['044 123 45 67', '079 123 45 67'],
      ['12,50', 'free'],
      ['01.12.2026', 'unknown'],
      ['2026/03/01', '2026/11/27'],
    ])
      deepEqual(value('inputs.list | sort', { list: list.toReversed() }), list.toSorted())
  })

  it('are told what to do if they are versions', () => {
    for (const [left, right] of [
      ['10.12.25', '10.12.30'],
      ['01.02.03', '01.02.04'],
    ] as const) {
      throws(
        () => value('inputs.left < inputs.right', { left, right }),
        new RegExp(
          `cannot be compared with one; if it is a version, write a letter before both: "v${left}"$`,
        ),
      )
      throws(() => compare(left, 'gt', right), /write a letter before both/)
      equal(compare(`v${left}`, 'lt', `v${right}`), true)
    }
    throws(() => compare('01.12.2026', 'gt', '27.11.2026'), /cannot be compared with one\.$/)
  })

  it('are days by the names of months only', () => {
    for (const [left, right] of [
      ['5 Mayfield 2024', '6 Mayfield 2023'],
      ['12 Marine 2024', '3 Decker 2023'],
      ['Marble 12, 2024', 'Augustine 3, 2023'],
    ] as const)
      equal(compare(left, 'lt', right), left.toLowerCase() < right.toLowerCase(), left)
    for (const [left, right] of [
      ['5 May 2024', '6 Sept. 2023'],
      ['5. März 2024', '6. Oktober 2023'],
      ['5 mars 2024', '6 octobre 2023'],
      ['August 5, 2024', 'Dez. 6, 2023'],
    ] as const)
      throws(() => compare(left, 'lt', right), /cannot be compared with one/, left)
  })

  it('are named by item and field where filter_items cannot compare one', async () => {
    const items = [{ due: '2026-12-01' }, { due: '01.12.2026' }]
    const conditions = [{ field: 'due', operator: 'lt', right: '2026-12-24' }]
    const outcome = await executeNode('filter_items', { items, conditions })
    ok(outcome.status === 'failed')
    equal(outcome.error.code, 'not_comparable')
    deepEqual(outcome.error.details, { index: 1, field: 'due' })
    const [, message] = await errorOf('filter_items', { items, conditions })
    match(message, /^due of item 1: "01\.12\.2026" is no time/)
    const texts = { items: ["1'000"], conditions: [{ operator: 'gt', right: 5 }] }
    match((await errorOf('filter_items', texts))[1], /^Item 0: /)
  })

  it('are told how to leave out what a form leaves out', () => {
    throws(
      () => render('{{ inputs.form.message }}', { inputs: { form: { name: 'Ada' } } }),
      /inputs\.form has name; if it may be missing, write `\| default: …` directly after it/,
    )
  })

  it('are told what is wrong with a URL that has a blank', async () => {
    const [code, message] = await errorOf('api_request', { url: 'https://x.test/?q=Müller & Söhne' })
    equal(code, 'invalid_config')
    match(message, /^url must be a URL without blanks: the filter `url_encode` encodes a value in it/)
    match((await errorOf('api_request', { url: 'x.test/a b' }))[1], /must be an http or https URL/)
  })

  it('are numbers in texts for a counter', async () => {
    const [code] = await errorOf('key_value', { operation: 'increment', key: 'a', by: 'ten' })
    equal(code, 'invalid_config')
  })
})
