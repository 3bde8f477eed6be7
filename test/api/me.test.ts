import assert from 'node:assert/strict'
import { SCOPES } from '../../api/http/scopes.ts'
import { startApi, type TestApi } from '../support/api.ts'
import { createTestDatabase, type TestDatabase } from '../support/database.ts'

describe('GET /v1/me and /v1/scopes', () => {
  let db: TestDatabase
  let api: TestApi
  before(async () => {
    db = await createTestDatabase()
    api = await startApi(db)
  })
  after(async () => {
    await api.close()
    await db.drop()
  })

  it('says what the key is', async () => {
    const { status, body } = await api.request('GET', '/v1/me')
    assert.equal(status, 200)
    assert.equal(body.object, 'key')
    assert.equal(body.organization.id, api.organizationId)
    assert.deepEqual([...body.scopes].sort(), [...SCOPES].sort())
    assert.ok(!JSON.stringify(body).includes(api.key))
  })

  it('lists every scope with what it implies', async () => {
    const { body } = await api.request('GET', '/v1/scopes')
    assert.equal(body.object, 'list')
    const run = body.data.find((entry: { scope: string }) => entry.scope === 'workflows:run')
    assert.deepEqual(run.implies, ['workflows:read'])
    assert.equal(body.data.length, SCOPES.length)
  })
})
