import assert from 'node:assert/strict'
import { withApp } from '../../support/with-api.ts'

describe('names that other APIs give the parameters of lists', () => {
  const on = withApp()

  for (const [list, written, meant] of [
    ['runs', 'per_page', 'limit'],
    ['runs', 'page', 'offset, or cursor with the next_cursor of the page before'],
    ['workflows', 'search', 'q'],
    ['users', 'pageSize', 'limit'],
    ['users', 'query', 'q'],
    ['workflows/templates', 'q', 'search'],
    ['objects/contacts', 'search', 'q'],
    ['objects/contacts', 'order_by', 'sort and order'],
  ] as const)
    it(`are told what they are here: ${written} of ${list}`, async () => {
      const { status, body } = await on.api.request('GET', `/v1/${list}?${written}=2`)
      assert.deepEqual([status, body.detail[0].loc], [422, ['query', written]])
      assert.equal(body.error.hint, `did you mean ${meant}?`)
    })

  it('are told in the lists of sessions, too', async () => {
    const { status, body } = await on.app('GET', '/members?per_page=2')
    assert.deepEqual([status, body.error.hint], [422, 'did you mean limit?'])
  })

  it('are not told of a parameter that the list does not have', async () => {
    const { status, body } = await on.api.request('GET', '/v1/scopes?per_page=2')
    assert.deepEqual([status, body.error.hint], [422, undefined])
  })
})
