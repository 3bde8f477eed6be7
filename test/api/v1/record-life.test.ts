import assert from 'node:assert/strict'
import { createKey } from '../../support/api.ts'
import { withApi } from '../../support/with-api.ts'

describe('restore, merge and history over HTTP', () => {
  const suite = withApi()

  const path = (id: string, rest = '') => `/v1/objects/contacts/${id}${rest}`
  const create = async (body: object) =>
    (await suite.api.request('POST', '/v1/objects/contacts', { body })).body
  const merge = (winner: string, from: string, headers: Record<string, string> = {}) =>
    suite.api.request('POST', path(winner, '/merge'), { body: { from }, headers })

  it('restores a deleted record once', async () => {
    const { id } = await create({ first_name: 'Ada', external_id: 'r1' })
    await suite.api.request('DELETE', path(id))
    assert.equal((await suite.api.request('GET', path(id))).status, 404)
    const stale = await suite.api.request('POST', path(id, '/restore'), { headers: { 'If-Match': '"1"' } })
    assert.equal(stale.status, 412)
    const { status, body, headers } = await suite.api.request('POST', path(id, '/restore'))
    assert.deepEqual([status, body.version, headers.get('etag')], [200, 3, '"3"'])
    assert.deepEqual((await suite.api.request('GET', path(id))).body, body)
    assert.equal((await suite.api.request('POST', path(id, '/restore'))).status, 404)
    assert.equal((await suite.api.request('POST', path(crypto.randomUUID(), '/restore'))).status, 404)
    assert.equal((await suite.api.request('POST', path('x', '/restore'))).status, 404)
  })

  it('answers an invalid id like an unknown one', async () => {
    const { id } = await create({ first_name: 'Ada' })
    const unknown = crypto.randomUUID()
    for (const [method, pathOf] of [
      ['GET', (id: string) => path(id)],
      ['PATCH', (id: string) => path(id)],
      ['DELETE', (id: string) => path(id)],
      ['POST', (id: string) => path(id, '/restore')],
      ['GET', (id: string) => path(id, '/history')],
      ['GET', (id: string) => path(id, '/companies')],
      ['POST', (other: string) => path(other, `/associations/contacts/${id}`)],
      ['POST', (other: string) => path(id, `/associations/companies/${other}`)],
      ['DELETE', (other: string) => path(id, `/associations/companies/${other}`)],
      ['GET', (id: string) => `/v1/runs/${id}`],
    ] as const) {
      const body = method === 'PATCH' ? { body: {} } : {}
      const [ill, well] = [
        await suite.api.request(method, pathOf('x'), body),
        await suite.api.request(method, pathOf(unknown), body),
      ]
      assert.deepEqual(
        [ill.status, { ...ill.body.error, request_id: '' }],
        [404, { ...well.body.error, request_id: '' }],
        `${method} ${pathOf('x')}`,
      )
    }
  })

  it('refuses a restore if an external_id or a unique value is in use', async () => {
    await suite.api.request('POST', '/v1/custom-fields/contacts', {
      body: { name: 'badge', type: 'text', label: 'Badge', unique: true },
    })
    const one = await create({ first_name: 'A', external_id: 'r2' })
    const two = await create({ first_name: 'B', custom_fields: { badge: '7' } })
    for (const { id } of [one, two]) await suite.api.request('DELETE', path(id))
    await create({ first_name: 'C', external_id: 'r2', custom_fields: { badge: '7' } })
    const first = await suite.api.request('POST', path(one.id, '/restore'))
    assert.deepEqual([first.status, first.body.error.param], [409, 'external_id'])
    const second = await suite.api.request('POST', path(two.id, '/restore'))
    assert.deepEqual([second.status, second.body.error.param], [409, 'custom_fields.badge'])
  })

  it('merges, and answers the id of the duplicate with merged_into', async () => {
    const winner = await create({ first_name: 'W' })
    const loser = await create({ last_name: 'L' })
    assert.equal((await merge(winner.id, winner.id)).status, 422)
    assert.equal((await merge(winner.id, crypto.randomUUID())).status, 404)
    assert.equal((await merge(crypto.randomUUID(), winner.id)).status, 404)
    assert.equal((await merge(winner.id, loser.id, { 'If-Match': '"2"' })).status, 412)
    const { status, body, headers } = await merge(winner.id, loser.id, { 'If-Match': '"1"' })
    assert.deepEqual([status, body.last_name, headers.get('etag')], [200, 'L', '"2"'])
    for (const [method, rest] of [
      ['GET', ''],
      ['DELETE', ''],
      ['POST', '/restore'],
      ['GET', '/history'],
      ['GET', '/companies'],
    ] as const) {
      const gone = await suite.api.request(method, path(loser.id, rest))
      assert.deepEqual([gone.status, gone.body.error.merged_into], [404, winner.id], `${method} ${rest}`)
    }
    const batch = await suite.api.request('POST', '/v1/objects/contacts/batch', {
      body: {
        operations: [
          { op: 'update', id: loser.id, data: { first_name: 'X' } },
          { op: 'update', id: crypto.randomUUID(), data: { first_name: 'X' } },
          { op: 'delete', id: loser.id },
        ],
      },
    })
    assert.deepEqual(
      batch.body.results.map(({ error }: { error: { merged_into?: string } }) => error.merged_into),
      [winner.id, undefined, winner.id],
    )
  })

  it('merges once with an Idempotency-Key', async () => {
    const winner = await create({ first_name: 'W' })
    const loser = await create({ last_name: 'L' })
    const headers = { 'Idempotency-Key': 'merge' }
    const first = await merge(winner.id, loser.id, headers)
    const second = await merge(winner.id, loser.id, headers)
    assert.deepEqual([second.status, second.body], [200, first.body])
  })

  it('shows the old value of a custom field with any name', async () => {
    const { id } = await create({ first_name: 'A', custom_fields: { x: 1 } })
    await suite.api.request('PATCH', path(id), { body: { custom_fields: { constructor: 'Bob' } } })
    await suite.api.request('PATCH', path(id), { body: { custom_fields: { constructor: null } } })
    const { body } = await suite.api.request('GET', path(id, '/history?limit=2'))
    assert.deepEqual(
      body.data.map(({ changes }: { changes: object }) => changes),
      [
        { 'custom_fields.constructor': { from: 'Bob', to: null } },
        { 'custom_fields.constructor': { from: null, to: 'Bob' } },
      ],
    )
  })

  it('lists every change with its actor, page by page', async () => {
    const { id } = await create({ first_name: 'A', custom_fields: { x: 1, y: 1 } })
    await suite.api.request('PATCH', path(id), {
      body: { first_name: 'B', custom_fields: { x: 2, y: null } },
    })
    await suite.api.request('PATCH', path(id), { body: { first_name: 'B' } })
    await suite.api.request('DELETE', path(id))
    const { status, body } = await suite.api.request('GET', path(id, '/history?limit=2'))
    assert.deepEqual([status, body.object, body.total, body.has_more], [200, 'list', 3, true])
    assert.deepEqual(
      body.data.map(({ action, version }: { action: string; version: number }) => [action, version]),
      [
        ['deleted', 3],
        ['updated', 2],
      ],
    )
    const me = await suite.api.request('GET', '/v1/me')
    const [, change] = body.data
    assert.deepEqual(change.changes, {
      first_name: { from: 'A', to: 'B' },
      'custom_fields.x': { from: 1, to: 2 },
      'custom_fields.y': { from: 1, to: null },
    })
    assert.equal(change.actor.type, 'key')
    assert.ok(JSON.stringify(me.body).includes(change.actor.id))
    assert.match(change.at, /^\d{4}-.*Z$/)
    const next = await suite.api.request('GET', path(id, `/history?limit=2&cursor=${body.next_cursor}`))
    assert.deepEqual(
      next.body.data.map(({ action }: { action: string }) => action),
      ['created'],
    )
    assert.equal(next.body.next_cursor, null)

    const oldest = await suite.api.request('GET', path(id, '/history?order=asc&limit=1'))
    assert.equal(oldest.body.data[0].action, 'created')
    const wrong = await suite.api.request(
      'GET',
      path(id, `/history?limit=2&cursor=${oldest.body.next_cursor}`),
    )
    assert.equal(wrong.status, 400)
    assert.equal((await suite.api.request('GET', path(id, '/history?sort=at'))).status, 422)
    assert.equal((await suite.api.request('GET', path(crypto.randomUUID(), '/history'))).status, 404)
  })

  it('reverts a record to a version, derived fields and custom fields too', async () => {
    const deals = (id: string, rest = '') => `/v1/objects/deals/${id}${rest}`
    const made = await suite.api.request('POST', '/v1/objects/deals', {
      body: {
        name: 'Engine',
        stage: 'won',
        closed_at: '2020-01-31T00:00:00Z',
        tags: ['a'],
        custom_fields: { x: 1, z: 1 },
      },
    })
    const { id, closed_at } = made.body
    for (const body of [
      { stage: 'lost', lost_reason: 'Price', custom_fields: { x: 2, y: 2 } },
      { name: 'Wheel', tags: [], custom_fields: { z: null } },
    ])
      await suite.api.request('PATCH', deals(id), { body })
    const revert = (version: number, headers = {}) =>
      suite.api.request('POST', deals(id, '/revert'), { body: { version }, headers })
    assert.equal((await revert(1, { 'If-Match': '"2"' })).status, 412)
    assert.deepEqual((await revert(9)).body.detail[0].loc, ['body', 'version'])
    const { status, body, headers } = await revert(1)
    assert.deepEqual([status, body.version, headers.get('etag')], [200, 4, '"4"'])
    const { name, stage, lost_reason, tags, custom_fields } = body
    assert.deepEqual(
      { name, stage, lost_reason, tags, custom_fields, closed_at: body.closed_at },
      {
        name: 'Engine',
        stage: 'won',
        lost_reason: null,
        tags: ['a'],
        custom_fields: { x: 1, z: 1 },
        closed_at,
      },
    )
    assert.equal((await revert(2)).body.name, 'Engine')
    const again = await revert(3)
    assert.deepEqual([again.body.name, again.body.stage, again.body.version], ['Wheel', 'lost', 6])
    assert.equal((await revert(3)).body.version, 6)
    const link = await suite.api.request('POST', '/v1/objects/companies', { body: { name: 'Acme' } })
    await suite.api.request('PATCH', deals(id), { body: { company_id: link.body.id } })
    const { key } = await createKey(suite.db, suite.api.organizationId, { scopes: ['deals:write'] })
    const refused = await suite.api.request('POST', deals(id, '/revert'), { body: { version: 6 }, key })
    assert.equal(refused.status, 403)
  })

  it('requires the scopes of the kind', async () => {
    const { id } = await create({ first_name: 'A' })
    const reader = await createKey(suite.db, suite.api.organizationId, { scopes: ['contacts:read'] })
    const stranger = await createKey(suite.db, suite.api.organizationId, { scopes: ['companies:write'] })
    const as = async (key: string, method: string, rest: string) =>
      (await suite.api.request(method, path(id, rest), { key })).status
    assert.equal(await as(reader.key, 'GET', '/history'), 200)
    assert.equal(await as(stranger.key, 'GET', '/history'), 403)
    assert.equal(await as(reader.key, 'POST', '/restore'), 403)
    assert.equal(await as(reader.key, 'POST', '/merge'), 403)
  })
})
