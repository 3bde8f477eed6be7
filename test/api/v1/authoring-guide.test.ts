import { deepEqual, equal, ok } from 'node:assert/strict'
import { withApi } from '../../support/with-api.ts'

describe('GET /v1/workflows/authoring-guide', () => {
  const suite = withApi()
  const get = (query = '') => suite.api.request('GET', `/v1/workflows/authoring-guide${query}`)

  it('returns Markdown, a version and examples that can be created as they are', async () => {
    const { status, body } = await get()
    equal(status, 200)
    deepEqual(Object.keys(body).sort(), ['examples', 'guide', 'object', 'version'])
    ok(body.guide.startsWith('# How to write a workflow'))
    for (const { spec } of body.examples) {
      const created = await suite.api.request('POST', '/v1/workflows', { body: { spec } })
      equal(created.status, 201, JSON.stringify(created.body))
    }
  })

  it('returns one topic, and refuses one that there is not', async () => {
    const { body } = await get('?topic=triggers')
    ok(body.guide.startsWith('## Triggers'))
    ok((await get('?topic=contacts&detail=standard')).body.guide.includes('lead_status'))
    const { status, body: refused } = await get('?topic=nope')
    deepEqual([status, refused.detail[0].loc], [422, ['query', 'topic']])
    equal((await get('?detail=all')).status, 422)
  })
})
