import assert from 'node:assert/strict'
import type { Scope } from '../../../api/http/scopes.ts'
import { createKey } from '../../support/api.ts'
import { withApi } from '../../support/with-api.ts'

describe('exports before they run', () => {
  const suite = withApi()

  const create = (query: object) =>
    suite.api.request('POST', '/v1/exports', { body: { entity: 'contacts', query } })

  it('convert numbers and booleans to the text of list parameters', async () => {
    const query = { do_not_contact: false, 'version[gte]': 2, 'version[lte]': [5, '6'], q: 'ada' }
    const { status, body } = await create(query)
    assert.equal(status, 201, JSON.stringify(body))
    assert.deepEqual(body.query, {
      do_not_contact: 'false',
      'version[gte]': '2',
      'version[lte]': ['5', '6'],
      q: 'ada',
    })
    const wrong = await create({ 'version[gte]': false })
    assert.equal(wrong.status, 422)
    assert.deepEqual(wrong.body.detail[0].loc, ['body', 'query', 'version[gte]'])
  })

  it('report the issue of any invalid parameter', async () => {
    const messages = async (query: object) => {
      const { status, body } = await create(query)
      assert.equal(status, 422)
      return body.detail.map((one: { loc: string[]; msg: string }) => `${one.loc.join('.')}: ${one.msg}`)
    }
    for (const limit of ['5', 5, 0, true, null, {}, [5]])
      assert.deepEqual(await messages({ limit }), ['body.query.limit: is not supported by exports'])
    const types = 'must be a string, a number, a boolean or an array of these'
    for (const email of [null, {}, [null], [['a']]])
      assert.deepEqual(await messages({ email }), [`body.query.email: ${types}`])
    assert.match((await messages({ email: 'a'.repeat(10_001) }))[0], /^body.query.email: must have at most/)
  })

  it('show their file only to keys that may read all that is in it, as their creation does', async () => {
    const send = async (scopes: Scope[], method: 'GET' | 'POST', path: string, body?: object) => {
      const { key } = await createKey(suite.db, suite.api.organizationId, { scopes })
      const answer = await suite.api.request(method, `/v1${path}`, { key, ...(body && { body }) })
      return [answer.status, answer.body.error?.message]
    }
    for (const wanted of [
      { entity: 'deals', fields: ['name', 'company_id'], names: true },
      { entity: 'deals', query: { 'company.name[contains]': 'secret' } },
    ]) {
      const { body } = await suite.api.request('POST', '/v1/exports', { body: wanted })
      const refused = [403, 'the key lacks the scope companies:read']
      assert.deepEqual(await send(['deals:read'], 'POST', '/exports', wanted), refused)
      assert.deepEqual(await send(['deals:read'], 'GET', `/exports/${body.id}/file`), refused)
      const both = await send(['deals:read', 'companies:read'], 'GET', `/exports/${body.id}/file`)
      assert.deepEqual(both, [409, 'the export is queued'])
    }
  })
})
