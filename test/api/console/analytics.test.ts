import assert from 'node:assert/strict'
import { DASHBOARDS } from '../../../db/model/analytics/dashboards.ts'
import { METRICS } from '../../../db/model/analytics/metrics/index.ts'
import { analyticsRows, insertAnalyticsRows } from '../../support/analytics-rows.ts'
import { textOf, type Visitor, visit } from '../../support/console.ts'
import { assertEscaped, EVIL } from '../../support/markup.ts'
import { withApi } from '../../support/with-api.ts'

describe('analytics in the console', () => {
  const suite = withApi()
  let owner: Visitor
  let member: Visitor

  before(async () => {
    owner = await visit(suite.db, suite.api)
    member = await visit(suite.db, suite.api, 'member')
    const make = async (path: string, body: object) =>
      (await suite.api.request('POST', `/v1${path}`, { body })).body
    await make('/pipelines', { name: 'partners', preset: 'pipedrive' })
    const incoming = await make('/webhooks/incoming', { name: 'Form' })
    const outgoing = await make('/webhooks/outgoing', {
      name: 'Billing',
      url: 'https://example.com/hook',
      events: ['deal.won'],
    })
    const rows = analyticsRows(suite.api.organizationId, Date.now(), 150)
    for (const row of rows.incoming_logs!) row.webhook_id = incoming.id
    // The list of deliveries also has those of tests, which no metric counts.
    for (const row of rows.deliveries!) Object.assign(row, { webhook_id: outgoing.id, test: false })
    await suite.db.asOwner((client) => insertAnalyticsRows(client, rows))
  })

  const unescaped = (text: string) => text.replaceAll('&amp;', '&')
  /** The numbers of a page that lead to what they were counted of. */
  const linksIn = (html: string) =>
    [...html.matchAll(/<a href="(\/(?:records|runs|settings)[^"]*)">([\d,]+)<\/a>/g)].map(
      ([, href, count]) => ({ href: unescaped(href!), count: count! }),
    )
  const countOf = (html: string) => /([\d,]+) in all/.exec(html)?.[1]

  it('shows each dashboard to members, for any period, in less than 60 KB', async () => {
    for (const { name, charts } of DASHBOARDS)
      for (const period of ['', '?last=7d', '?last=365d', '?from=2020-01-01&to=2020-12-31']) {
        const { status, html } = await member.get(`/analytics/${name}${period}`)
        assert.equal(status, 200, textOf(html))
        for (const { title } of charts) assert.ok(html.includes(title), `${name}: ${title}`)
        assert.ok(Buffer.byteLength(html) < 60_000, `${name}${period}: ${Buffer.byteLength(html)} bytes`)
        assert.doesNotMatch(html, /NaN|undefined|Infinity/)
      }
  })

  it('says why a period is refused, and keeps it', async () => {
    const { status, html } = await owner.get('/analytics/pipeline?from=2026-13-01')
    assert.equal(status, 422)
    assert.match(html, /role="alert"/)
    assert.match(html, /value="2026-13-01"/)
    assert.equal((await owner.get('/analytics/explore?metric=nothing')).status, 422)
  })

  it('draws a column for each bucket, whose heights are the values', async () => {
    const { html } = await owner.get(
      '/analytics/explore?metric=contacts.created&interval=month&from=2019-01-01&to=2019-04-30',
    )
    assert.match(html, /<svg viewBox="0 0 40 100"/)
    assert.match(html, /<title>Jan 2019: 0<\/title>/)
    const { body } = await suite.api.request('POST', '/v1/analytics/query', {
      body: { metric: 'contacts.created', interval: 'week', last: '30d' },
    })
    const page = await owner.get('/analytics/explore?metric=contacts.created&interval=week&last=30d')
    const [, path] = /<path class="column c0" d="([^"]+)"/.exec(page.html)!
    const heights = [...path!.matchAll(/v-([\d.]+)h-7z/g)].map(([, height]) => Number(height))
    const values = body.rows.map(({ value }: { value: number }) => value).filter((value: number) => value > 0)
    const scale = heights[0]! / values[0]!
    assert.deepEqual(
      heights.map((height) => Math.round(height / scale)),
      values,
    )
  })

  for (const { name, source, measure } of METRICS.filter((one) => one.measure.type === 'count'))
    it(`leads from each number of ${name} to the list of what it counts`, async () => {
      assert.ok(measure)
      const views = [
        ...Object.keys(source.dimensions).map((dimension) => `group_by=${dimension}`),
        'interval=week',
      ]
      let seen = 0
      for (const view of views) {
        const { status, html } = await owner.get(`/analytics/explore?metric=${name}&${view}&last=60d`)
        assert.equal(status, 200, textOf(html))
        const links = linksIn(html)
        for (const { href } of links.slice(0, 3)) {
          // Lists compare text without regard to case, where groups are apart.
          const same = links.filter((one) => one.href.toLowerCase() === href.toLowerCase())
          const expected = same.reduce((sum, { count }) => sum + Number(count.replaceAll(',', '')), 0)
          const list = await owner.get(href)
          assert.equal(countOf(list.html), String(expected), `${view}: ${href}`)
          seen++
        }
      }
      assert.ok(seen > 0)
    })

  it('saves charts into reports, shows them for a period, and removes them', async () => {
    const explore = '/analytics/explore?metric=runs.count&interval=day&group_by=status&filter.status=failed'
    const save = (fields: Record<string, string>) =>
      member.submit(explore, '/analytics/reports/charts', fields)
    const saved = await save({ title: EVIL, name: EVIL })
    assert.match(saved.location!, /^\/analytics\/reports\/[\w-]{36}\?done=saved$/, textOf(saved.html))
    const path = saved.location!.split('?')[0]!
    const id = path.split('/').at(-1)!
    assert.equal((await save({ title: 'Second', report_id: id })).location, `${path}?done=saved`)
    const { body } = await suite.api.request('GET', `/v1/analytics/reports/${id}`)
    assert.deepEqual(
      body.charts.map(({ title, query }: { title: string; query: { filter: object } }) => [
        title,
        query.filter,
      ]),
      [
        [EVIL, { status: 'failed' }],
        ['Second', { status: 'failed' }],
      ],
    )
    for (const page of [path, '/analytics/reports', explore]) assertEscaped((await owner.get(page)).html)
    const shown = await owner.get(`${path}?last=7d`)
    const [, details] = /href="(\/analytics\/explore[^"]+)"/.exec(shown.html)!
    assert.equal((await owner.get(unescaped(details!))).status, 200)
    assert.match(unescaped(details!), /filter\.status=failed/)
    assert.equal((await owner.get(`${path}?last=long`)).status, 422)
    const renamed = await owner.submit(path, path, { name: 'Weekly', description: 'For Mondays' })
    assert.equal(renamed.location, `${path}?done=saved`)
    const removed = await owner.submit(path, `${path}/remove-chart`, {})
    assert.equal(removed.location, `${path}?done=saved`, textOf(removed.html))
    assert.doesNotMatch((await owner.get(path)).html, /&lt;script/)
    const refused = await save({ title: '', report_id: id })
    assert.equal(refused.status, 422)
    assert.equal((await owner.submit(path, `${path}/delete`, {})).location, '/analytics/reports?done=removed')
    assert.match((await owner.get('/analytics/reports')).html, /No report yet/)
  })
})
