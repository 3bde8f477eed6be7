import assert from 'node:assert/strict'
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
})
