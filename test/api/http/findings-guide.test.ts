import { deepEqual, equal, match, ok } from 'node:assert/strict'
import { CODES } from '../../../workflows/language/finding-codes.ts'
import { withApi } from '../../support/with-api.ts'

describe('/docs/findings', () => {
  const suite = withApi()

  it('has a section for every code that a finding can have, once', async () => {
    const { status, headers, body } = await suite.api.request('GET', '/docs/findings', { key: null })
    equal(status, 200)
    match(headers.get('content-type')!, /^text\/html/)
    match(headers.get('content-security-policy')!, /^default-src 'none'/)
    const anchors = [...body.matchAll(/<h3 id="(\w+)">/g)].map(([, code]) => code)
    deepEqual(anchors.sort(), Object.keys(CODES).sort())
    ok(!/<script/.test(body))
    match(body, /Bearer \{\{ secrets\.x \}\}/)
  })

  it('is linked from the reference of findings, and from the authoring guide', async () => {
    const { body: document } = await suite.api.request('GET', '/openapi.json', { key: null })
    match(document.components.schemas.Finding.properties.code.description, /\(\/docs\/findings\)/)
    const { body } = await suite.api.request('GET', '/v1/workflows/authoring-guide')
    match(body.guide, /\/docs\/findings/)
  })
})
