import assert from 'node:assert/strict'
import { matchEvents } from '../../../db/events/match.ts'
import { createKey } from '../../support/api.ts'
import { createOrganization } from '../../support/database.ts'
import { signIn } from '../../support/session.ts'
import { withApi } from '../../support/with-api.ts'

/** The webhook settings for keys. */
describe('/v1/webhooks', () => {
  const suite = withApi()
  const hook = { name: 'Zap', url: 'https://example.com/hook', events: ['contact.created'] }

  it('lets a key subscribe to an event, see its deliveries, and unsubscribe', async () => {
    const { api, db } = suite
    const made = await api.request('POST', '/v1/webhooks/outgoing', { body: hook })
    assert.equal(made.status, 201, JSON.stringify(made.body))
    assert.match(made.body.secret, /^whsec_/)
    const path = `/v1/webhooks/outgoing/${made.body.id}`
    await api.request('POST', '/v1/objects/contacts', { body: { email: 'ada@example.com' } })
    await matchEvents(db.system)
    const { data } = (await api.request('GET', `${path}/deliveries`)).body
    assert.deepEqual([data.length, data[0].event], [1, 'contact.created'])
    const paused = await api.request('POST', `/v1/deliveries/${data[0].id}/pause`)
    assert.deepEqual([paused.status, paused.body.held_for], [200, 'paused'])
    assert.equal((await api.request('DELETE', path)).body.deleted, true)
    assert.equal((await api.request('GET', path)).status, 404)
  })

  it('shows a session and a key the same webhooks', async () => {
    const { api, db } = suite
    const app = await signIn(db, api)
    const { id } = (await api.request('POST', '/v1/webhooks/incoming', { body: { name: 'Form' } })).body
    const [byKey, bySession] = [
      await api.request('GET', `/v1/webhooks/incoming/${id}`),
      await app('GET', `/webhooks/incoming/${id}`),
    ]
    assert.equal(byKey.status, 200, JSON.stringify(byKey.body))
    assert.deepEqual(byKey.body, bySession.body)
  })

  it('needs webhooks:read to read and webhooks:write for everything else', async () => {
    const { api, db } = suite
    const { id } = (await api.request('POST', '/v1/webhooks/outgoing', { body: hook })).body
    const asked = async (scopes: string[], method: string, path: string, body?: object) => {
      const { key } = await createKey(db, api.organizationId, { scopes: scopes as never })
      const answer = await api.request(method, path, { key, ...(body ? { body } : {}) })
      return [answer.status, answer.body.error?.message]
    }
    const lacks = (scope: string) => [403, `the key lacks the scope ${scope}`]
    const path = `/v1/webhooks/outgoing/${id}`
    assert.deepEqual(await asked(['contacts:write'], 'GET', path), lacks('webhooks:read'))
    assert.deepEqual(await asked(['webhooks:read'], 'GET', path), [200, undefined])
    assert.deepEqual(await asked(['webhooks:read'], 'DELETE', path), lacks('webhooks:write'))
    assert.deepEqual(await asked(['webhooks:read'], 'POST', `${path}/test`), lacks('webhooks:write'))
    assert.deepEqual(
      await asked(['webhooks:read'], 'POST', '/v1/webhooks/incoming', { name: 'x' }),
      lacks('webhooks:write'),
    )
    assert.deepEqual(await asked(['webhooks:write', 'contacts:read'], 'DELETE', path), [200, undefined])
  })

  it('hides the webhooks of another organization', async () => {
    const { api, db } = suite
    const { id } = (await api.request('POST', '/v1/webhooks/outgoing', { body: hook })).body
    const other = await createKey(db, await createOrganization(db))
    assert.equal((await api.request('GET', `/v1/webhooks/outgoing/${id}`, { key: other.key })).status, 404)
  })

  it('lets a key set up only requests that do what the key may do', async () => {
    const { api, db } = suite
    const as = async (scopes: string[], method: string, path: string, body: object) => {
      const { key } = await createKey(db, api.organizationId, { scopes: scopes as never })
      const answer = await api.request(method, path, { key, body })
      return [answer.status, answer.body.error?.message]
    }
    const spec =
      'name: Greet\ntrigger: {type: webhook}\nnodes:\n  a: {type: set_fields, config: {fields: {x: 1}}}\n'
    const made = await api.request('POST', '/v1/workflows', { body: { spec } })
    const { workflow_id } = made.body
    const path = '/v1/webhooks/incoming'
    assert.deepEqual(await as(['webhooks:write'], 'POST', path, { name: 'x' }), [
      403,
      'the key lacks the scope contacts:write',
    ])
    const scopes = ['webhooks:write', 'contacts:write']
    assert.deepEqual(await as(scopes, 'POST', path, { name: 'x', workflow_id }), [
      403,
      'the key lacks the scope workflows:run',
    ])
    const { id } = (await api.request('POST', path, { body: { name: 'x' } })).body
    assert.equal((await as(scopes, 'PATCH', `${path}/${id}`, { workflow_id }))[0], 403)
    // The webhook was made by a key with all scopes: it writes companies and notes, too.
    const written = [...scopes, 'companies:write', 'notes:write']
    assert.equal((await as([...written, 'workflows:run'], 'PATCH', `${path}/${id}`, { workflow_id }))[0], 200)
  })

  it('lets a key subscribe to and read only what it may read', async () => {
    const { api, db } = suite
    const as = async (scopes: string[], method: string, path: string, body?: object) => {
      const { key } = await createKey(db, api.organizationId, { scopes: scopes as never })
      const answer = await api.request(method, path, { key, ...(body ? { body } : {}) })
      return [answer.status, answer.body.error?.message ?? answer.body.id] as [number, string]
    }
    const lacks = (scope: string) => [403, `the key lacks the scope ${scope}`]
    const path = '/v1/webhooks/outgoing'
    const write = ['webhooks:write']
    const on = (events: string[]) => ({ ...hook, events })
    assert.deepEqual(await as(write, 'POST', path, on(['contact.created'])), lacks('contacts:read'))
    assert.deepEqual(await as(write, 'POST', path, on(['*'])), lacks('contacts:read'))
    for (const event of ['workflow.completed', 'approval.*', 'invoice.paid', 'shipment.sent', 'shipment.*'])
      assert.deepEqual(await as(write, 'POST', path, on([event])), lacks('workflows:run'), event)
    assert.equal((await as(write, 'POST', path, on(['webhook.disabled'])))[0], 201)
    const [status, id] = await as([...write, 'deals:read'], 'POST', path, on(['deal.*']))
    assert.equal(status, 201)
    // Another URL would get what the webhook selects already.
    const url = { url: 'https://example.com/other' }
    assert.deepEqual(await as(write, 'PATCH', `${path}/${id}`, url), lacks('deals:read'))
    assert.deepEqual(
      await as([...write, 'deals:read'], 'PATCH', `${path}/${id}`, { events: ['task.created'] }),
      lacks('tasks:read'),
    )
    assert.equal((await as([...write, 'deals:read'], 'PATCH', `${path}/${id}`, url))[0], 200)

    await api.request('POST', '/v1/objects/deals', { body: { name: 'Secret' } })
    await matchEvents(db.system)
    const { data } = (await api.request('GET', `${path}/${id}/deliveries`)).body
    const delivery = `/v1/deliveries/${data[0].id}`
    assert.deepEqual(await as(['webhooks:read'], 'GET', delivery), lacks('deals:read'))
    assert.equal((await as(['webhooks:read', 'deals:read'], 'GET', delivery))[0], 200)
    assert.deepEqual(await as(write, 'POST', `${delivery}/cancel`), lacks('deals:read'))
    assert.equal((await db.system('deliveries').where({ id: data[0].id }).first('status')).status, 'queued')
    assert.equal((await as([...write, 'deals:read'], 'POST', `${path}/${id}/test`))[0], 200)
  })
})
