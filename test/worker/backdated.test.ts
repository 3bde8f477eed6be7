import assert from 'node:assert/strict'
import { createKey, startApi, type TestApi } from '../support/api.ts'
import { createTestDatabase, type TestDatabase } from '../support/database.ts'
import { importsOf } from '../support/imports.ts'
import { startWorker, type TestWorker } from '../support/worker.ts'

/** Times of the past: deals that were created and closed before they came here. */
describe('records with times of the past', () => {
  let db: TestDatabase
  let api: TestApi
  let worker: TestWorker
  let imports: ReturnType<typeof importsOf>

  before(async () => {
    db = await createTestDatabase()
    api = await startApi(db)
    worker = await startWorker(db, { secretsKey: api.secretsKey })
    imports = importsOf(api)
  })
  after(async () => {
    await worker?.stop()
    await api?.close()
    await db?.drop()
  })

  const create = (body: object, key?: string) =>
    api.request('POST', '/v1/objects/deals', { body, ...(key && { key }) })
  const deals = async (query: string) => (await api.request('GET', `/v1/objects/deals?${query}`)).body.data
  const wonBy = async (metric: string) => {
    const body = { metric, from: '2019-01-01', to: '2021-12-31', interval: 'month' }
    const answer = await api.request('POST', '/v1/analytics/query', { body })
    assert.equal(answer.status, 200, JSON.stringify(answer.body))
    return answer.body
  }

  it('are created so, with the scope for it', async () => {
    const body = {
      name: 'Past A',
      stage: 'won',
      amount: '100',
      created_at: '2020-02-01T09:00:00+01:00',
      closed_at: '2020-02-11T08:00:00Z',
    }
    const { key } = await createKey(db, api.organizationId, { scopes: ['deals:write'] })
    const refused = await create(body, key)
    assert.deepEqual([refused.status, refused.body.error.type], [403, 'insufficient_scope'])
    assert.match(refused.body.error.message, /records:backdate/)
    const inBatch = await api.request('POST', '/v1/objects/deals/batch', {
      key,
      body: { operations: [{ op: 'create', data: body }] },
    })
    assert.equal(inBatch.status, 403)

    const made = await create(body)
    assert.equal(made.status, 201, JSON.stringify(made.body))
    assert.equal(made.body.created_at, '2020-02-01T08:00:00.000Z')
    assert.equal(made.body.closed_at, '2020-02-11T08:00:00.000Z')
    const read = await api.request('GET', `/v1/objects/deals/${made.body.id}`)
    assert.deepEqual(read.body, made.body)
    const listed = await deals('created_at[lt]=2020-03-01&closed_at[lt]=2020-03-01&fields=name')
    assert.deepEqual(
      listed.map(({ name }: { name: string }) => name),
      ['Past A'],
    )
  })

  it('are refused in the future, and closed while they are open', async () => {
    const later = new Date(Date.now() + 86_400_000).toISOString()
    const future = await create({ name: 'X', stage: 'won', created_at: later, closed_at: later })
    assert.equal(future.status, 422)
    assert.deepEqual(
      future.body.detail.map(({ loc, msg }: { loc: string[]; msg: string }) => [loc.join('.'), msg]),
      [
        ['body.closed_at', 'must not be in the future'],
        ['body.created_at', 'must not be in the future'],
      ],
    )
    const open = await create({ name: 'X', closed_at: '2020-01-01' })
    assert.equal(open.status, 422)
    assert.match(open.body.detail[0].msg, /the deal is open/)
    const patched = await api.request('PATCH', `/v1/objects/deals/${(await create({ name: 'Y' })).body.id}`, {
      body: { created_at: '2020-01-01' },
    })
    assert.deepEqual([patched.status, patched.body.detail[0].type], [422, 'read_only'])
  })

  it('are corrected by an upsert, and the history says so', async () => {
    const { body: made } = await create({ name: 'Past B', external_id: 'past-b', stage: 'lost' })
    const upsert = (data: object) =>
      api.request('POST', '/v1/objects/deals/batch', {
        body: { operations: [{ op: 'upsert', by: 'external_id', data: { external_id: 'past-b', ...data } }] },
      })
    const { body } = await upsert({ created_at: '2019-05-01T00:00:00Z', closed_at: '2019-06-01T00:00:00Z' })
    const { record } = body.results[0]
    assert.deepEqual(
      [record.id, record.created_at, record.closed_at, record.version],
      [made.id, '2019-05-01T00:00:00.000Z', '2019-06-01T00:00:00.000Z', 2],
    )
    const stored = await api.request('GET', `/v1/objects/deals/${made.id}`)
    assert.deepEqual(stored.body, record)
    const history = await api.request('GET', `/v1/objects/deals/${made.id}/history?limit=1`)
    assert.deepEqual(history.body.data[0].changes.created_at, {
      from: made.created_at,
      to: '2019-05-01T00:00:00.000Z',
    })
    // A closed deal keeps its time, whatever else changes; one that is opened again has none.
    const renamed = await upsert({ name: 'Past B2', closed_at: null })
    assert.equal(renamed.body.results[0].record.closed_at, '2019-06-01T00:00:00.000Z')
    const reopened = await upsert({ stage: 'lead' })
    assert.equal(reopened.body.results[0].record.closed_at, null)
  })

  it('are imported from the columns of other systems, and analytics show the past', async () => {
    const file = [
      'Deal Name,Stage,Amount,Currency,Create Date,Close Date',
      'Hub Won,closedwon,1000,EUR,2020-01-10 10:00,2020-03-20 10:00',
      'Hub Open,proposal,500,EUR,2020-01-10 10:00,2031-01-31 10:00',
      'Hub Odd,closedwon,500,EUR,2020-01-10 10:00,2031-01-31 10:00',
    ].join('\n')
    const { body } = await imports.prepare({ entity: 'deals' }, file)
    const proposed = body.file.columns.map(({ proposed }: { proposed: string }) => proposed)
    assert.deepEqual(proposed, ['name', 'stage', 'amount', 'currency', 'created_at', 'close_date'])
    // Write on the kind is enough for an import.
    const { key } = await createKey(db, api.organizationId, { scopes: ['deals:write'] })
    await api.request('POST', `/v1/imports/${body.id}/start`, { body: {}, key })
    const done = await imports.ended(body.id)
    assert.deepEqual([done.progress.created, done.progress.failed], [2, 1], JSON.stringify(done))
    assert.match(await imports.errors(body.id), /line 4: Close Date: must not be in the future/)
    const data = await deals('name[starts_with]=Hub&sort=name&order=asc')
    assert.deepEqual(
      data.map((deal: Record<string, string>) => [
        deal.name,
        deal.created_at,
        deal.closed_at,
        deal.expected_close_date,
      ]),
      [
        ['Hub Open', '2020-01-10T10:00:00.000Z', null, '2031-01-31'],
        ['Hub Won', '2020-01-10T10:00:00.000Z', '2020-03-20T10:00:00.000Z', '2020-03-20'],
      ],
    )

    const pipedrive = [
      'Deal - Title,Deal - Stage,Deal - Deal created,Deal - Won time,Deal - Lost time',
      'Pipe Won,Won,2021-02-01 00:00:00,2021-02-03 00:00:00,',
      'Pipe Lost,Lost,2021-02-01 00:00:00,,2021-02-05 00:00:00',
      'Pipe Open,Proposal,2021-02-01 00:00:00,2021-02-03 00:00:00,',
    ].join('\n')
    const second = await imports.run({ entity: 'deals' }, pipedrive)
    assert.deepEqual([second.progress.created, second.progress.failed], [2, 1], JSON.stringify(second))
    assert.match(await imports.errors(second.id), /Deal - Won time: the deal is open/)

    const value = await wonBy('deals.won_value')
    const rows = value.rows.filter((row: { value: unknown }) => Number(row.value) > 0)
    assert.deepEqual(
      rows.map((row: { bucket: string; value: string }) => [row.bucket.slice(0, 7), row.value]),
      [
        ['2020-02', '100.00'],
        ['2020-03', '1000.00'],
      ],
    )
    // 10 days, 70 days, and 2 days.
    const days = await api.request('POST', '/v1/analytics/query', {
      body: { metric: 'deals.days_to_close', from: '2019-01-01', to: '2021-12-31' },
    })
    assert.match(JSON.stringify(days.body), /27\.3/)
  })

  it('do not make the time to close negative', async () => {
    await create({ name: 'No creation', stage: 'won', closed_at: '2018-01-01T00:00:00Z' })
    const days = await api.request('POST', '/v1/analytics/query', {
      body: { metric: 'deals.days_to_close', from: '2018-01-01', to: '2018-12-31' },
    })
    assert.equal(days.status, 200)
    assert.doesNotMatch(JSON.stringify(days.body), /"value":"?-\d/)
  })

  it('are written by a workflow, whose test needs the scope', async () => {
    const { key } = await createKey(db, api.organizationId, { scopes: ['workflows:run', 'deals:write'] })
    const body = {
      node_type: 'crm_manager',
      config: {
        operation: 'create',
        entity: 'deals',
        fields: { name: 'By node', created_at: '2020-01-01T00:00:00Z' },
      },
      confirm: true,
    }
    const refused = await api.request('POST', '/v1/workflows/nodes/test', { body, key })
    assert.equal(refused.status, 403, JSON.stringify(refused.body))
    const done = await api.request('POST', '/v1/workflows/nodes/test', { body })
    assert.equal(done.body.output?.created_at, '2020-01-01T00:00:00.000Z', JSON.stringify(done.body))
  })
})
