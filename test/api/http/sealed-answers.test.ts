import assert from 'node:assert/strict'
import { appRoutes } from '../../../api/app/route-table.ts'
import { isIdempotent } from '../../../api/http/route.ts'
import { createKey } from '../../support/api.ts'
import { everyRow } from '../../support/every-byte.ts'
import { sessionHeaders } from '../../support/session.ts'
import { withApp } from '../../support/with-api.ts'

/** Operations whose response has a secret accept an Idempotency-Key: a retried subscription must not make two. */
describe('a repeated request whose response has a secret', () => {
  const suite = withApp()
  let rows: Record<string, string>
  before(async () => {
    const { api, app } = suite
    const made = async (path: string, body: object) => (await app('POST', path, body)).body.id
    rows = {
      incoming: await made('/webhooks/incoming', { name: 'Form' }),
      outgoing: await made('/webhooks/outgoing', { ...HOOK, name: 'Billing' }),
      key: (await createKey(suite.db, api.organizationId)).id,
    }
    await suite.db.system('oauth_clients').insert({
      id: GRANT.client_id,
      name: 'Claude',
      redirect_uris: [GRANT.redirect_uri],
      expires_at: new Date(Date.now() + 600_000),
    })
  })

  const CASES: Record<string, () => [path: string, body: object, count: string]> = {
    'the creation of an incoming webhook': () => [
      '/webhooks/incoming',
      { name: 'Twice' },
      'incoming_webhooks',
    ],
    'the creation of an outgoing webhook': () => ['/webhooks/outgoing', HOOK, 'outgoing_webhooks'],
    'the creation of a key': () => ['/keys', { name: 'Twice', scopes: ['contacts:read'] }, 'api_keys'],
    'the grant of an assistant': () => ['/grants', GRANT, 'oauth_grants'],
    'the rotation of an incoming webhook': () => [
      `/webhooks/incoming/${rows.incoming}/rotate-secret`,
      { overlap_hours: 1 },
      'audit_log',
    ],
    'the rotation of an outgoing webhook': () => [
      `/webhooks/outgoing/${rows.outgoing}/rotate-secret`,
      { overlap_hours: 1 },
      'audit_log',
    ],
    'the rotation of a key': () => [`/keys/${rows.key}/rotate`, { overlap_hours: 1 }, 'audit_log'],
  }

  for (const [what, of] of Object.entries(CASES))
    it(`is answered with the same secret, once done: ${what}`, async () => {
      const { api, db } = suite
      const [path, body, table] = of()
      const headers = { ...(await sessionHeaders(db, api, 'owner')), 'Idempotency-Key': 'once' }
      const send = (more: object = {}) =>
        api.request('POST', `/app${path}`, { key: null, headers, body, ...more })
      const count = async () => Number((await db.system(table).count())[0]!.count)
      const first = await send()
      const secret: string = first.body.secret ?? first.body.key ?? first.body.redirect_to
      assert.ok(secret, JSON.stringify(first.body))
      const after = await count()
      const second = await send()
      assert.deepEqual(
        [second.status, second.body, second.headers.get('idempotency-replayed')],
        [first.status, first.body, 'true'],
      )
      assert.equal(await count(), after, 'done once')

      const changed = await send({ body: { ...body, description: 'other', name: 'other' } })
      assert.equal(changed.body.error.type, 'idempotency_conflict')
      const another = await sessionHeaders(db, api, 'admin')
      const others = await send({ headers: { ...another, 'Idempotency-Key': 'once' } })
      assert.notEqual(
        others.body.secret ?? others.body.key ?? others.body.redirect_to,
        secret,
        'nobody else gets it',
      )
      const stored = [...(await everyRow(db, [])).values()].join('\n')
      assert.ok(!stored.includes(secret), 'it is stored sealed')
    })

  it('that gave the secret is stored without a hash that would confirm a guess', async () => {
    const { api, db } = suite
    const headers = { ...(await sessionHeaders(db, api, 'owner')), 'Idempotency-Key': 'given' }
    const body = { name: 'Given', secret: 'a-secret-of-the-sender' }
    await api.request('POST', '/app/webhooks/incoming', { key: null, headers, body })
    const row = await db.system('idempotency_keys').where({ key: 'given' }).first()
    assert.deepEqual([row.body, row.request_hash.length], [null, 0])
  })

  it('of a key on /v1 is answered again to this key only', async () => {
    const { api, db } = suite
    const headers = { 'Idempotency-Key': 'subscribe' }
    const send = (key = api.key) => api.request('POST', '/v1/webhooks/outgoing', { headers, body: HOOK, key })
    const [first, second] = [await send(), await send()]
    assert.deepEqual(
      [first.status, second.body.id, second.body.secret],
      [201, first.body.id, first.body.secret],
    )
    const other = await createKey(db, api.organizationId)
    assert.notEqual((await send(other.key)).body.id, first.body.id)
  })

  it('is possible for every operation that makes a lasting secret', () => {
    const refused = appRoutes
      .filter((route) => route.method !== 'GET' && route.role !== 'public' && !isIdempotent(route))
      .map(({ id }) => id)
    assert.deepEqual(refused, [
      // A repeat has no further effect.
      'signOut',
      'switchOrganization',
      'endSession',
      // The link of the last one counts.
      'createPasswordReset',
      'createInvitation',
      // It has no further effect.
      'putSecret',
      // They write nothing.
      'testIncomingWebhook',
      'proposeIncomingMapping',
      'previewIncomingMapping',
    ])
  })
})

const GRANT = appRoutes.find(({ id }) => id === 'createGrant')!.example as {
  client_id: string
  redirect_uri: string
}
const HOOK = { name: 'Zap', url: 'https://example.com/hook', events: ['contact.created'] }
