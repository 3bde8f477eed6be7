import assert from 'node:assert/strict'
import { selectByCondition } from '../../db/outgoing/when.ts'
import { compare } from '../../workflows/nodes/compare.ts'
import { startApi, type TestApi } from '../support/api.ts'
import { createTestDatabase, type TestDatabase } from '../support/database.ts'
import { importsOf } from '../support/imports.ts'
import { until } from '../support/until.ts'
import { startWorker, type TestWorker } from '../support/worker.ts'

describe('times without an offset, in an organization in Berlin', () => {
  let db: TestDatabase
  let api: TestApi
  let worker: TestWorker

  before(async () => {
    db = await createTestDatabase()
    api = await startApi(db)
    worker = await startWorker(db)
    await db.system.raw(
      `update organizations set settings = settings || '{"timezone": "Europe/Berlin"}' where id = ?`,
      [api.organizationId],
    )
  })
  after(async () => {
    await worker?.stop()
    await api?.close()
    await db?.drop()
  })

  const create = (kind: string, body: object) => api.request('POST', `/v1/objects/${kind}`, { body })
  const due = async (title: string, due_at: string) => {
    const { status, body } = await create('tasks', { title, due_at })
    assert.equal(status, 201, JSON.stringify(body))
    return body.due_at
  }
  const titles = async (query: string, status = 200) => {
    const answer = await api.request('GET', `/v1/objects/tasks?sort=title&order=asc&fields=title&${query}`)
    assert.equal(answer.status, status, JSON.stringify(answer.body))
    return answer.body.data?.map(({ title }: { title: string }) => title)
  }

  it('are local in creates and changes', async () => {
    assert.equal(await due('create', '2024-07-01'), '2024-06-30T22:00:00.000Z')
    assert.equal(await due('create', '2024-01-31T09:30'), '2024-01-31T08:30:00.000Z')
    assert.equal(await due('create', '2024-01-31T09:30:00Z'), '2024-01-31T09:30:00.000Z')
    const { body } = await create('tasks', { title: 'create' })
    const patched = await api.request('PATCH', `/v1/objects/tasks/${body.id}`, {
      body: { due_at: '2024-07-01' },
    })
    assert.equal(patched.body.due_at, '2024-06-30T22:00:00.000Z')
    const same = await api.request('PATCH', `/v1/objects/tasks/${body.id}`, {
      body: { due_at: '2024-07-01' },
    })
    assert.equal(same.body.version, 2)
  })

  it('follow the changes of clocks', async () => {
    // The clocks skip 02:30, and show it twice in October.
    assert.equal(await due('clock', '2024-03-31T02:30:00'), '2024-03-31T01:30:00.000Z')
    assert.equal(await due('clock', '2024-10-27T02:30:00'), '2024-10-27T00:30:00.000Z')
  })

  it('are local in custom fields', async () => {
    const definition = { name: 'met', type: 'datetime' }
    assert.equal((await api.request('POST', '/v1/custom-fields/tasks', { body: definition })).status, 201)
    const { body } = await create('tasks', { title: 'custom', custom_fields: { met: '2024-07-01' } })
    assert.equal(body.custom_fields?.met, '2024-06-30T22:00:00.000Z', JSON.stringify(body))
    assert.deepEqual(await titles('custom_fields.met=2024-07-01'), ['custom'])
    assert.deepEqual(await titles('custom_fields.met=2024-06-30'), [])
  })

  it('are local in filters, or in the time zone of the request', async () => {
    await due('f1', '2023-06-30T21:59:59.999Z')
    await due('f2', '2023-06-30T22:00:00Z')
    await due('f3', '2023-07-01T21:59:59.999Z')
    await due('f4', '2023-07-01T22:00:00Z')
    const range = 'due_at[between]=2023-06-29,2023-07-03'
    assert.deepEqual(await titles(`due_at=2023-07-01`), ['f2', 'f3'])
    assert.deepEqual(await titles(`due_at[lt]=2023-07-01&${range}`), ['f1'])
    assert.deepEqual(await titles(`due_at[lte]=2023-07-01&${range}`), ['f1', 'f2', 'f3'])
    assert.deepEqual(await titles(`due_at[gt]=2023-07-01&${range}`), ['f4'])
    assert.deepEqual(await titles(`due_at[gte]=2023-07-01T00:00&${range}`), ['f2', 'f3', 'f4'])
    assert.deepEqual(await titles(`due_at=2023-07-01&time_zone=UTC`), ['f3', 'f4'])
    assert.deepEqual(await titles(`due_at[ne]=2023-07-01&${range}`), ['f1', 'f4'])
    // A workflow that compares the same times takes the same ones.
    const { body } = await api.request('GET', `/v1/objects/tasks?sort=title&order=asc&${range}`)
    for (const operator of ['eq', 'ne', 'lt', 'lte', 'gt', 'gte'] as const)
      assert.deepEqual(
        await titles(`due_at[${operator}]=2023-07-01&${range}`),
        body.data
          .filter((task: { due_at: string }) => compare(task.due_at, operator, '2023-07-01', 'Europe/Berlin'))
          .map((task: { title: string }) => task.title),
        operator,
      )
    await titles('time_zone=Berlin', 422)
    // A day of 25 hours.
    await due('long', '2024-10-27T22:30:00Z')
    assert.deepEqual(await titles('due_at=2024-10-27&title=long'), ['long'])
  })

  it('are local in the conditions of outgoing webhooks', async () => {
    const { body } = await create('tasks', { title: 'condition', due_at: '2023-06-30T22:30:00Z' })
    const event = await db.system('events').where({ subject_id: body.id, name: 'task.created' }).first()
    const key = { organization_id: api.organizationId, event_id: event.id }
    const days = ['2023-06-30', '2023-07-01', '2023-07-02']
    const subscriptions = days.map((day) => ({ ...key, day, when: `{{ data.due_at == "${day}" }}` }))
    const { selected } = await selectByCondition(db.system, subscriptions)
    assert.deepEqual(
      selected.map(({ day }) => day),
      ['2023-07-01'],
    )
  })

  it('are named by relative days', async () => {
    const at = (days: number) => new Date(Date.now() + days * 86_400_000).toISOString()
    for (const [title, days] of [
      ['r-9', -9],
      ['r-2', -2],
      ['r0', 0],
      ['r+2', 2],
    ] as const)
      await due(title, at(days))
    const found = async (query: string) => (await titles(`title[starts_with]=r&${query}`)).sort()
    assert.deepEqual(await found('due_at=today'), ['r0'])
    assert.deepEqual(await found('due_at=last_7_days'), ['r-2', 'r0'])
    assert.deepEqual(await found('due_at=next_7_days'), ['r+2', 'r0'])
    assert.deepEqual(await found('due_at[lt]=today'), ['r-2', 'r-9'])
    assert.deepEqual(await found('due_at[gt]=yesterday'), ['r+2', 'r0'])
    assert.deepEqual(await found('due_at[between]=last_7_days,tomorrow'), ['r-2', 'r0'])
    assert.deepEqual(await found('created_at=this_year'), ['r+2', 'r-2', 'r-9', 'r0'])
    assert.deepEqual(await found('created_at=last_month'), [])
    await titles('due_at[in]=today', 422)
    await titles('due_at=last_0_days', 422)
    await titles('title=today')
    const { body } = await create('deals', { name: 'Close', expected_close_date: at(2).slice(0, 10) })
    const deals = await api.request('GET', '/v1/objects/deals?expected_close_date=next_30_days')
    assert.deepEqual(
      deals.body.data.map((deal: { id: string }) => deal.id),
      [body.id],
    )
    assert.deepEqual(await titles('custom_fields.met=last_30_days'), [])
  })

  it('bind the cursor to the time zone', async () => {
    const page = (query: string) =>
      api.request('GET', `/v1/objects/tasks?due_at[lte]=2023-07-01&limit=1&${query}`)
    const { next_cursor } = (await page('')).body
    assert.equal((await page(`cursor=${next_cursor}`)).status, 200)
    assert.equal((await page(`cursor=${next_cursor}&time_zone=UTC`)).status, 400)
  })

  it('are local in imports, or in the time zone of the import', async () => {
    const imports = importsOf(api)
    const file =
      'Title,Due Date,met\nimport a,2024-07-01 09:00,2024-07-01 10:00\nimport b,2024-07-01,\nimport c,2024-07-01T09:00:00Z,\n'
    const read = async () => {
      const { body } = await api.request(
        'GET',
        '/v1/objects/tasks?title[starts_with]=import&sort=title&order=asc',
      )
      return body.data.map((task: { due_at: string }) => task.due_at)
    }
    const done = await imports.run({ entity: 'tasks' }, file)
    assert.equal(done.progress.created, 3, await imports.errors(done.id))
    assert.equal(done.time_zone, null)
    assert.deepEqual(await read(), [
      '2024-07-01T07:00:00.000Z',
      '2024-06-30T22:00:00.000Z',
      '2024-07-01T09:00:00.000Z',
    ])
    assert.deepEqual(await titles('custom_fields.met=2024-07-01T08:00:00Z'), ['import a'])
    const zoned = { entity: 'tasks', time_zone: 'America/New_York' }
    const other = await imports.run(zoned, 'Title,Due Date\nimport d,2024-07-01 09:00\n')
    assert.equal(other.time_zone, 'America/New_York')
    assert.equal((await read())[3], '2024-07-01T13:00:00.000Z')
    const wrong = await api.request('POST', '/v1/imports', { body: { entity: 'tasks', time_zone: 'Berlin' } })
    assert.equal(wrong.status, 422)
  })

  it('are local in the filters of an export', async () => {
    const query = { due_at: '2023-07-01', sort: 'title', order: 'asc' }
    const { body } = await api.request('POST', '/v1/exports', {
      body: { entity: 'tasks', query, fields: ['title'] },
    })
    await until(async () => (await api.request('GET', `/v1/exports/${body.id}`)).body.ended_at)
    const file = (await api.request('GET', `/v1/exports/${body.id}/file`)).body
    assert.deepEqual(file.match(/\bf\d\b/g), ['f2', 'f3'])
  })
})
