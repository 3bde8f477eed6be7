import assert from 'node:assert/strict'
import { createUser } from '../../../db/access/users.ts'
import { type RequestOptions, startApi, type TestApi } from '../../support/api.ts'
import { createTestDatabase, type TestDatabase } from '../../support/database.ts'
import { planted } from '../../support/planted.ts'

describe('/app', () => {
  let db: TestDatabase
  let api: TestApi
  const password = planted('correct horse battery staple')

  before(async () => {
    db = await createTestDatabase()
    api = await startApi(db)
    const member = { password, organizationId: api.organizationId }
    await createUser(db.system, { ...member, email: 'Owner@example.com', name: 'Owner', role: 'owner' })
    await createUser(db.system, { ...member, email: 'member@example.com', name: 'Member', role: 'member' })
  })
  after(async () => {
    await api.close()
    await db.drop()
  })

  const app = (method: string, path: string, options: RequestOptions = {}) =>
    api.request(method, `/app${path}`, { key: null, ...options })

  async function signIn(email = 'owner@example.com') {
    const { status, headers, body } = await app('POST', '/session', { body: { email, password } })
    assert.equal(status, 201)
    const cookie = headers.get('set-cookie')!
    return { cookie, headers: { Cookie: cookie.split(';')[0]!, 'X-CSRF-Token': body.csrf_token }, body }
  }

  it('signs in with an HttpOnly, SameSite=Strict cookie', async () => {
    const { cookie, headers, body } = await signIn()
    assert.match(cookie, /HttpOnly; SameSite=Strict/)
    assert.doesNotMatch(cookie, /Secure/)
    assert.equal(body.role, 'owner')
    const again = await app('GET', '/session', { headers })
    assert.deepEqual(again.body, body)
  })

  it('marks the cookie Secure if the public URL is https', async () => {
    const secure = await startApi(db, { PUBLIC_URL: 'https://agx.example' })
    const { headers } = await secure.request('POST', '/app/session', {
      key: null,
      body: { email: 'owner@example.com', password },
    })
    const cookie = headers.get('set-cookie')!
    assert.match(cookie, /^__Host-agx_session=[^;]+; Path=\/; .*; Secure$/)
    const get = (Cookie: string) =>
      secure.request('GET', '/app/session', { key: null, headers: { Cookie } }).then(({ status }) => status)
    const pair = cookie.split(';')[0]!
    assert.equal(await get(pair), 200)
    // Another host of the domain can set this name.
    assert.equal(await get(pair.replace('__Host-', '')), 401)
    await secure.close()
  })

  it('stores neither the cookie nor the CSRF token', async () => {
    const { headers, body } = await signIn()
    const rows = JSON.stringify(
      await db.system('sessions').select(db.system.raw('to_jsonb(sessions) as row')),
    )
    assert.ok(rows.includes(body.id))
    assert.ok(!rows.includes(body.csrf_token))
    assert.ok(!rows.includes(headers.Cookie.split('=')[1]!))
    // The token of another session is refused.
    const other = await signIn()
    assert.notEqual(other.body.csrf_token, body.csrf_token)
    const mixed = { Cookie: headers.Cookie, 'X-CSRF-Token': other.body.csrf_token }
    assert.equal((await app('DELETE', '/session', { headers: mixed })).status, 403)
  })

  it('ends the session with sign-out', async () => {
    const { headers } = await signIn()
    assert.equal((await app('DELETE', '/session', { headers })).status, 200)
    assert.equal((await app('GET', '/session', { headers })).status, 401)
  })

  it('refuses an expired session', async () => {
    const { headers, body } = await signIn()
    await db.system('sessions').where({ id: body.id }).update({ expires_at: new Date() })
    assert.equal((await app('GET', '/session', { headers })).status, 401)
  })

  it('refuses keys, and /v1 refuses sessions', async () => {
    const { headers } = await signIn()
    assert.equal((await app('GET', '/session', { key: api.key })).status, 401)
    assert.equal((await app('GET', '/session', { key: api.key, headers })).status, 401)
    assert.equal((await api.request('GET', '/v1/me', { key: null, headers })).status, 401)
  })

  it('refuses a write without the CSRF token', async () => {
    const { headers } = await signIn()
    const { status, body } = await app('POST', '/keys', {
      headers: { Cookie: headers.Cookie },
      body: { name: 'x', scopes: ['contacts:read'] },
    })
    assert.equal(status, 403)
    assert.deepEqual(
      [body.error.type, body.error.message],
      ['csrf_token_invalid', 'the X-CSRF-Token header is missing'],
    )
    const wrong = await app('DELETE', '/session', { headers: { ...headers, 'X-CSRF-Token': 'other' } })
    assert.deepEqual(
      [wrong.status, wrong.body.error.message],
      [403, 'the X-CSRF-Token header does not match the session'],
    )
  })

  it('refuses key management by members', async () => {
    const { headers } = await signIn('member@example.com')
    assert.equal((await app('GET', '/keys', { headers })).status, 403)
  })

  describe('keys', () => {
    let headers: Record<string, string>
    before(async () => {
      headers = (await signIn()).headers
    })
    const create = async () =>
      (await app('POST', '/keys', { headers, body: { name: 'Website', scopes: ['contacts:write'] } })).body
    const works = async (key: string) => (await api.request('GET', '/v1/me', { key })).status === 200

    it('returns a new secret only once', async () => {
      const made = await create()
      assert.match(made.key, /^agx_[0-9A-Za-z]{46}$/)
      assert.ok(await works(made.key))
      const list = await app('GET', '/keys', { headers })
      assert.ok(list.body.data.some((key: { id: string }) => key.id === made.id))
      const stored = await db.system('api_keys').where({ id: made.id }).first()
      assert.ok(!JSON.stringify([list.body, stored]).includes(made.key))
    })

    it('rotates immediately or with an overlap', async () => {
      const made = await create()
      const rotate = async (body?: object) =>
        (await app('POST', `/keys/${made.id}/rotate`, { headers, ...(body ? { body } : {}) })).body.key
      const second = await rotate({ overlap_hours: 1 })
      assert.deepEqual([await works(made.key), await works(second)], [true, true])
      const third = await rotate()
      assert.deepEqual([await works(made.key), await works(second), await works(third)], [false, false, true])
    })

    it('revokes permanently', async () => {
      const made = await create()
      const revoked = await app('DELETE', `/keys/${made.id}`, { headers })
      assert.equal(revoked.status, 200)
      assert.ok(revoked.body.revoked_at)
      assert.equal(await works(made.key), false)
      assert.equal((await app('POST', `/keys/${made.id}/rotate`, { headers })).status, 409)
    })

    it('applies changed scopes to the next request', async () => {
      const made = await create()
      const changed = await app('PATCH', `/keys/${made.id}`, { headers, body: { scopes: ['deals:read'] } })
      assert.deepEqual(changed.body.scopes, ['deals:read'])
      assert.deepEqual((await api.request('GET', '/v1/me', { key: made.key })).body.scopes, ['deals:read'])
    })

    it('refuses unknown scopes, past expiry and invalid addresses', async () => {
      const { status, body } = await app('POST', '/keys', {
        headers,
        body: {
          name: 'x',
          scopes: ['all'],
          expires_at: '2001-01-01T00:00:00Z',
          ip_allowlist: ['here', '10.0.0.0/33'],
        },
      })
      assert.equal(status, 422)
      assert.equal(body.detail.length, 4)
    })

    it("answers another organization's key like an unknown one", async () => {
      const other = await startApi(db)
      const [key] = await db.system('api_keys').where({ organization_id: other.organizationId })
      const { status, body } = await app('GET', `/keys/${key.id}`, { headers })
      const unknown = await app('GET', '/keys/0198c1de-7d5e-7c11-b8a4-2f4f3c1d9a10', { headers })
      assert.deepEqual([status, body.error.message], [unknown.status, unknown.body.error.message])
      assert.equal((await app('DELETE', `/keys/${key.id}`, { headers })).status, 404)
      await other.close()
    })
  })

  it('answers a wrong password and an unknown email alike, and limits attempts', async () => {
    const attempt = (email: string) => app('POST', '/session', { body: { email, password: 'guess' } })
    const wrong = await attempt('member@example.com')
    const unknown = await attempt('nobody@example.com')
    assert.deepEqual([wrong.status, wrong.body.error.message], [unknown.status, unknown.body.error.message])
    const answers = await Promise.all(Array.from({ length: 12 }, () => attempt('nobody@example.com')))
    const slowed = answers.filter(({ status }) => status === 429)
    assert.ok(slowed.length >= 2)
    assert.ok(Number(slowed[0]!.headers.get('retry-after')) > 0)
  })

  it('does not lock a user out because of the attempts of another client', async () => {
    const behind = await startApi(db, { TRUSTED_PROXIES: '1' })
    const attempt = (from: string, given: string) =>
      behind.request('POST', '/app/session', {
        key: null,
        headers: { 'X-Forwarded-For': from },
        body: { email: 'owner@example.com', password: given },
      })
    const guesses = await Promise.all(Array.from({ length: 11 }, () => attempt('2001:db8:0:1::1', 'guess')))
    assert.ok(guesses.some(({ status }) => status === 429))
    assert.equal(
      (await attempt('2001:db8:0:1::2', 'guess')).status,
      429,
      'another address of the same client',
    )
    assert.equal((await attempt('198.51.100.9', password)).status, 201)
    await behind.close()
  })
})
