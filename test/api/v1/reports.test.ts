import assert from 'node:assert/strict'
import type { Scope } from '../../../api/http/scopes.ts'
import { ANALYTICS } from '../../../workflows/shared/limits.ts'
import { createKey } from '../../support/api.ts'
import { withApi } from '../../support/with-api.ts'

// biome-ignore lint/suspicious/noExplicitAny: a test reads whatever JSON came back
type Json = any

const PATH = '/v1/analytics/reports'
const OPEN = { title: 'Open', query: { metric: 'deals.open', group_by: ['stage'] } }
const CREATED = {
  title: 'New by hour',
  query: { metric: 'deals.created', interval: 'hour', last: '24h' },
}

describe('reports', () => {
  const on = withApi()
  const send = (method: string, path: string, body?: object, key?: string, headers = {}) =>
    on.api.request(method, path, { ...(body && { body }), ...(key && { key }), headers })
  const create = async (charts: object[], name = 'Sales') => {
    const answer = await send('POST', PATH, { name, charts })
    assert.equal(answer.status, 201, JSON.stringify(answer.body))
    return answer.body
  }
  const keyWith = async (...scopes: Scope[]) =>
    (await createKey(on.db, on.api.organizationId, { scopes })).key

  it('compute their charts when they are asked to, also for another period', async () => {
    for (const [name, stage] of [
      ['Engine', 'proposal'],
      ['Wheel', 'lead'],
    ])
      await send('POST', '/v1/objects/deals', { name, stage })
    const { id } = await create([OPEN, { title: 'New', query: { metric: 'deals.created', last: '1h' } }])
    const plain = await send('GET', `${PATH}/${id}`)
    assert.deepEqual(
      plain.body.charts.map(({ title, result, problem }: Json) => [title, result, problem]),
      [
        ['Open', null, null],
        ['New', null, null],
      ],
    )
    const now = (await send('GET', `${PATH}/${id}?results=true`)).body.charts
    assert.deepEqual(
      now.map(({ result }: Json) => result.total),
      [2, 2],
    )
    const past = (await send('GET', `${PATH}/${id}?results=true&from=2020-01-01&to=2020-12-31`)).body.charts
    assert.deepEqual(
      past.map(({ result, query }: Json) => [result.total, query.from ?? null, query.last ?? null]),
      [
        [2, null, null],
        [0, '2020-01-01', null],
      ],
    )
  })

  it('show why a chart has no result, beside the results of the others', async () => {
    const { id, charts } = await create([OPEN, CREATED])
    const days = Math.ceil(ANALYTICS.buckets / 24) + 1
    const from = new Date(Date.now() - days * 86_400_000).toISOString()
    // As if it had been saved when the period was shorter.
    const older = [charts[0], { ...charts[1], query: { ...charts[1].query, last: undefined, from } }]
    await on.db
      .system('reports')
      .where({ id })
      .update({ charts: JSON.stringify(older) })
    const { status, body } = await send('GET', `${PATH}/${id}?results=true`)
    assert.equal(status, 200, JSON.stringify(body))
    assert.equal(body.charts[0].problem, null)
    assert.equal(body.charts[1].result, null)
    assert.match(body.charts[1].problem, /more than 1,000 hours/)
  })

  it('are changed with the version that was read, and deleted', async () => {
    const made = await create([OPEN])
    const path = `${PATH}/${made.id}`
    const patch = { name: 'Renamed', charts: [{ title: 'Won', query: { metric: 'deals.won' } }] }
    const changed = await send('PATCH', path, patch, undefined, { 'If-Match': '"1"' })
    assert.deepEqual([changed.status, changed.body.version, changed.body.charts[0].title], [200, 2, 'Won'])
    assert.equal((await send('PATCH', path, patch, undefined, { 'If-Match': '"1"' })).status, 412)
    assert.ok((await send('GET', PATH)).body.data.some(({ name }: Json) => name === 'Renamed'))
    assert.equal((await send('DELETE', path)).status, 200)
    assert.equal((await send('GET', path)).status, 404)
  })

  it('are read by analytics:read, and written by analytics:write', async () => {
    const { id } = await create([OPEN])
    const reader = await keyWith('analytics:read')
    assert.equal((await send('GET', `${PATH}/${id}`, undefined, reader)).status, 200)
    for (const [method, path, body] of [
      ['POST', PATH, { name: 'x', charts: [OPEN] }],
      ['PATCH', `${PATH}/${id}`, { name: 'x' }],
      ['DELETE', `${PATH}/${id}`, undefined],
    ] as const)
      assert.equal((await send(method, path, body, reader)).status, 403, method)
    const writer = await keyWith('analytics:write')
    assert.equal((await send('PATCH', `${PATH}/${id}`, { name: 'x' }, writer)).status, 200)
  })

  it('refuse queries that cannot be computed, all problems at once', async () => {
    const charts = [
      { title: '', query: { metric: 'deals.wonn' } },
      { title: 'x', query: { metric: 'deals.won', group_by: ['colour'], interval: 'hour', last: '5000d' } },
    ]
    const refused = await send('POST', PATH, { name: 'x', charts, colour: 'red' })
    assert.equal(refused.status, 422)
    assert.deepEqual(refused.body.detail.map(({ loc }: Json) => loc.join('.')).toSorted(), [
      'body.charts.0.query.metric',
      'body.charts.0.title',
      'body.charts.1.query.group_by.0',
      'body.charts.1.query.interval',
      'body.colour',
    ])
    const { id } = await create([OPEN])
    const unused = await send('GET', `${PATH}/${id}?last=7d`)
    assert.deepEqual([unused.status, unused.body.detail[0].loc], [422, ['query', 'last']])
    const wrong = await send('GET', `${PATH}/${id}?results=true&last=soon`)
    assert.deepEqual([wrong.status, wrong.body.detail[0].loc], [422, ['query', 'last']])
  })
})
