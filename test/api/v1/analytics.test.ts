import assert from 'node:assert/strict'
import type { Scope } from '../../../db/model/access/scopes.ts'
import { DASHBOARDS } from '../../../db/model/analytics/dashboards.ts'
import { METRIC_NAMES } from '../../../db/model/analytics/metrics/index.ts'
import { createKey } from '../../support/api.ts'
import { createOrganization } from '../../support/database.ts'
import { withApi } from '../../support/with-api.ts'

describe('/v1/analytics', () => {
  const suite = withApi()
  const query = (body: object, key?: string) =>
    suite.api.request('POST', '/v1/analytics/query', { body, ...(key && { key }) })
  const create = async (entity: string, ...records: object[]) => {
    for (const body of records) {
      const answer = await suite.api.request('POST', `/v1/objects/${entity}`, { body })
      assert.equal(answer.status, 201)
    }
  }

  before(async () => {
    await create(
      'deals',
      { name: 'A', amount: '1250.50', currency: 'EUR', stage: 'won' },
      { name: 'B', amount: '0.25', currency: 'EUR', stage: 'won' },
      { name: 'C', amount: '80', currency: 'CHF', stage: 'won' },
      { name: 'D', amount: '99', currency: 'EUR', stage: 'lost' },
      { name: 'E', amount: '200', currency: 'EUR', stage: 'proposal' },
    )
    await create('contacts', { email: 'ada@example.com', lead_status: 'new' })
  })

  it('computes a metric for the period, by currency and by group', async () => {
    const { status, body } = await query({ metric: 'deals.won_value' })
    assert.equal(status, 200)
    assert.deepEqual(body.rows, [
      { bucket: null, group: {}, other: false, currency: 'CHF', value: '80.00' },
      { bucket: null, group: {}, other: false, currency: 'EUR', value: '1250.75' },
    ])
    assert.equal(body.total, null)
    assert.deepEqual(body.totals, [
      { currency: 'CHF', value: '80.00' },
      { currency: 'EUR', value: '1250.75' },
    ])
    const rate = await query({ metric: 'deals.win_rate', last: '1d', filter: { currency: ['EUR', 'USD'] } })
    assert.equal(rate.body.total, 66.67)
    const open = await query({ metric: 'deals.weighted_value', group_by: ['stage'] })
    assert.deepEqual(open.body.rows, [
      { bucket: null, group: { stage: 'proposal' }, other: false, currency: 'EUR', value: '100.00' },
    ])
    assert.deepEqual([open.body.total, open.body.from], ['100.00', null])
  })

  it('converts the total of money into the currency of the organization, by its exchange rates', async () => {
    const { db } = suite
    const { key } = await createKey(db, await createOrganization(db, { settings: { currency: 'EUR' } }))
    const send = async (method: string, path: string, body: object) => {
      const answer = await suite.api.request(method, `/v1${path}`, { body, key })
      assert.ok(answer.status < 300, JSON.stringify(answer.body))
    }
    const converted = async (asked: object) => (await query(asked, key)).body.converted
    assert.deepEqual(await converted({ metric: 'deals.open_value' }), { currency: 'EUR', value: '0.00' })
    assert.deepEqual(await converted({ metric: 'deals.won_average' }), { currency: 'EUR', value: null })
    await send('PUT', '/exchange-rates', { rates: { CHF: '1.05', USD: '0.333' } })
    for (const [amount, currency, stage] of [
      ['100.10', 'EUR', 'lead'],
      ['10', 'CHF', 'lead'],
      ['0.10', 'USD', 'proposal'],
      ['30', 'EUR', 'won'],
      ['10', 'USD', 'won'],
      ['1', 'USD', 'won'],
    ])
      await send('POST', '/objects/deals', { name: 'Loom', amount, currency, stage })
    const open = { metric: 'deals.open_value' }
    assert.deepEqual(await converted(open), { currency: 'EUR', value: '110.63' })
    assert.deepEqual(await converted({ ...open, group_by: ['stage'] }), { currency: 'EUR', value: '110.63' })
    assert.deepEqual(await converted({ ...open, filter: { currency: 'CHF' } }), {
      currency: 'EUR',
      value: '10.50',
    })
    assert.deepEqual(await converted({ metric: 'deals.weighted_value' }), { currency: 'EUR', value: '11.08' })
    assert.deepEqual(await converted({ metric: 'deals.won_average' }), { currency: 'EUR', value: '11.22' })
    assert.equal('converted' in (await query({ metric: 'deals.won' }, key)).body, false)
    // 34 dinars and 4 thousandths: the average has three decimals, and is rounded once.
    const dinar = await createKey(db, await createOrganization(db, { settings: { currency: 'KWD' } }))
    for (const amount of ['10.005', '24'])
      await suite.api.request('POST', '/v1/objects/deals', {
        body: { name: 'Loom', amount, currency: 'KWD', stage: 'won' },
        key: dinar.key,
      })
    const { body: average } = await query({ metric: 'deals.won_average' }, dinar.key)
    assert.deepEqual(average.converted, { currency: 'KWD', value: '17.003' })
    await send('POST', '/objects/deals', { name: 'Loom', amount: '5', currency: 'AOA' })
    assert.equal(await converted(open), null)
  })

  it('fills each bucket, in a time zone, and follows a change at once', async () => {
    const day = new Date().toISOString().slice(0, 10)
    const asked = {
      metric: 'contacts.created',
      interval: 'hour',
      from: day,
      to: day,
      time_zone: 'Asia/Kolkata',
    }
    const first = await query({ ...asked, time_zone: 'UTC' })
    assert.equal(first.body.rows.length, 24)
    assert.equal(first.body.rows[0].bucket, `${day}T00:00:00.000Z`)
    assert.deepEqual([first.body.total, first.body.interval], [1, 'hour'])
    const { body } = await query(asked)
    assert.equal(body.rows[0].bucket.slice(14), '30:00.000Z')
    const { body: made } = await suite.api.request('POST', '/v1/objects/contacts', {
      body: { email: 'b@x.ch' },
    })
    assert.equal((await query({ ...asked, time_zone: 'UTC' })).body.total, 2)
    await suite.api.request('DELETE', `/v1/objects/contacts/${made.id}`)
    assert.equal((await query({ ...asked, time_zone: 'UTC' })).body.total, 1)
  })

  it('is of the organization, in its time zone and with its retention', async () => {
    const { db } = suite
    const other = await createOrganization(db, {
      settings: { currency: 'JPY', timezone: 'Asia/Tokyo', run_retention_days: 10 },
    })
    const { key } = await createKey(db, other)
    const { body } = await query({ metric: 'deals.won_value', interval: 'month', last: '1d' }, key)
    assert.deepEqual([body.total, body.totals], ['0.00', [{ currency: 'JPY', value: '0.00' }]])
    assert.deepEqual([body.time_zone, body.rows[0].bucket.slice(10)], ['Asia/Tokyo', 'T15:00:00.000Z'])
    const runs = await query({ metric: 'runs.count' }, key)
    const age = Date.parse(runs.body.to) - Date.parse(runs.body.kept_since)
    assert.equal(age, 10 * 86_400_000)
  })

  it('refuses what it cannot answer, all at once, each with what to write instead', async () => {
    const id = '019a0000-0000-7000-8000-000000000001'
    const { status, body } = await query({
      metric: 'deals.won_vale',
      group_by: ['stage'],
      filter: { stage: 'won' },
      colour: 1,
      from: 'yesterday',
      to: '2026-13-01',
      interval: 'dayly',
      time_zone: 'Mars',
      limit: 0,
    })
    assert.equal(status, 422)
    const at = (detail: { loc: string[] }[]) => detail.map(({ loc }) => loc.slice(1).join('.')).sort()
    assert.deepEqual(at(body.detail), ['colour', 'from', 'interval', 'limit', 'metric', 'time_zone', 'to'])
    const hints: Record<string, string> = Object.fromEntries(
      body.detail.map(({ loc, hint }: { loc: string[]; hint?: string }) => [loc.at(-1), hint]),
    )
    assert.equal(hints.metric, 'did you mean deals.won_value?')

    const wrong = async (asked: object, where: string, what: RegExp) => {
      const { status, body } = await query({ metric: 'deals.won', ...asked })
      assert.equal(status, 422)
      const [first] = body.detail
      assert.deepEqual(at(body.detail), [where])
      assert.match(`${first.msg}; ${first.hint}`, what)
    }
    await wrong({ group_by: ['stge'] }, 'group_by.0', /has no dimension stge; did you mean stage\?$/)
    await wrong({ group_by: ['stage', 'stage'] }, 'group_by.1', /duplicate/)
    await wrong({ group_by: ['colour'] }, 'group_by.0', /has no dimension colour; one of owner_id, stage/)
    await wrong({ filter: { stage: 'wo' } }, 'filter.stage', /cannot be wo; did you mean won/)
    await wrong({ filter: { stage: 'paid' } }, 'filter.stage', /cannot be paid; one of lead, qualified/)
    await wrong({ filter: { owner_id: 'me' } }, 'filter.owner_id', /must be an id/)
    await wrong({ filter: { "stage = '' or true --": 'x' } }, "filter.stage = '' or true --", /no dimension/)
    await wrong({ from: '2026-02-01', to: '2026-01-01' }, 'from', /before the end/)
    await wrong({ from: '2026-02-01', last: '7d' }, 'last', /instead of from/)
    await wrong({ last: 'a week' }, 'last', /a duration, such as 24h or 7d/)
    await wrong(
      { interval: 'hour', last: '365d' },
      'interval',
      /more than 1,000 hours; use a longer interval/,
    )
    await wrong(
      { interval: 'day', last: '700d', group_by: ['stage'], limit: 50 },
      'limit',
      /at most 1[23] groups/,
    )
    assert.equal((await query({ metric: 'deals.won', filter: { owner_id: [id, null] } })).status, 200)
  })

  it('answers odd texts and far periods without an error of the service', async () => {
    const asked = { metric: 'contacts.created', group_by: ['lead_source'] }
    for (const lead_source of ['', '%', "';--", '\u0000', '\ud800', '{}', 'null', 'x'.repeat(255)]) {
      const { status } = await query({ ...asked, filter: { lead_source } })
      assert.ok(status === 200 || status === 422, `${JSON.stringify(lead_source)}: ${status}`)
    }
    for (const name of ['__proto__', 'constructor', 'toString'])
      assert.equal((await query({ metric: name, group_by: [name] })).status, 422)
    for (const period of [
      { from: '0001-01-02', to: '9999-12-29' },
      { last: '9999999999d' },
      { to: '0001-02-03' },
      { from: '9999-12-29', to: '9999-12-29' },
    ])
      for (const metric of ['contacts.created', 'runs.count']) {
        const { status, body } = await query({ metric, ...period })
        assert.equal(status, 200, JSON.stringify([period, body]))
      }
  })

  it('has a dashboard for each subject, for any period', async () => {
    for (const { name, charts } of DASHBOARDS) {
      const { status, body } = await suite.api.request(
        'GET',
        `/v1/analytics/${name}?last=7d&time_zone=Europe/Zurich`,
      )
      assert.equal(status, 200)
      assert.deepEqual(
        body.charts.map((chart: { name: string }) => chart.name),
        charts.map((chart) => chart.name),
      )
      for (const chart of body.charts) {
        assert.equal(chart.time_zone, 'Europe/Zurich')
        // A chart by group has no rows where there are no groups.
        if (chart.interval && chart.group_by.length === 0)
          assert.equal(new Set(chart.rows.map((row: { bucket: string }) => row.bucket)).size, 8)
      }
    }
    const { body } = await suite.api.request('GET', '/v1/analytics/pipeline')
    const chart = (name: string) => body.charts.find((one: { name: string }) => one.name === name)
    assert.deepEqual([chart('open').total, chart('won').total, chart('win_rate').total], [1, 3, 75])
    const wrong = await suite.api.request('GET', '/v1/analytics/pipeline?last=x&interval=hour&from=1')
    assert.deepEqual(
      wrong.body.detail.map(({ loc }: { loc: string[] }) => loc),
      [
        ['query', 'from'],
        ['query', 'last'],
      ],
    )
  })

  it('is what a test of the node needs the scope for, and what its preview tells', async () => {
    const test = async (scopes: Scope[], config: object) => {
      const { key } = await createKey(suite.db, suite.api.organizationId, { scopes })
      const body = { node_type: 'analytics_query', config }
      return suite.api.request('POST', '/v1/workflows/nodes/test', { body, key })
    }
    const config = { metric: 'deals.won', group_by: ['stage'], interval: 'week' }
    const refused = await test(['workflows:run', 'deals:read'], config)
    assert.equal(refused.status, 403)
    assert.match(refused.body.error.message, /analytics:read/)
    const { body } = await test(['workflows:run', 'analytics:read'], config)
    assert.deepEqual(body.preview.calls, ['querying deals.won by stage per week'])
    assert.equal(body.preview.effect, 'read')
    const wrong = await test(['workflows:run', 'analytics:read'], { metric: 'deals.wonn' })
    assert.deepEqual(wrong.body.preview.warnings, ['config.metric: there is no metric deals.wonn.'])
  })

  it('lists its metrics', async () => {
    const { body } = await suite.api.request('GET', '/v1/analytics/metrics')
    assert.deepEqual(
      body.data.map(({ name }: { name: string }) => name),
      METRIC_NAMES,
    )
    const formulas = new Map(body.data.map(({ name, formula }: Record<string, string>) => [name, formula]))
    assert.equal(
      formulas.get('deals.weighted_value'),
      'sum(amount * probability) / 100 of deals where closed_at is null',
    )
    assert.match(
      String(formulas.get('runs.duration_average')),
      /^average\(seconds\(started_at, ended_at\)\) of /,
    )
    const [first] = body.data
    assert.deepEqual(
      first.dimensions.map(({ name }: { name: string }) => name),
      ['owner_id', 'stage', 'pipeline', 'outcome', 'deal_type', 'source', 'currency'],
    )
  })
})
