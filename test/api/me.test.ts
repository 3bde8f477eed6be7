import assert from 'node:assert/strict'
import { SCOPES } from '../../api/http/scopes.ts'
import { withApi } from '../support/with-api.ts'

describe('GET /v1/me and /v1/scopes', () => {
  const suite = withApi()

  it('returns the current key', async () => {
    const { status, body } = await suite.api.request('GET', '/v1/me')
    assert.equal(status, 200)
    assert.equal(body.object, 'key')
    assert.equal(body.organization.id, suite.api.organizationId)
    assert.deepEqual([...body.scopes].sort(), [...SCOPES].sort())
    assert.ok(!JSON.stringify(body).includes(suite.api.key))
  })

  it('lists every scope with the scopes that it implies', async () => {
    const { body } = await suite.api.request('GET', '/v1/scopes')
    assert.equal(body.object, 'list')
    const run = body.data.find((entry: { scope: string }) => entry.scope === 'workflows:run')
    assert.deepEqual(run.implies, ['workflows:read'])
    assert.equal(body.data.length, SCOPES.length)
  })
})
