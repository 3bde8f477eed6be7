import assert from 'node:assert/strict'
import type { KeyWithSecret } from '../../../db/access/keys.ts'
import { updateKey } from '../../../db/access/keys.ts'
import { createKey, startApi, type TestApi } from '../../support/api.ts'
import { testActor } from '../../support/database.ts'
import { withWorker } from '../../support/with-worker.ts'

/**
 * Stored responses belong to the API key of the request. A replay requires the scopes of the request, including those
 * that the handler determines from the body or a row.
 */
describe('the replay of a stored response', () => {
  const suite = withWorker()
  let api: TestApi
  let company: string
  before(async () => {
    api = await startApi(suite.db)
    company = (await api.request('POST', '/v1/objects/companies', { body: { name: 'Acme' } })).body.id
  })
  after(() => api?.close())

  interface Case {
    path: string
    body(): unknown
    /** Scopes that suffice for the route, but not for the request. */
    narrow: string[]
    missing: string
  }
  const cases: Record<string, Case> = {
    'a node test': {
      path: '/workflows/nodes/test',
      body: () => ({
        node_type: 'crm_manager',
        config: { operation: 'create', entity: 'contacts', fields: { first_name: 'Ada' } },
        confirm: true,
      }),
      narrow: ['workflows:run'],
      missing: 'contacts:write',
    },
    'an export': {
      path: '/exports',
      body: () => ({ entity: 'deals' }),
      narrow: ['contacts:read'],
      missing: 'deals:read',
    },
    'an import': {
      path: '/imports',
      body: () => ({ entity: 'deals' }),
      narrow: ['contacts:write'],
      missing: 'deals:write',
    },
    'a batch': {
      path: '/objects/contacts/batch',
      body: () => ({ operations: [{ op: 'create', data: { first_name: 'Ada', company_id: company } }] }),
      narrow: ['contacts:write'],
      missing: 'companies:write',
    },
    'a record with a reference': {
      path: '/objects/contacts',
      body: () => ({ first_name: 'Ada', company_id: company }),
      narrow: ['contacts:write'],
      missing: 'companies:write',
    },
  }

  for (const [name, { path, body, narrow, missing }] of Object.entries(cases)) {
    const send = (key: KeyWithSecret, idempotencyKey: string) =>
      api.request('POST', `/v1${path}`, {
        key: key.key,
        body: body(),
        headers: { 'Idempotency-Key': idempotencyKey },
      })

    it(`of ${name} is refused to another key without the scopes`, async () => {
      const full = await createKey(suite.db, api.organizationId)
      const other = await createKey(suite.db, api.organizationId, { scopes: narrow })
      const first = await send(full, `another ${name}`)
      assert.ok(first.status < 300, JSON.stringify(first.body))
      const stolen = await send(other, `another ${name}`)
      assert.equal(stolen.status, 403)
      assert.match(stolen.body.error.message, new RegExp(missing))
    })

    it(`of ${name} is refused to the key once it has lost a scope`, async () => {
      const key = await createKey(suite.db, api.organizationId)
      const first = await send(key, `lost ${name}`)
      const again = await send(key, `lost ${name}`)
      assert.equal(again.headers.get('idempotency-replayed'), 'true')
      assert.deepEqual(again.body, first.body)
      await suite.db.tenant(api.organizationId, testActor, (tx) => updateKey(tx, key.id, { scopes: narrow }))
      const refused = await send(key, `lost ${name}`)
      assert.equal(refused.status, 403)
      assert.equal(refused.headers.get('idempotency-replayed'), null)
      assert.match(refused.body.error.message, new RegExp(missing))
    })
  }

  it('is not shared between keys with the same scopes: each request takes effect', async () => {
    const keys = [
      await createKey(suite.db, api.organizationId),
      await createKey(suite.db, api.organizationId),
    ]
    const answers = await Promise.all(
      keys.map(({ key }) =>
        api.request('POST', '/v1/objects/contacts', {
          key,
          body: { first_name: 'Ada' },
          headers: { 'Idempotency-Key': 'shared' },
        }),
      ),
    )
    assert.deepEqual(
      answers.map(({ status }) => status),
      [201, 201],
    )
    assert.notEqual(answers[0]!.body.id, answers[1]!.body.id)
  })
})
