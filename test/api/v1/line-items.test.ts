import assert from 'node:assert/strict'
import type { Answer } from '../../support/answer.ts'
import { createKey } from '../../support/api.ts'
import { createOrganization } from '../../support/database.ts'
import { withApi } from '../../support/with-api.ts'

describe('Line items of deals', () => {
  const suite = withApi()
  let key: string
  before(async () => {
    key = (await createKey(suite.db, await createOrganization(suite.db))).key
  })

  const call = (method: string, path: string, body?: object, headers = {}) =>
    suite.api.request(method, path, { body, key, headers })
  const at = (kind: string, id = '') => `/v1/objects/${kind}${id && `/${id}`}`
  const made = async (kind: string, fields: object) => {
    const answer = await call('POST', at(kind), fields)
    assert.equal(answer.status, 201, JSON.stringify(answer.body))
    return answer.body
  }
  const deal = (fields: object = {}) => made('deals', { name: 'Looms', ...fields })
  const item = (fields: object) => made('line_items', { name: 'Loom', ...fields })
  const shown = async (kind: string, id: string) => (await call('GET', at(kind, id))).body
  const priceOf = async (id: string) => {
    const { amount, currency } = await shown('deals', id)
    return amount === null ? null : `${amount} ${currency}`
  }
  const problem = ({ status, body }: Answer) => [
    status,
    ...(body.detail ?? []).map(
      ({ loc, type }: { loc: unknown[]; type: string }) => `${loc.slice(1).join('.')} ${type}`,
    ),
  ]

  describe('have an amount', () => {
    const cases: [object, string, string][] = [
      [{ unit_price: '10' }, '10.00', '0.00'],
      [{ quantity: '2.5', unit_price: '10.10', tax_percent: '19' }, '25.25', '4.80'],
      [{ quantity: 3, unit_price: '33.33', discount_percent: '12.5' }, '87.49', '0.00'],
      [{ quantity: 3, unit_price: 100, discount_amount: '50', tax_percent: 7.7 }, '250.00', '19.25'],
      [{ quantity: '1000000', unit_price: '0.00155' }, '1550.00', '0.00'],
      [{ quantity: '3', unit_price: '333.5', currency: 'JPY' }, '1001.00', '0.00'],
      [{ quantity: '1', unit_price: '1.2345', currency: 'KWD' }, '1.235', '0.00'],
      [{ quantity: '2', unit_price: '-5' }, '-10.00', '0.00'],
      [{ quantity: '9007199254740993', unit_price: '0.1' }, '900719925474099.30', '0.00'],
      [{ quantity: '0', unit_price: '5' }, '0.00', '0.00'],
    ]
    for (const [fields, amount, tax_amount] of cases)
      it(`${amount} and ${tax_amount} of tax for ${JSON.stringify(fields)}`, async () => {
        const record = await item(fields)
        assert.deepEqual([record.amount, record.tax_amount], [amount, tax_amount])
        // Not by its value in dollars: the dinar has no exchange rate.
        const query = `id=${record.id}&currency=${record.currency}&amount[gte]=-100`
        const { body } = await call('GET', `${at('line_items')}?${query}`)
        assert.deepEqual(body.data[0], record)
      })

    it('that follows each change', async () => {
      const { id } = await item({ unit_price: '10', quantity: 2 })
      const changed = await call('PATCH', at('line_items', id), { quantity: '3', discount_percent: '50' })
      assert.deepEqual([changed.body.quantity, changed.body.amount], ['3', '15.00'])
    })

    it('only of what makes sense, with what to write instead', async () => {
      const refused = async (fields: object) =>
        problem(await call('POST', at('line_items'), { name: 'Loom', unit_price: '10', ...fields }))
      assert.deepEqual(await refused({ discount_percent: 5, discount_amount: 5 }), [
        422,
        'discount_amount invalid_value',
      ])
      assert.deepEqual(await refused({ discount_amount: '10.01' }), [422, 'discount_amount invalid_value'])
      assert.deepEqual(await refused({ discount_amount: '-1' }), [422, 'discount_amount invalid_value'])
      assert.equal((await refused({ discount_percent: 100.5 }))[0], 422)
      assert.equal((await refused({ quantity: '-1' }))[0], 422)
      assert.equal((await refused({ quantity: 'two' }))[0], 422)
      assert.deepEqual(await refused({ quantity: '9999999999999999', unit_price: '11' }), [
        422,
        'quantity invalid_value',
      ])
      assert.deepEqual(await refused({ amount: '5' }), [422, 'amount read_only'])
      assert.deepEqual(await refused({ unit_price: null }), [422, 'unit_price missing'])
      assert.deepEqual(problem(await call('POST', at('line_items'), {})), [
        422,
        'name missing',
        'unit_price missing',
      ])
    })
  })

  describe('made of a product', () => {
    it('copy its name, price, tax and interval once', async () => {
      const product = await made('products', {
        name: 'Maintenance',
        unit_price: '90.5',
        currency: 'CHF',
        tax_percent: '8.1',
        recurring_interval: 'month',
      })
      const line = await made('line_items', { product_id: product.id, quantity: 12 })
      await call('PATCH', at('products', product.id), { unit_price: '100', name: 'Care' })
      const { name, unit_price, currency, tax_percent, recurring_interval, amount } = await shown(
        'line_items',
        line.id,
      )
      assert.deepEqual(
        [name, unit_price, currency, tax_percent, recurring_interval, amount],
        ['Maintenance', '90.50', 'CHF', '8.1', 'month', '1086.00'],
      )
      const own = await made('line_items', { product_id: product.id, unit_price: '1', tax_percent: null })
      assert.deepEqual([own.name, own.unit_price, own.tax_percent], ['Care', '1.00', null])
    })

    it('do not take over a price as an amount in another currency', async () => {
      const { id } = await made('products', { name: 'Loom', unit_price: '90', currency: 'CHF' })
      const answer = await call('POST', at('line_items'), { product_id: id, currency: 'EUR' })
      assert.deepEqual(problem(answer), [422, 'unit_price missing'])
    })

    it('of an organization that exists', async () => {
      const answer = await call('POST', at('line_items'), {
        product_id: '01890a5d-ac96-774b-bcce-b302099a8061',
      })
      assert.deepEqual(problem(answer), [422, 'product_id not_found'])
    })

    it('stay as they are when it is deleted', async () => {
      const { id } = await made('products', { name: 'Loom', unit_price: '90' })
      const { id: deal_id } = await deal()
      const line = await made('line_items', { product_id: id, deal_id })
      await call('DELETE', at('products', id))
      const left = await shown('line_items', line.id)
      assert.deepEqual([left.product_id, left.name, left.amount], [null, 'Loom', '90.00'])
      assert.equal(await priceOf(deal_id), '90.00 USD')
    })
  })

  describe('make the amount of their deal', () => {
    it('when they are created, changed, moved, deleted and restored', async () => {
      const one = await deal({ amount: '5', currency: 'EUR' })
      const two = await deal()
      const first = await item({ deal_id: one.id, unit_price: '10.10' })
      assert.equal(first.currency, 'EUR', 'the currency of the deal')
      const second = await item({ deal_id: one.id, unit_price: '0.20', quantity: 3 })
      assert.equal(await priceOf(one.id), '10.70 EUR')
      await call('PATCH', at('line_items', second.id), { quantity: 1 })
      assert.equal(await priceOf(one.id), '10.30 EUR')
      await call('PATCH', at('line_items', second.id), { deal_id: two.id })
      assert.deepEqual([await priceOf(one.id), await priceOf(two.id)], ['10.10 EUR', '0.20 EUR'])
      await call('DELETE', at('line_items', second.id))
      assert.equal(await priceOf(two.id), null, 'no line item is left')
      await call('POST', `${at('line_items', second.id)}/restore`)
      assert.equal(await priceOf(two.id), '0.20 EUR')
    })

    it('by associations from either end', async () => {
      const { id } = await deal()
      const line = await item({ unit_price: '7' })
      await call('POST', `${at('deals', id)}/associations/line_items/${line.id}`)
      assert.equal(await priceOf(id), '7.00 USD')
      await call('DELETE', `${at('line_items', line.id)}/associations/deals/${id}`)
      assert.equal(await priceOf(id), null)
      const linked = await item({ unit_price: '8', associations: [{ object: 'deal', id }] })
      assert.deepEqual([linked.deal_id, await priceOf(id)], [id, '8.00 USD'])
      const other = await deal({ amount: '3', associations: [{ object: 'line_item', id: line.id }] })
      assert.deepEqual([other.amount, other.version], ['7.00', 2], 'the answer has the sum')
      assert.deepEqual(await shown('deals', other.id), other)
    })

    it('which no write changes, but the same values may be written', async () => {
      const { id } = await deal({ amount: '5' })
      assert.equal((await call('PATCH', at('deals', id), { amount: '6' })).status, 200)
      await item({ deal_id: id, unit_price: '10' })
      const refused = await call('PATCH', at('deals', id), { amount: '6' })
      assert.deepEqual(problem(refused), [422, 'amount read_only'])
      assert.match(refused.body.error.message, /sum/)
      assert.deepEqual(problem(await call('PATCH', at('deals', id), { currency: 'EUR' })), [
        422,
        'currency read_only',
      ])
      const same = await call('PATCH', at('deals', id), { amount: 10, currency: 'usd', name: 'Two looms' })
      assert.deepEqual([same.status, same.body.amount], [200, '10.00'])
      const batch = await call('POST', `${at('deals')}/batch`, {
        operations: [{ op: 'update', id, data: { amount: '1' } }],
      })
      assert.equal(batch.body.results[0].error.type, 'validation_error')
    })

    it('in one currency', async () => {
      const { id } = await deal({ amount: '5', currency: 'USD' })
      const first = await item({ deal_id: id, unit_price: '10', currency: 'EUR' })
      assert.equal(await priceOf(id), '10.00 EUR', 'the first decides')
      const refused = await call('POST', at('line_items'), {
        name: 'Loom',
        deal_id: id,
        unit_price: '10',
        currency: 'USD',
      })
      assert.deepEqual(problem(refused), [422, 'currency invalid_value'])
      assert.equal(await priceOf(id), '10.00 EUR')
      assert.equal((await call('PATCH', at('line_items', first.id), { currency: 'CHF' })).status, 200)
      assert.equal(await priceOf(id), '10.00 CHF')
    })

    it('in batches, each refused alone', async () => {
      const { id } = await deal()
      const data = { name: 'Loom', deal_id: id, unit_price: '1.10' }
      const { body } = await call('POST', `${at('line_items')}/batch`, {
        operations: [
          { op: 'create', data },
          { op: 'create', data: { ...data, currency: 'EUR' } },
          { op: 'create', data },
        ],
      })
      assert.deepEqual(
        body.results.map(({ status }: { status: number }) => status),
        [201, 422, 201],
      )
      assert.equal(await priceOf(id), '2.20 USD')
    })

    it('of many at the same time, none lost', async () => {
      const { id } = await deal()
      const answers = await Promise.all(
        Array.from({ length: 12 }, (_, i) =>
          call('POST', at('line_items'), { name: 'Loom', deal_id: id, unit_price: `${i + 1}.01` }),
        ),
      )
      assert.deepEqual([...new Set(answers.map(({ status }) => status))], [201])
      assert.equal(await priceOf(id), '78.12 USD')
      await Promise.all(
        answers.map(({ body }, i) =>
          i % 2 === 0
            ? call('DELETE', at('line_items', body.id))
            : call('PATCH', at('line_items', body.id), { quantity: 2 }),
        ),
      )
      assert.equal(await priceOf(id), '84.12 USD')
      const { version } = await shown('deals', id)
      const { body: history } = await call('GET', `${at('deals', id)}/history?limit=200`)
      assert.deepEqual(
        [version, history.data[0].changes.amount.to, history.data[0].action],
        [25, '84.12', 'updated'],
      )
    })

    it('as any change: events, history, filters, sorts and search', async () => {
      const { id } = await deal()
      await item({ deal_id: id, unit_price: '4711.25' })
      const rows = await suite.db
        .system('events')
        .where({ subject_id: id })
        .orderBy('id')
        .select('name', 'data')
      assert.deepEqual(
        rows.map(({ name, data }) => [name, data.amount]),
        [
          ['deal.created', null],
          ['deal.updated', '4711.25'],
        ],
      )
      for (const query of ['amount=4711.25', 'sort=-amount&limit=1&amount[gte]=4711', 'q=4711.25']) {
        const { body } = await call('GET', `${at('deals')}?${query}`)
        assert.deepEqual(
          body.data.map((record: { id: string }) => record.id),
          [id],
          query,
        )
      }
      const { body } = await call('GET', `${at('line_items')}?deal.amount=4711.25&expand=deal`)
      assert.equal(body.data[0].expanded.deal.id, id)
      const related = await call('GET', `${at('deals', id)}/line_items`)
      assert.equal(related.body.data[0].amount, '4711.25')
    })

    it('when deals are merged, deleted and restored', async () => {
      const winner = await deal({ amount: '100' })
      const loser = await deal()
      const line = await item({ deal_id: loser.id, unit_price: '10' })
      const merged = await call('POST', `${at('deals', winner.id)}/merge`, { from: loser.id })
      assert.deepEqual([merged.status, merged.body.amount], [200, '10.00'])
      assert.deepEqual(await shown('deals', winner.id), merged.body)
      assert.equal((await call('DELETE', at('deals', winner.id))).status, 200)
      assert.equal((await shown('line_items', line.id)).deal_id, null)
      const { body: restored } = await call('POST', `${at('deals', winner.id)}/restore`)
      assert.equal(restored.amount, '10.00')
      assert.deepEqual(await shown('deals', winner.id), restored)
      assert.equal((await shown('line_items', line.id)).deal_id, winner.id)
    })

    it('and leave the amount from before the first when the last is gone', async () => {
      const { id } = await deal({ amount: '5000', currency: 'CHF' })
      const first = await item({ deal_id: id, unit_price: '10', currency: 'EUR' })
      const second = await item({ deal_id: id, unit_price: '20', currency: 'EUR' })
      assert.equal(await priceOf(id), '30.00 EUR')
      await call('DELETE', at('line_items', first.id))
      assert.equal(await priceOf(id), '20.00 EUR')
      const { body: other } = await call('POST', at('deals'), { name: 'Other' })
      await call('PATCH', at('line_items', second.id), { deal_id: other.id })
      assert.deepEqual([await priceOf(id), await priceOf(other.id)], ['5000.00 CHF', '20.00 EUR'])
      const { body: history } = await call('GET', `${at('deals', id)}/history?limit=1`)
      assert.deepEqual(history.data[0].changes.amount, { from: '20.00', to: '5000.00' })
      // Another amount meanwhile is the one that comes back.
      await call('PATCH', at('deals', id), { amount: '6000' })
      await call('PATCH', at('line_items', second.id), { deal_id: id })
      assert.deepEqual([await priceOf(id), await priceOf(other.id)], ['20.00 EUR', null])
      const operations = [{ op: 'delete', id: second.id }]
      await call('POST', `${at('line_items')}/batch`, { operations })
      assert.equal(await priceOf(id), '6000.00 CHF')
    })

    it('and leave it after a restore and a merge of the deal, too', async () => {
      const { id } = await deal({ amount: '5000' })
      const line = await item({ deal_id: id, unit_price: '10' })
      await call('DELETE', at('deals', id))
      await call('POST', `${at('deals', id)}/restore`)
      assert.equal(await priceOf(id), '10.00 USD')
      const loser = await deal({ amount: '7000' })
      const moved = await item({ deal_id: loser.id, unit_price: '1' })
      await call('POST', `${at('deals', id)}/merge`, { from: loser.id })
      assert.equal(await priceOf(id), '11.00 USD')
      for (const one of [line, moved]) await call('DELETE', at('line_items', one.id))
      assert.equal(await priceOf(id), '5000.00 USD')
    })

    it('and leave none after a restore of a deal that had none', async () => {
      const { id } = await deal()
      const line = await item({ deal_id: id, unit_price: '10', currency: 'EUR' })
      await call('DELETE', at('deals', id))
      await call('POST', `${at('deals', id)}/restore`)
      assert.equal(await priceOf(id), '10.00 EUR')
      await call('DELETE', at('line_items', line.id))
      assert.equal(await priceOf(id), null)
      // An amount that is set afterwards is the one that comes back.
      await call('PATCH', at('deals', id), { amount: '7000', currency: 'USD' })
      await call('DELETE', at('line_items', (await item({ deal_id: id, unit_price: '1' })).id))
      assert.equal(await priceOf(id), '7000.00 USD')
    })

    it('of many that come and go at the same time, and leave it', async () => {
      const { id } = await deal({ amount: '5000' })
      const lines = await Promise.all(Array.from({ length: 6 }, () => item({ deal_id: id, unit_price: '2' })))
      assert.equal(await priceOf(id), '12.00 USD')
      await Promise.all(lines.map((line) => call('DELETE', at('line_items', line.id))))
      assert.equal(await priceOf(id), '5000.00 USD')
    })

    it('which a revert of the deal leaves', async () => {
      const { id } = await deal({ amount: '100' })
      await item({ deal_id: id, unit_price: '10' })
      await call('PATCH', at('deals', id), { name: 'Other' })
      const { status, body } = await call('POST', `${at('deals', id)}/revert`, { version: 1 })
      assert.deepEqual([status, body.name, body.amount], [200, 'Looms', '10.00'])
    })

    it('only of the own organization', async () => {
      const other = (await createKey(suite.db, await createOrganization(suite.db))).key
      const { id } = await deal()
      const answer = await suite.api.request('POST', at('line_items'), {
        body: { name: 'Loom', unit_price: '1', deal_id: id },
        key: other,
      })
      assert.deepEqual(problem(answer), [422, 'deal_id not_found'])
      assert.equal(await priceOf(id), null)
    })
  })
})
