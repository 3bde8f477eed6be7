import assert from 'node:assert/strict'
import { appRoutes } from '../../../api/settings/route-table.ts'
import { routes } from '../../../api/v1/route-table.ts'
import { startApi, type TestApi } from '../../support/api.ts'
import { createTestDatabase, type TestDatabase } from '../../support/database.ts'

describe('/openapi.json and /docs', () => {
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

  it('describes every operation, each under a name of its own', async () => {
    const { body } = await api.request('GET', '/openapi.json', { key: null })
    assert.equal(body.openapi, '3.1.0')
    const ids = Object.values(body.paths).flatMap((methods) =>
      Object.values(methods as Record<string, { operationId: string }>).map(({ operationId }) => operationId),
    )
    assert.equal(ids.length, routes.length + appRoutes.length + 1, 'and the receiver of webhooks')
    assert.equal(new Set(ids).size, ids.length)
  })

  it('refers only to what is there', async () => {
    const { body } = await api.request('GET', '/openapi.json', { key: null })
    const references = [...JSON.stringify(body).matchAll(/"\$ref":"([^"]+)"/g)].map(([, ref]) => ref!)
    for (const reference of new Set(references)) {
      const found = reference
        .replace(/^#\//, '')
        .split('/')
        .reduce((part, step) => part?.[step], body)
      assert.ok(found, reference)
    }
  })

  it('declares the statuses of the contract for every operation of /v1', async () => {
    const { body } = await api.request('GET', '/openapi.json', { key: null })
    for (const [path, methods] of Object.entries<Record<string, { responses: object }>>(body.paths))
      if (path.startsWith('/v1/'))
        for (const operation of Object.values(methods))
          for (const status of ['400', '401', '403', '404', '422', '429'])
            assert.ok(status in operation.responses, `${path} ${status}`)
  })

  it('names the scopes of both kinds that an association joins', async () => {
    const { body } = await api.request('GET', '/openapi.json', { key: null })
    const { post } = body.paths['/v1/objects/companies/{entity_id}/associations/{target}/{target_id}']
    assert.deepEqual(post['x-scopes'], ['companies:write', '{target}:write'])
  })

  it('declares If-Match and 412 together, where it is honoured', async () => {
    const { body } = await api.request('GET', '/openapi.json', { key: null })
    const honouring = Object.values<
      Record<string, { operationId: string; responses: object; parameters: { name: string }[] }>
    >(body.paths)
      .flatMap((methods) => Object.values(methods))
      .filter(({ parameters, responses }) => {
        const declared = parameters.some(({ name }) => name === 'If-Match')
        assert.equal('412' in responses, declared)
        return declared
      })
      .map(({ operationId }) => operationId)
    for (const id of [
      'updateContact',
      'deleteContact',
      'updateWorkflow',
      'deleteWorkflow',
      'runWorkflow',
      'runWorkflowByName',
    ])
      assert.ok(honouring.includes(id), id)
    assert.ok('ETag' in body.paths['/v1/workflows/{workflow_id}'].get.responses['200'].headers)
  })

  it('is readable offline: the page loads nothing and runs nothing', async () => {
    const { status, headers, body } = await api.request('GET', '/docs', { key: null })
    assert.equal(status, 200)
    assert.match(headers.get('content-security-policy')!, /default-src 'none'/)
    assert.doesNotMatch(body, /<script|<link|<img|@import|url\(/i)
    for (const { id } of routes) assert.ok(body.includes(`id="${id}"`), id)
  })
})
