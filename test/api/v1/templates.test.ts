import { deepEqual, equal, match, ok } from 'node:assert/strict'
import { createDefinition } from '../../../db/records/custom-fields/definitions.ts'
import { TEMPLATE_CATEGORIES } from '../../../workflows/templates/index.ts'
import { createKey } from '../../support/api.ts'
import { testActor } from '../../support/database.ts'
import { withApi } from '../../support/with-api.ts'

describe('/v1/workflows/templates', () => {
  const suite = withApi()
  const get = async (path: string) => {
    const { status, body } = await suite.api.request('GET', `/v1/workflows/templates${path}`)
    equal(status, 200, JSON.stringify(body))
    return body
  }
  const ids = (body: { data: { template_id: string }[] }) => body.data.map(({ template_id }) => template_id)
  const importing = (body: object, key?: string) =>
    suite.api.request('POST', '/v1/workflows/import', { body, ...(key ? { key } : {}) })
  const codes = (warnings: { code: string }[]) => warnings.map(({ code }) => code)

  it('finds what has all words, in any case, with the number of matches in each category', async () => {
    const { data, facets, total } = await get('?search=SLACK%20lead')
    ok(total >= 2 && total < 15, String(total))
    for (const { name, description } of data) match(`${name} ${description}`, /lead/i)
    deepEqual(
      facets.category.map(({ value }: { value: string }) => value),
      TEMPLATE_CATEGORIES,
    )
    const counts: number[] = facets.category.map(({ count }: { count: number }) => count)
    equal(
      counts.reduce((sum, count) => sum + count),
      total,
    )
    deepEqual(ids(await get('?search=send_webhook')), ['deal-to-erp'], 'by node type')
    deepEqual((await get('?search=nothing%20like%20this')).data, [])
  })

  it('lists one category, while the facets still count all', async () => {
    const all = await get('?limit=100')
    const support = await get('?category=support')
    ok(support.data.length >= 5)
    ok(support.data.every(({ category }: { category: string }) => category === 'support'))
    deepEqual(support.facets, all.facets)
    equal(all.total, all.data.length)
    deepEqual((await get('?category=unknown')).data, [])
  })

  it('pages by offset and by cursor, up to 100', async () => {
    const all = ids(await get('?limit=100'))
    deepEqual(ids(await get('?limit=5&offset=5')), all.slice(5, 10))
    const first = await get('?limit=7')
    equal(first.has_more, true)
    deepEqual(ids(await get(`?limit=7&cursor=${first.next_cursor}`)), all.slice(7, 14))
    for (const query of ['limit=101', 'limit=0', 'offset=-1', 'query=x'])
      equal((await suite.api.request('GET', `/v1/workflows/templates?${query}`)).status, 422, query)
  })

  it('shows one with its spec and what it needs, and the nearest id for an unknown one', async () => {
    const template = await get('/ai-triage')
    match(template.spec, /^name: Triage/)
    deepEqual(template.requires, {
      secrets: ['openai_key', 'slack_support'],
      env: [],
      custom_fields: [],
      service_settings: [],
    })
    for (const id of ['ai-triag', 'constructor', '__proto__'])
      equal((await suite.api.request('GET', `/v1/workflows/templates/${id}`)).status, 404)
    const { body } = await suite.api.request('GET', '/v1/workflows/templates/ai-triag')
    equal(body.error.hint, 'did you mean ai-triage?')
  })

  it('are imported as drafts, with a warning for each thing that is missing', async () => {
    const { status, body } = await importing({ template_id: 'nps-answer', name: ' Survey ' })
    equal(status, 201)
    deepEqual([body.status, body.active, body.name], ['DRAFT', false, 'Survey'])
    deepEqual(codes(body.warnings), [
      'unknown_env',
      'service_not_configured',
      'service_not_configured',
      'unknown_custom_field',
    ])
    const [env, , , field] = body.warnings
    match(env.hint, /PATCH \/app\/organization \{"env": \{"review_url"/)
    equal(
      field.hint,
      'define it: POST /v1/custom-fields/contacts {"name": "nps_score", "type": "number"}, with the scope contacts:write',
    )
    const saved = await suite.api.request('GET', `/v1/workflows/${body.workflow_id}`)
    equal(saved.body.name, 'Survey')

    const triage = await importing({ template_id: 'ai-triage' })
    deepEqual(codes(triage.body.warnings), ['unknown_secret', 'unknown_secret'])
  })

  it('say where a custom field has another type, and nothing where it has theirs', async () => {
    const define = (kind: 'contacts' | 'deals', name: string, type: 'text' | 'number') =>
      suite.db.tenant(suite.api.organizationId, testActor, (tx) => createDefinition(tx, kind, name, { type }))
    await define('contacts', 'lead_score', 'text')
    await define('deals', 'amount_in_own_currency', 'number')
    const { body } = await importing({ template_id: 'lead-scoring' })
    deepEqual(codes(body.warnings), ['unknown_custom_field'])
    match(body.warnings[0].message, /is defined as text, but the workflow needs number/)
    deepEqual((await importing({ template_id: 'deal-in-own-currency' })).body.warnings, [])
  })

  it('refuse unknown ids, other keys, and callers who may not author', async () => {
    equal((await importing({ template_id: 'unknown' })).status, 404)
    equal((await importing({ template_id: 'ai-triage', spec: 'x' })).status, 422)
    equal((await importing({})).status, 422)
    const { key } = await createKey(suite.db, suite.api.organizationId, { scopes: ['workflows:read'] })
    equal((await importing({ template_id: 'ai-triage' }, key)).status, 403)
  })
})
