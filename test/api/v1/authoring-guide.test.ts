import { deepEqual, equal, match, ok } from 'node:assert/strict'
import { withApi } from '../../support/with-api.ts'

describe('GET /v1/workflows/authoring-guide', () => {
  const suite = withApi()
  const get = (query = '') => suite.api.request('GET', `/v1/workflows/authoring-guide${query}`)

  it('returns Markdown, a version and examples that can be created as they are', async () => {
    const { status, body } = await get()
    equal(status, 200)
    deepEqual(Object.keys(body).sort(), ['examples', 'guide', 'object', 'version'])
    ok(body.guide.startsWith('# How to write a workflow'))
    ok(Buffer.byteLength(body.guide) < 30_720 && !body.guide.includes(body.examples[0].spec))
    const { body: all } = await get('?topic=examples')
    ok(all.examples.length > body.examples.length && body.examples.length > 0)
    for (const { spec } of all.examples) {
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
    for (const topic of ['flow', 'loops', 'for_each']) ok(JSON.stringify(refused).includes(topic), topic)
    equal((await get('?detail=all')).status, 422)
  })

  it('answers Markdown with the examples to clients that prefer it', async () => {
    const asText = async (query: string, accept: string) => {
      const response = await fetch(`${suite.api.url}/v1/workflows/authoring-guide${query}`, {
        headers: { authorization: `Bearer ${suite.api.key}`, accept },
      })
      return {
        type: response.headers.get('content-type'),
        vary: response.headers.get('vary'),
        text: await response.text(),
      }
    }
    const whole = await asText('', 'text/markdown')
    equal(whole.type, 'text/markdown; charset=utf-8')
    match(whole.vary!, /Accept/)
    match(whole.text, /^# How to write a workflow[\s\S]*```yaml\nname: Remind of open tasks/)
    ok(Buffer.byteLength(whole.text) <= 30_720)
    match((await asText('?topic=loops', 'text/markdown, application/json;q=0.5')).text, /^## Loops/)
    equal((await asText('', '*/*')).type, 'application/json; charset=utf-8')
    match((await asText('?topic=nope', 'text/markdown')).type!, /json/)
  })

  it('is what a path that only looks like its own leads to', async () => {
    const { status, body } = await suite.api.request('GET', '/v1/workflows/guide')
    deepEqual([status, body.error.hint], [404, 'did you mean /workflows/authoring-guide?'])
    const other = await suite.api.request('GET', '/v1/workflows/zebra')
    deepEqual([other.status, other.body.error.hint], [404, undefined])
  })
})
