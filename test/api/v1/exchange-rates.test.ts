import { deepEqual, equal, match, ok } from 'node:assert/strict'
import { kinds } from '../../../db/model/records/kinds/index.ts'
import { listRecords } from '../../../db/records/list.ts'
import { SHIPPED_RATES } from '../../../workflows/shared/shipped-rates.ts'
import { recording, type Statement } from '../../bench/recording.ts'
import { createKey } from '../../support/api.ts'
import { createOrganization, testActor } from '../../support/database.ts'
import { everything, filtersOf } from '../../support/records.ts'
import { withApi } from '../../support/with-api.ts'

interface Named {
  name: string
}

describe('amounts of several currencies', () => {
  const suite = withApi()
  // Each test has an organization of its own, in US dollars.
  let organizationId: string
  let key: string
  beforeEach(async () => {
    organizationId = await createOrganization(suite.db)
    key = (await createKey(suite.db, organizationId)).key
  })

  const call = (method: string, path: string, body?: object) =>
    suite.api.request(method, `/v1${path}`, { key, ...(body && { body }) })
  const create = async (entity: string, values: object) => {
    const { status, body } = await call('POST', `/objects/${entity}`, values)
    equal(status, 201, JSON.stringify(body))
    return body
  }
  const list = async (entity: string, query: string) => {
    const { status, body } = await call('GET', `/objects/${entity}?${query}`)
    equal(status, 200, JSON.stringify(body))
    return body
  }
  const names = async (query: string, entity = 'deals'): Promise<string> =>
    (await list(entity, query)).data.map(({ name }: Named) => name).join(' ')
  const set = (rates: object, valid_from?: string) =>
    call('PUT', '/exchange-rates', { rates, ...(valid_from && { valid_from }) })
  const rateOf = async (currency: string, query = '') => {
    const { data } = (await call('GET', `/exchange-rates${query}`)).body
    return data.find((one: { currency: string }) => one.currency === currency)
  }

  const countIn = (currency: string) =>
    suite.db
      .system('organizations')
      .where({ id: organizationId })
      .update({ settings: JSON.stringify({ currency }) })

  /** By the rates that ship: Berlin 1,675 US dollars, Tokyo some 640, Lyon 11. */
  const world = async () => {
    await create('deals', { name: 'Tokyo', amount: '100000', currency: 'JPY' })
    await create('deals', { name: 'Berlin', amount: '1500', currency: 'EUR' })
    await create('deals', { name: 'Boston', amount: '1600', currency: 'USD' })
    await create('deals', { name: 'Lyon', amount: '10', currency: 'EUR' })
    await create('deals', { name: 'Nowhere' })
  }

  it('are sorted by their value in the currency of the organization, page by page', async () => {
    await world()
    equal(await names('sort=-amount'), 'Berlin Boston Tokyo Lyon Nowhere')
    equal(await names('sort=amount&order=asc'), 'Lyon Tokyo Boston Berlin Nowhere')
    equal(await names('sort=stage,-amount'), 'Berlin Boston Tokyo Lyon Nowhere')
    for (const order of ['asc', 'desc']) {
      const whole = await names(`sort=amount&order=${order}`)
      const seen: string[] = []
      let cursor = ''
      do {
        const page = await list('deals', `sort=amount&order=${order}&limit=1${cursor}`)
        seen.push(...page.data.map(({ name }: Named) => name))
        cursor = page.next_cursor === null ? '' : `&cursor=${page.next_cursor}`
      } while (cursor !== '')
      equal(seen.join(' '), whole)
    }
  })

  it('are filtered by it, by every operator, in totals too', async () => {
    await world()
    equal((await set({ EUR: '1.1', JPY: 0.0065 })).status, 200)
    const sorted = (query: string) => names(`sort=amount&order=asc&${query}`)
    equal(await sorted('amount[gte]=1000'), 'Boston Berlin')
    equal(await sorted('amount[gt]=650'), 'Boston Berlin')
    equal(await sorted('amount[gte]=650'), 'Tokyo Boston Berlin')
    equal(await sorted('amount[lt]=650'), 'Lyon')
    equal(await sorted('amount[lte]=650'), 'Lyon Tokyo')
    equal(await sorted('amount[between]=11,1600'), 'Lyon Tokyo Boston')
    equal(await sorted('amount=1650'), 'Berlin')
    equal(await sorted('amount[in]=1650,1600'), 'Boston Berlin')
    equal(await sorted('amount[ne]=1650'), 'Lyon Tokyo Boston Nowhere')
    equal(await sorted('amount[nin]=1650,1600'), 'Lyon Tokyo Nowhere')
    equal(await sorted('amount[is_null]=true'), 'Nowhere')
    equal(await sorted('amount[gte]=1000&q=berlin'), 'Berlin')
    equal((await list('deals', 'amount[gte]=1000&count=exact&limit=1')).total, 2)
  })

  it('are rounded to the unit of the currency before they are compared', async () => {
    await create('deals', { name: 'Berlin', amount: '0.05', currency: 'EUR' })
    await create('deals', { name: 'Boston', amount: '0.015', currency: 'USD' })
    await set({ EUR: '1.1' })
    equal(await names('amount=0.06'), 'Berlin')
    equal(await names('amount=0.015'), 'Boston')
  })

  it('are compared as they are where one currency is named', async () => {
    await world()
    equal(await names('currency=JPY&amount[gte]=100000'), 'Tokyo')
    equal(await names('currency=EUR&amount[lte]=10&sort=-amount'), 'Lyon')
    equal(await names('currency[in]=EUR&amount=1500'), 'Berlin')
    equal(await names('currency[in]=EUR,JPY&amount[gte]=1000&sort=-amount'), 'Berlin')
    // Either is enough here: the currency says nothing of the amount.
    equal(await names('match=any&currency=JPY&amount[gte]=1650&sort=-amount'), 'Berlin Tokyo')
    equal(await names('currency[ne]=JPY&amount[gte]=1650'), 'Berlin')
  })

  it('of other kinds too: companies, products, line items', async () => {
    await create('companies', { name: 'Kyoto', annual_revenue: '9000000', currency: 'JPY' })
    await create('companies', { name: 'Bern', annual_revenue: '70000', currency: 'CHF' })
    equal(await names('sort=-annual_revenue', 'companies'), 'Bern Kyoto')
    equal(await names('annual_revenue[gt]=65000', 'companies'), 'Bern')
    await create('products', { name: 'Tea', unit_price: '900', currency: 'JPY' })
    await create('products', { name: 'Cheese', unit_price: '30', currency: 'CHF' })
    equal(await names('sort=-unit_price', 'products'), 'Cheese Tea')
    const { id: product_id } = await create('products', { name: 'Wine', unit_price: '20', currency: 'EUR' })
    const deals = [
      await create('deals', { name: 'Osaka', currency: 'JPY' }),
      await create('deals', { name: 'Rome', currency: 'EUR' }),
    ]
    await create('line_items', { name: 'Rice', deal_id: deals[0].id, unit_price: '2000', currency: 'JPY' })
    await create('line_items', { product_id, deal_id: deals[1].id })
    equal(await names('sort=-amount', 'line_items'), 'Wine Rice')
    equal(await names('sort=-amount'), 'Rome Osaka')
    equal(await names('amount[gt]=15', 'line_items'), 'Wine')
    // One hop away: by the rates for the kind that has the amount.
    equal(await names('deal.amount[gt]=15', 'line_items'), 'Wine')
    equal(await names('deal.amount[gt]=15&deal.currency=JPY', 'line_items'), 'Rice')
  })

  it('of linked records are compared by their value, whatever currency another filter names', async () => {
    const company = await create('companies', { name: 'Motors' })
    await create('deals', { name: 'Osaka', amount: '2000', currency: 'JPY', company_id: company.id })
    await create('deals', { name: 'Rome', amount: '20', currency: 'EUR', company_id: company.id })
    equal(await names('associations.deals.amount[gt]=15', 'companies'), 'Motors')
    equal(await names('associations.deals.amount[gt]=1000', 'companies'), '')
    equal(await names('associations.deals.amount[gt]=1000&associations.deals.currency=JPY', 'companies'), '')
  })

  it('without a rate are last, and refused by a comparison, until there is one', async () => {
    await create('deals', { name: 'Luanda', amount: '900000', currency: 'AOA' })
    await create('deals', { name: 'Boston', amount: '5', currency: 'USD' })
    for (const order of ['asc', 'desc']) equal(await names(`sort=amount&order=${order}`), 'Boston Luanda')
    const { status, body } = await call('GET', '/objects/deals?amount[gt]=0&amount=5')
    equal(status, 422)
    deepEqual(
      body.detail.map(({ loc }: { loc: string[] }) => loc.join('.')),
      ['query.amount[gt]', 'query.amount'],
    )
    match(body.detail[0].msg, /\bAOA\b/)
    match(body.detail[0].hint, /PUT \/v1\/exchange-rates.*currency=AOA/)
    equal(await names('amount[gt]=0&currency=AOA'), 'Luanda')
    equal(await names('amount[gt]=0&currency[in]=USD,EUR'), 'Boston')
    equal(await names('amount[gt]=0&currency[ne]=AOA'), 'Boston')
    equal(await names('amount[is_null]=false&sort=amount'), 'Boston Luanda')
    await set({ AOA: '0.0011' })
    equal(await names('sort=-amount'), 'Luanda Boston')
    equal(await names('amount[gt]=900'), 'Luanda')
  })

  it('of deleted records are compared too, also in a currency that no other has', async () => {
    for (const [amount, currency] of [
      ['3000', 'JPY'],
      ['200', 'EUR'],
    ] as const) {
      const { id } = await create('deals', { name: currency, amount, currency })
      await call('DELETE', `/objects/deals/${id}`)
    }
    equal(await names('deleted=true&sort=-amount'), 'EUR JPY')
    equal(await names('deleted=true&amount[gt]=100'), 'EUR')
  })

  it('follow a change at once: of a rate, of a record, of the currency of the organization', async () => {
    await world()
    await set({ EUR: '0.5' })
    equal(await names('sort=-amount'), 'Boston Berlin Tokyo Lyon Nowhere')
    const [{ id }] = (await list('deals', 'q=Tokyo')).data
    await call('PATCH', `/objects/deals/${id}`, { currency: 'GBP' })
    equal(await names('sort=-amount&limit=1'), 'Tokyo')
    await countIn('EUR')
    // The rate of half a dollar was one for the dollar.
    equal(await names('amount[between]=1400,1500&sort=amount&order=asc'), 'Boston Berlin')
    equal((await rateOf('EUR')) ?? null, null)
    await set({ USD: '2' })
    equal(await names('amount=3200'), 'Boston')
  })

  it('are refused as the order of too many records, with the currency as a way', async () => {
    await world()
    const query = { ...everything, sort: 'amount', count: 'none' } as const
    const listed = (filters: Record<string, string>) =>
      suite.db.tenant(organizationId, testActor, (tx) =>
        listRecords(tx, 'deals', { ...query, filters: filtersOf('deals', filters) }, undefined, 0),
      )
    const error = await listed({ stage: 'lead' }).catch((error) => error)
    match(
      error.details.issues[0].hint,
      /^name a currency, such as currency=EUR, filter them, or sort by one of/,
    )
    ok(!error.details.issues[0].hint.includes('amount'), 'it is what was refused')
    equal((await listed({ stage: 'lead', currency: 'EUR' })).data.length, 2)
    equal((await listed({})).data.length, 5, 'it is read from an index')
  })

  it('are sorted by an index, a page from the amounts of each currency', async () => {
    const currencies = ['EUR', 'USD', 'JPY', 'CHF']
    const operations = Array.from({ length: 120 }, (_, n) => ({
      op: 'create',
      data: {
        name: `${n}`,
        ...(n % 7 > 0 && { amount: `${((n * 37) % 23) - 3}.${n % 10}`, currency: currencies[n % 4] }),
      },
    }))
    equal((await call('POST', '/objects/deals/batch', { operations, atomic: true })).status, 200)
    // Amounts of several currencies are equal then, so that ids decide.
    await set({ EUR: '2', JPY: '1', CHF: '0.37' })
    const worth: Record<string, number> = { EUR: 2, USD: 1, JPY: 1, CHF: 0.37 }
    const { data } = await list('deals', 'limit=200&sort=id&order=asc')
    for (const order of ['asc', 'desc'] as const) {
      const sign = order === 'asc' ? 1 : -1
      const worthOf = (one: { amount: string | null; currency: string }) =>
        one.amount === null ? null : Math.round(Number(one.amount) * worth[one.currency]! * 1e9) / 1e9
      const expected = [...data].sort((one, two) => {
        const [a, b] = [worthOf(one), worthOf(two)]
        if (a === b) return one.id < two.id ? -sign : sign
        if (a === null || b === null) return a === null ? 1 : -1
        return (a - b) * sign
      })
      const seen: string[] = []
      let cursor: string | undefined
      do {
        const statements: Statement[] = []
        const recorded = recording(suite.db, statements)
        const page = await recorded.tenant(organizationId, testActor, (tx) =>
          listRecords(tx, 'deals', { ...everything, limit: 7, sort: 'amount', order, count: 'none', cursor }),
        )
        recorded.stop()
        const { sql, bindings } = statements.at(-1)!
        const { rows } = await suite.db.tenant(organizationId, testActor, async (tx) => {
          // So few rows are read faster one after another.
          await tx.trx.raw(
            'set local enable_seqscan = off; set local enable_bitmapscan = off; set local enable_sort = off',
          )
          return tx.trx.raw(`explain ${sql}`, bindings as never)
        })
        const plan = rows.map((row: Record<string, string>) => row['QUERY PLAN']).join('\n')
        match(plan, /using deals_(currency|amount_null)\b/, plan)
        ok(!/Seq Scan/.test(plan), plan)
        seen.push(...page.data.map(({ id }) => id))
        cursor = page.next_cursor ?? undefined
      } while (cursor)
      deepEqual(
        seen,
        expected.map(({ id }) => id),
      )
    }
  })

  it('in one currency are read by the index, without any rate', async () => {
    for (const amount of [5, 7]) await create('deals', { name: `Rome ${amount}`, amount, currency: 'EUR' })
    const statements: Statement[] = []
    const recorded = recording(suite.db, statements)
    await recorded.tenant(organizationId, testActor, (tx) =>
      listRecords(tx, 'deals', { ...everything, sort: 'amount', count: 'none' }),
    )
    recorded.stop()
    ok(statements.some(({ sql }) => sql.includes('union all') && sql.includes('amount desc, id desc')))
    ok(statements.every(({ sql }) => !sql.includes('case when currency')))
  })

  describe('by /v1/exchange-rates', () => {
    it('which has the rates that ship, and those fixed by law', async () => {
      const { status, body } = await call('GET', '/exchange-rates')
      equal(status, 200)
      deepEqual(await rateOf('EUR'), {
        object: 'exchange_rate',
        currency: 'EUR',
        base: 'USD',
        rate: SHIPPED_RATES.rates.USD,
        valid_from: SHIPPED_RATES.date,
        source: 'shipped',
      })
      equal(body.data.length, body.total)
      const codes = body.data.map(({ currency }: { currency: string }) => currency)
      deepEqual(codes, [...codes].sort())
      ok(!codes.includes('USD') && codes.includes('XOF') && codes.length > 30)
      await countIn('EUR')
      deepEqual(await rateOf('BAM'), {
        object: 'exchange_rate',
        currency: 'BAM',
        base: 'EUR',
        rate: '0.511291881196218',
        valid_from: null,
        source: 'fixed',
      })
    })

    it('sets rates from a day on, and takes them away', async () => {
      const today = new Date().toISOString().slice(0, 10)
      const made = await set({ eur: '1.20', JPY: 0.007 })
      equal(made.status, 200, JSON.stringify(made.body))
      deepEqual(await rateOf('EUR'), {
        object: 'exchange_rate',
        currency: 'EUR',
        base: 'USD',
        rate: '1.2',
        valid_from: today,
        source: 'own',
      })
      await set({ EUR: '1.05' }, '2020-02-01')
      await set({ EUR: '9' }, '2199-01-01')
      equal((await rateOf('EUR')).rate, '1.2')
      equal((await rateOf('EUR', '?day=2020-02-01')).rate, '1.05')
      equal((await rateOf('EUR', '?day=2020-01-31')).source, 'shipped')
      equal((await rateOf('EUR', '?day=2199-05-05')).rate, '9')
      await set({ EUR: '1.3' })
      equal((await rateOf('EUR')).rate, '1.3')
      await set({ EUR: null })
      equal((await rateOf('EUR')).rate, '1.05')
      equal((await rateOf('JPY')).rate, '0.007')
      await set({ EUR: null }, '2020-02-01')
      equal((await rateOf('EUR')).source, 'shipped')
    })

    it('refuses what is no rate, and says where', async () => {
      const places = async (body: object) => {
        const answer = await call('PUT', '/exchange-rates', body)
        return [answer.status, ...answer.body.detail.map(({ loc }: { loc: string[] }) => loc.join('.'))]
      }
      for (const wrong of ['0', 0, -1, '1,2', 'x', '1e3', '0.0000000000001', true, [], {}])
        deepEqual(await places({ rates: { EUR: wrong } }), [422, 'body.rates.EUR'], JSON.stringify(wrong))
      deepEqual(await places({ rates: { EURO: '1' } }), [422, 'body.rates.EURO'])
      deepEqual(await places({ rates: { USD: '1' } }), [422, 'body.rates.USD'])
      deepEqual(await places({ rates: { eur: '1.1', EUR: '11' } }), [422, 'body.rates.EUR'])
      deepEqual(await places({ rates: {} }), [422, 'body.rates'])
      deepEqual(await places({ rates: { EUR: '1' }, valid_from: '2026-02-30' }), [422, 'body.valid_from'])
      deepEqual(await places({ rates: { EUR: '1' }, valid_from: '0001-01-01' }), [422, 'body.valid_from'])
      equal((await call('GET', '/exchange-rates?day=yesterday')).status, 422)
      equal((await rateOf('EUR')).source, 'shipped')
    })

    it('is of one organization, and in the audit log', async () => {
      await set({ EUR: '7', GBP: '8' }, '2026-01-01')
      const other = (await createKey(suite.db, await createOrganization(suite.db))).key
      const { body } = await suite.api.request('GET', '/v1/exchange-rates', { key: other })
      ok(body.data.every(({ source }: { source: string }) => source !== 'own'))
      const entries = await suite.db.system('audit_log').where({ organization_id: organizationId })
      const entry = entries.find(({ action }) => action === 'organization.exchange_rates_changed')
      deepEqual(
        [entry.target_id, entry.target_name, entry.details],
        [organizationId, '2026-01-01', { fields: ['EUR', 'GBP'] }],
      )
    })

    it('loses none of those that are set at the same time', async () => {
      const codes = ['EUR', 'GBP', 'JPY', 'CHF']
      const orders = codes.map((_, turn) => [...codes.slice(turn), ...codes.slice(0, turn)])
      const answers = await Promise.all(
        orders.map((order, turn) => set(Object.fromEntries(order.map((one) => [one, turn + 1])))),
      )
      deepEqual(
        answers.map(({ status }) => status),
        [200, 200, 200, 200],
      )
      const rates = await Promise.all(codes.map(async (one) => (await rateOf(one)).rate))
      equal(new Set(rates).size, 1, 'all are of one request')
    })
  })

  it('are every field of money, each of which has a currency beside it', () => {
    for (const { entity, fields } of Object.values(kinds))
      if (Object.values(fields).some(({ type }) => type === 'money'))
        equal(fields.currency?.type, 'currency', entity)
  })
})
