import assert from 'node:assert/strict'
import { randomUUID } from 'node:crypto'
import { request } from 'node:http'
import { generateKey } from '../../../db/model/access/key-format.ts'
import type { Answer } from '../../support/answer.ts'
import { startApi, type TestApi } from '../../support/api.ts'
import { createOrganization } from '../../support/database.ts'
import { signIn } from '../../support/session.ts'
import { until } from '../../support/until.ts'
import { withApp } from '../../support/with-api.ts'

describe('keys', () => {
  const suite = withApp({ TRUSTED_PROXIES: '1' })
  /** A second process on the same database. */
  let second: TestApi
  before(async () => {
    second = await startApi(suite.db, { TRUSTED_PROXIES: '1' })
  })
  after(() => second?.close())

  const create = async (values: object = {}) => {
    const { status, body } = await suite.app('POST', '/keys', {
      name: 'Website',
      scopes: ['contacts:write'],
      ...values,
    })
    assert.equal(status, 201)
    return body as { id: string; key: string; prefix: string; expires_at: string | null }
  }
  const me = (key: string | null, from = '192.0.2.1', api: TestApi = suite.api) =>
    api.request('GET', '/v1/me', { key, headers: { 'X-Forwarded-For': from } })
  const assertWorks = async (key: string) => {
    for (const api of [suite.api, second]) assert.equal((await me(key, undefined, api)).status, 200)
  }
  /** On both processes, with a response that reveals nothing about the key. */
  const assertRefused = async (key: string) => {
    const unknown = bodyOf(await me(generateKey()))
    for (const api of [suite.api, second]) {
      const answer = await me(key, undefined, api)
      assert.equal(answer.status, 401)
      assert.equal(bodyOf(answer), unknown)
    }
  }
  const bodyOf = ({ body }: Answer) => JSON.stringify(body).replace(body.error.request_id, '')

  it('show the secret once; the database has its hash only', async () => {
    const { key, ...created } = await create({ expires_at: '2099-01-01T00:00:00+01:00' })
    assert.match(key, /^agx_[0-9A-Za-z]{46}$/)
    assert.ok(key.startsWith(created.prefix) && created.prefix.length === 10)
    const { body } = await suite.app('GET', `/keys/${created.id}`)
    assert.deepEqual(body, created)
    assert.equal(body.expires_at, '2098-12-31T23:00:00.000Z')
    const list = await suite.app('GET', '/keys')
    assert.deepEqual(
      list.body.data.find(({ id }: { id: string }) => id === created.id),
      created,
    )
    const [row] = await suite.db.system('api_keys').where({ id: created.id })
    assert.doesNotMatch(JSON.stringify(row), new RegExp(key.slice(10)))
    assert.equal(row.hash.length, 32)
  })

  it('change at their next request, on every process', async () => {
    const { id, key } = await create()
    const read = () => second.request('GET', '/v1/objects/deals', { key })
    assert.equal((await read()).status, 403)
    const changed = await suite.app('PATCH', `/keys/${id}`, { scopes: ['deals:read'], name: 'Deals' })
    assert.deepEqual([changed.status, changed.body.scopes, changed.body.name], [200, ['deals:read'], 'Deals'])
    assert.equal((await read()).status, 200)
  })

  it('are refused on every process from their revocation on', async () => {
    const { id, key } = await create()
    await assertWorks(key)
    const { status, body } = await suite.app('DELETE', `/keys/${id}`)
    assert.deepEqual([status, body.deleted], [200, true])
    await assertRefused(key)
    const again = await suite.app('DELETE', `/keys/${id}`)
    assert.deepEqual([again.status, again.body.revoked_at], [200, body.revoked_at])
    assert.equal((await suite.app('POST', `/keys/${id}/rotate`)).status, 409)
    // Clearing the expiry must not restore a revoked key.
    await suite.app('PATCH', `/keys/${id}`, { expires_at: null })
    await assertRefused(key)
  })

  it('end with both their secrets during an overlap', async () => {
    const { id, key } = await create()
    const { body } = await suite.app('POST', `/keys/${id}/rotate`, { overlap_hours: 24 })
    await suite.app('DELETE', `/keys/${id}`)
    await assertRefused(key)
    await assertRefused(body.key)
  })

  it('expire at their time, and work again with a later one', async () => {
    const { id, key } = await create({ expires_at: new Date(Date.now() + 60_000).toISOString() })
    await assertWorks(key)
    await suite.db.system('api_keys').where({ id }).update({ expires_at: new Date() })
    await assertRefused(key)
    await suite.app('PATCH', `/keys/${id}`, { expires_at: null })
    await assertWorks(key)
  })

  it('rotate: the old secret ends at once, or after the overlap', async () => {
    const { id, key } = await create()
    const { body: first } = await suite.app('POST', `/keys/${id}/rotate`)
    await assertRefused(key)
    const { body: next } = await suite.app('POST', `/keys/${id}/rotate`, { overlap_hours: 1 })
    assert.equal(next.id, id)
    await assertWorks(first.key)
    await assertWorks(next.key)
    const [{ previous_expires_at: until }] = await suite.db.system('api_keys').where({ id })
    assert.ok(Math.abs(until - Date.now() - 3_600_000) < 60_000)
    await suite.db.system('api_keys').where({ id }).update({ previous_expires_at: new Date() })
    await assertRefused(first.key)
    await assertWorks(next.key)
  })

  it('have two secrets at most: a second rotation ends the overlap of the first', async () => {
    const { id, key } = await create()
    const { body: first } = await suite.app('POST', `/keys/${id}/rotate`, { overlap_hours: 24 })
    const { body: next } = await suite.app('POST', `/keys/${id}/rotate`, { overlap_hours: 24 })
    await assertRefused(key)
    await assertWorks(first.key)
    await assertWorks(next.key)
  })

  it('work only from their allowlist: addresses and ranges, IPv4 and IPv6', async () => {
    const list = ['198.51.100.7', '10.1.0.0/16', '2001:db8::1', '2001:db8:5::/48', '::ffff:203.0.113.0/120']
    const { id, key } = await create({ ip_allowlist: list })
    const inside = ['198.51.100.7', '10.1.255.255', '::ffff:10.1.0.1', '2001:DB8::1', '2001:db8:5:ff::9']
    for (const address of [...inside, '203.0.113.200', '192.0.2.1, 10.1.0.1'])
      assert.equal((await me(key, address)).status, 200, address)
    const unknown = bodyOf(await me(generateKey()))
    // The second value has an entry by the client itself, before the entry of the proxy.
    for (const address of ['198.51.100.8', '10.1.0.1, 192.0.2.1', '2001:db8::2', '2001:db8:6::1', 'x', '']) {
      const answer = await me(key, address)
      assert.equal(answer.status, 401, address)
      assert.equal(bodyOf(answer), unknown)
    }
    await suite.app('PATCH', `/keys/${id}`, { ip_allowlist: [] })
    assert.equal((await me(key, '198.51.100.8')).status, 200)
  })

  it('note their last use at most once a minute', async () => {
    const { id, key } = await create()
    const used = async () => (await suite.db.system('api_keys').where({ id }).first()).last_used_at
    const untilUsed = (isDue: (at: Date) => boolean) =>
      until(async () => {
        const at = await used()
        return at !== null && isDue(at) && at
      })
    assert.equal(await used(), null)
    await assertWorks(key)
    const first = await untilUsed(() => true)
    assert.ok(Math.abs(first - Date.now()) < 10_000)
    const ago = (seconds: number) => {
      const at = new Date(Date.now() - seconds * 1_000)
      return suite.db.system('api_keys').where({ id }).update({ last_used_at: at }).returning('last_used_at')
    }
    const [{ last_used_at: recent }] = await ago(50)
    let updates = 0
    const count = ({ sql }: { sql: string }) => {
      if (sql.startsWith('update api_keys')) updates++
    }
    suite.db.system.on('query', count)
    for (let i = 0; i < 3; i++) await assertWorks(key)
    suite.db.system.off('query', count)
    assert.equal(updates, 0)
    assert.deepEqual(await used(), recent)
    await ago(61)
    await assertWorks(key)
    assert.ok((await untilUsed((at) => Number(at) > Number(recent))) > recent)
  })

  it('cost one query per request, besides the leases of the rate limit', async () => {
    const { key } = await create({ ip_allowlist: ['192.0.2.0/24'] })
    // This request records the use.
    await me(key)
    let queries = 0
    const count = ({ sql }: { sql: string }) => {
      if (!sql.includes('into limit_windows')) queries++
    }
    suite.db.system.on('query', count)
    for (let i = 0; i < 5; i++) assert.equal((await me(key)).status, 200)
    suite.db.system.off('query', count)
    assert.equal(queries, 5)
  })

  it('answer invalid values with the field and the reason', async () => {
    const bad = { name: ' ', scopes: ['contacts:admin'], expires_at: '2020-01-01T00:00:00Z', colour: 'red' }
    const { status, body } = await suite.app('POST', '/keys', {
      ...bad,
      ip_allowlist: ['10.0.0.0/33', '1.2.3', 'example.com'],
    })
    assert.equal(status, 422)
    assert.deepEqual(body.detail.map(({ loc }: { loc: unknown[] }) => loc.slice(1).join('.')).sort(), [
      'colour',
      'expires_at',
      'ip_allowlist.0',
      'ip_allowlist.1',
      'ip_allowlist.2',
      'name',
      'scopes.0',
    ])
    const { id } = await create()
    for (const overlap_hours of [-1, 25, 1.5, '1'])
      assert.equal((await suite.app('POST', `/keys/${id}/rotate`, { overlap_hours })).status, 422)
  })

  it('are managed by owners and admins of their organization only', async () => {
    const { id } = await create()
    const other = await createOrganization(suite.db)
    const stranger = await signIn(suite.db, { ...suite.api, organizationId: other })
    const member = await signIn(suite.db, suite.api, 'member')
    for (const [method, path] of [
      ['GET', ''],
      ['PATCH', ''],
      ['DELETE', ''],
      ['POST', '/rotate'],
    ] as const) {
      const body = method === 'PATCH' ? { name: 'Taken' } : undefined
      assert.equal((await member(method, `/keys/${id}${path}`, body)).status, 403)
      const foreign = await stranger(method, `/keys/${id}${path}`, body)
      assert.equal(foreign.status, 404)
      assert.equal(bodyOf(foreign), bodyOf(await stranger(method, `/keys/${randomUUID()}${path}`, body)))
    }
    assert.equal((await stranger('GET', '/keys')).body.data.length, 0)
  })

  describe('that are malformed', () => {
    /** Sends the headers unchanged. */
    const raw = (path: string, headers: string[]) =>
      new Promise<{ status: number; body: Answer['body']; challenge: string | undefined }>(
        (resolve, reject) => {
          const { hostname, port } = new URL(suite.api.url)
          const all = ['Host', hostname, 'X-Forwarded-For', '192.0.2.77', ...headers]
          request({ hostname, port, path, headers: all as never }, async (response) => {
            let text = ''
            for await (const chunk of response) text += chunk
            const challenge = response.headers['www-authenticate']
            resolve({ status: response.statusCode!, body: JSON.parse(text), challenge })
          })
            .on('error', reject)
            .end()
        },
      )
    const sent = (value: string) => raw('/v1/me', ['Authorization', value])

    it('are accepted with any case of Bearer and further spaces around', async () => {
      const { key } = suite.api
      for (const value of [`bearer ${key}`, `BEARER ${key}`, `Bearer   ${key}`, `  Bearer ${key}  `])
        assert.equal((await sent(value)).status, 200, value)
    })

    it('are 401 with a hint on their form, which never depends on what exists', async () => {
      const { key } = suite.api
      const other = key.at(-1) === 'a' ? 'b' : 'a'
      const cases: [string, RegExp][] = [
        [`Bearer ${key.slice(0, -1)}`, /has 50 characters, this one has 49/],
        [`Bearer ${key}0`, /this one has 51/],
        [`Bearer ${key}${'0'.repeat(5_000)}`, /this one has 5050/],
        [`Bearer ${key.slice(0, -1)}${other}`, /checksum/],
        [`Bearer ${key.slice(0, 20)}-${key.slice(21)}`, /letters and digits/],
        [`Bearer "${key}"`, /starts with agx_/],
        [`Bearer ${key.slice(4)}`, /starts with agx_/],
        [`Bearer ${key.replace('agx', 'AGX')}`, /starts with agx_/],
        [`Bearer ${key} ${key}`, /Authorization: Bearer/],
        [`Bearer ${key}, Bearer ${key}`, /Authorization: Bearer/],
        [`Bearer\t${key}`, /Authorization: Bearer/],
        [`Bearer${key}`, /Authorization: Bearer/],
        [`Basic ${Buffer.from(`${key}:`).toString('base64')}`, /Authorization: Bearer/],
        [`Token ${key}`, /Authorization: Bearer/],
        [key, /Authorization: Bearer/],
        ['Bearer', /Authorization: Bearer/],
        ['', /Authorization: Bearer/],
      ]
      for (const [value, hint] of cases) {
        const { status, body, challenge } = await sent(value)
        assert.equal(status, 401, value)
        assert.deepEqual(
          [body.error.type, body.error.message, challenge],
          ['unauthorized', 'missing or invalid API key', 'Bearer'],
        )
        assert.match(body.error.hint, hint, value)
        assert.ok(!JSON.stringify(body).includes(key.slice(4, 30)), 'the key is not echoed')
        // An unknown key with the same flaw gets the same response.
        const twin = await sent(value.replaceAll(key.slice(10, 44), generateKey().slice(10, 44)))
        assert.deepEqual({ ...twin.body.error, request_id: '' }, { ...body.error, request_id: '' }, value)
      }
    })

    it('are not read from the query string', async () => {
      for (const name of ['api_key', 'access_token', 'key']) {
        const { status, body } = await raw(`/v1/me?${name}=${suite.api.key}`, [])
        assert.equal(status, 401)
        assert.match(body.error.hint, /a key in the URL is not read/)
        assert.ok(!JSON.stringify(body).includes(suite.api.key))
      }
    })

    it('are refused if there are two headers', async () => {
      const value = `Bearer ${suite.api.key}`
      const { status, body } = await raw('/v1/me', ['Authorization', value, 'authorization', value])
      assert.equal(status, 400)
      assert.match(body.error.message, /more than one Authorization header/)
    })
  })
})
