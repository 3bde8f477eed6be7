import assert from 'node:assert/strict'
import { startApi, type TestApi } from '../support/api.ts'
import { createTestDatabase, type TestDatabase } from '../support/database.ts'
import { importsOf } from '../support/imports.ts'
import { startWorker, type TestWorker } from '../support/worker.ts'

type Body = Record<string, unknown>

describe('the keys of a merged record', () => {
  let db: TestDatabase
  let api: TestApi
  let worker: TestWorker
  let number = 0

  before(async () => {
    db = await createTestDatabase()
    api = await startApi(db)
    worker = await startWorker(db)
  })
  after(async () => {
    await worker?.stop()
    await api?.close()
    await db?.drop()
  })

  const create = (body: object, kind = 'contacts') => api.request('POST', `/v1/objects/${kind}`, { body })
  const get = (id: string) => api.request('GET', `/v1/objects/contacts/${id}`)
  const upsert = async (by: string, data: object, kind = 'contacts') => {
    const body = { operations: [{ op: 'upsert', by, data }] }
    return (await api.request('POST', `/v1/objects/${kind}/batch`, { body })).body.results[0]
  }
  const merge = (winner: string, from: string, kind = 'contacts') =>
    api.request('POST', `/v1/objects/${kind}/${winner}/merge`, { body: { from } })

  /** A winner and what was merged into it. */
  async function merged() {
    number++
    const names = { winner: `w${number}`, loser: `l${number}` }
    const winner = (
      await create({ email: `${names.winner}@x.example`, external_id: names.winner, first_name: 'W' })
    ).body
    const loser = (
      await create({ email: `${names.loser}@X.example`, external_id: names.loser, first_name: 'L' })
    ).body
    const { status, body } = await merge(winner.id, loser.id)
    assert.equal(status, 200, JSON.stringify(body))
    return { ...names, id: winner.id as string, record: body }
  }

  it('are shown in the other, and found by an upsert, which keeps its own', async () => {
    const { id, winner, loser, record } = await merged()
    const keys = [
      { field: 'external_id', value: loser },
      { field: 'email', value: `${loser}@X.example` },
    ]
    assert.deepEqual(record.alternate_keys, keys)
    assert.deepEqual((await get(id)).body.alternate_keys, keys)
    const byId = await upsert('external_id', {
      external_id: loser,
      email: `${loser}@x.example`,
      last_name: 'New',
    })
    assert.deepEqual([byId.status, byId.id], [200, id])
    assert.deepEqual(
      [byId.record.external_id, byId.record.email, byId.record.last_name],
      [winner, `${winner}@x.example`, 'New'],
    )
    const byEmail = await upsert('email', { email: `${loser.toUpperCase()}@x.example`, job_title: 'CTO' })
    assert.deepEqual([byEmail.id, byEmail.record.email], [id, `${winner}@x.example`])
    const found = await api.request('GET', `/v1/objects/contacts?q=${loser}@x.example&fields=email`)
    assert.deepEqual(
      found.body.data.map((one: Body) => one.id),
      [id],
    )
  })

  it('are found by an import and by an incoming webhook', async () => {
    const { id, winner, loser } = await merged()
    const done = await importsOf(api).run(
      { entity: 'contacts', mode: 'upsert', by: 'email' },
      `Email,Last Name\n${loser}@x.example,Imported\n`,
    )
    assert.deepEqual([done.progress.created, done.progress.updated], [0, 1], JSON.stringify(done.progress))
    const again = await importsOf(api).run(
      { entity: 'contacts' },
      `Email,External ID\nother@x.example,${loser}\n`,
    )
    assert.deepEqual([again.progress.created, again.progress.failed], [0, 1])

    for (const [action, expected] of [
      ['Update', 'updated'],
      ['Skip', 'skipped'],
    ]) {
      const made = await api.request('POST', '/v1/webhooks/incoming', {
        body: { name: `Form ${action} ${number}`, deduplication: { action, by: 'email' } },
      })
      assert.equal(made.status, 201, JSON.stringify(made.body))
      const answer = await fetch(made.body.url.replace(/^https?:\/\/[^/]+/, api.url), {
        method: 'POST',
        headers: { 'Content-Type': 'application/json', 'X-Webhook-Secret': made.body.secret },
        body: JSON.stringify({ email: `${loser}@x.example`, first_name: 'Hooked' }),
      })
      const body = (await answer.json()) as Body
      assert.deepEqual([body.action, body.record_id], [expected, id], JSON.stringify(body))
    }
    assert.equal((await get(id)).body.email, `${winner}@x.example`)
  })

  it('move on with another merge, and are purged of nothing', async () => {
    const { id, winner, loser } = await merged()
    const third = (await create({ email: `t${number}@x.example`, external_id: `t${number}` })).body
    const { body } = await merge(third.id, id)
    assert.deepEqual(
      body.alternate_keys.map((key: Body) => key.value),
      [loser, `${loser}@X.example`, winner, `${winner}@x.example`],
    )
    for (const external_id of [winner, loser])
      assert.equal((await upsert('external_id', { external_id, last_name: 'Again' })).id, third.id)
  })

  it('are kept while the record is deleted, and found again when it is restored', async () => {
    const { id, loser } = await merged()
    await api.request('DELETE', `/v1/objects/contacts/${id}`)
    const taken = await upsert('external_id', { external_id: loser, first_name: 'Anew' })
    assert.deepEqual([taken.status, taken.id === id], [201, false])
    const restored = await api.request('POST', `/v1/objects/contacts/${id}/restore`)
    assert.equal(restored.status, 200, JSON.stringify(restored.body))
    assert.equal(restored.body.alternate_keys.length, 2)
    // The record whose own key it is comes first.
    assert.equal((await upsert('external_id', { external_id: loser, last_name: 'X' })).id, taken.id)
    assert.equal((await upsert('email', { email: `${loser}@x.example`, last_name: 'X' })).id, id)
  })

  it('may be taken by another record as its email, and as no external_id', async () => {
    const { id, winner, loser } = await merged()
    const body = { email: `other${number}@x.example`, external_id: loser }
    const refused = await create(body)
    assert.deepEqual(
      [refused.status, refused.body.error.param],
      [409, 'external_id'],
      JSON.stringify(refused),
    )
    const own = await create({ email: `${loser}@x.example` })
    assert.equal(own.status, 201)
    const patched = await api.request('PATCH', `/v1/objects/contacts/${own.body.id}`, {
      body: { external_id: loser },
    })
    assert.equal(patched.status, 409)
    assert.equal((await upsert('email', { email: `${loser}@x.example`, last_name: 'Own' })).id, own.body.id)
    // The record itself may take its own alternate key.
    const swapped = await api.request('PATCH', `/v1/objects/contacts/${id}`, { body: { external_id: loser } })
    assert.equal(swapped.status, 200)
    const free = await create({ first_name: 'Free', external_id: winner })
    assert.equal(free.status, 201)
  })

  it('include the domain of a company', async () => {
    const [one, other] = await Promise.all(
      ['one.example', 'other.example'].map((domain) => create({ name: domain, domain }, 'companies')),
    )
    await merge(one!.body.id, other!.body.id, 'companies')
    const found = await upsert('domain', { name: 'Synced', domain: 'www.other.example' }, 'companies')
    assert.deepEqual(
      [found.id, found.record.domain, found.record.name],
      [one!.body.id, 'one.example', 'Synced'],
    )
  })

  it('are those of one organization', async () => {
    const { loser } = await merged()
    const other = await startApi(db)
    try {
      const body = {
        operations: [{ op: 'upsert', by: 'external_id', data: { external_id: loser, first_name: 'B' } }],
      }
      const answer = await other.request('POST', '/v1/objects/contacts/batch', { body })
      assert.equal(answer.body.results[0].status, 201)
    } finally {
      await other.close()
    }
  })
})
