import assert from 'node:assert/strict'
import { MAX_FAILURES } from '../../../api/http/failed-credentials.ts'
import { generateKey } from '../../../db/model/access/key-format.ts'
import { createKey, startApi } from '../../support/api.ts'
import { leaveOf } from '../../support/limits.ts'
import { sessionHeaders } from '../../support/session.ts'
import { withApi } from '../../support/with-api.ts'

describe('requests with wrong credentials', () => {
  const suite = withApi({ TRUSTED_PROXIES: '1' })
  const from = (address: string) => ({ 'X-Forwarded-For': address })
  const me = (key: string | null, address: string) =>
    suite.api.request('GET', '/v1/me', { key, headers: from(address) })
  const statuses = async (requests: Promise<{ status: number }>[]) => {
    const counts: Record<number, number> = {}
    for (const { status } of await Promise.all(requests)) counts[status] = (counts[status] ?? 0) + 1
    return counts
  }
  const flood = (count: number, address: string) =>
    statuses(Array.from({ length: count }, () => me(generateKey(), address)))

  const leave = (address: string, left: number) =>
    leaveOf(suite.db, { subject: `failed ${address}`, limit: MAX_FAILURES }, left)

  it('are limited per address, with an honest Retry-After', async () => {
    assert.equal((await me(suite.api.key, '192.0.2.1')).status, 200)
    await leave('192.0.2.1', 20)
    assert.deepEqual(await flood(30, '192.0.2.1'), { 401: 20, 429: 10 })
    const begun = Math.floor(Date.now() / 1_000)
    const { status, headers, body } = await me(generateKey(), '192.0.2.1')
    assert.equal(status, 429)
    assert.equal(body.error.type, 'rate_limited')
    const wait = Number(headers.get('retry-after'))
    assert.ok(wait >= 1 && wait <= 60, String(wait))
    // Both are rounded to seconds.
    const answered = Number(headers.get('x-ratelimit-reset')) - wait
    assert.ok(answered >= begun - 1 && answered <= Date.now() / 1_000 + 1, String(answered))
  })

  it('are refused without a look-up above the limit', async () => {
    let queries = 0
    const count = () => queries++
    suite.db.system.on('query', count)
    await flood(20, '192.0.2.1')
    suite.db.system.off('query', count)
    assert.equal(queries, 0)
  })

  it('lock out neither other addresses nor a client of the same address that has been accepted', async () => {
    assert.equal((await me(suite.api.key, '192.0.2.1')).status, 200)
    const another = await createKey(suite.db, suite.api.organizationId)
    assert.equal((await me(another.key, '192.0.2.2')).status, 200)
  })

  it('count together with those of other processes', async () => {
    const other = await startApi(suite.db, { TRUSTED_PROXIES: '1' })
    const address = '192.0.2.3'
    await leave(address, 20)
    const requests = Array.from({ length: 40 }, (_, i) =>
      (i % 2 ? suite.api : other).request('GET', '/v1/me', { key: generateKey(), headers: from(address) }),
    )
    assert.deepEqual(await statuses(requests), { 401: 20, 429: 20 })
    await other.close()
  })

  it('count an IPv6 /64 as one address', async () => {
    await leave('2001:db8:1:2::/64', 5)
    const requests = Array.from({ length: 10 }, (_, i) =>
      me(generateKey(), `2001:db8:1:2::${(i + 1).toString(16)}`),
    )
    assert.equal((await statuses(requests))[429], 5)
  })

  it('do not count without credentials', async () => {
    await leave('192.0.2.4', 0)
    const requests = Array.from({ length: 5 }, () => me(null, '192.0.2.4'))
    assert.deepEqual(await statuses(requests), { 401: 5 })
  })

  it('include wrong session cookies', async () => {
    const headers = { ...from('192.0.2.5'), Cookie: 'agx_session=wrong' }
    await leave('192.0.2.5', 5)
    const requests = Array.from({ length: 10 }, () =>
      suite.api.request('GET', '/app/session', { key: null, headers }),
    )
    assert.deepEqual(await statuses(requests), { 401: 5, 429: 5 })
  })

  it('are refused on the other side: a key on /app, a session on /v1', async () => {
    const session = { ...(await sessionHeaders(suite.db, suite.api, 'owner')), ...from('192.0.2.6') }
    const both = { key: suite.api.key, headers: session }
    assert.equal((await suite.api.request('GET', '/app/session', { ...both })).status, 401)
    assert.equal((await suite.api.request('GET', '/app/session', { ...both, key: null })).status, 200)
    assert.equal((await suite.api.request('GET', '/app/keys', { key: suite.api.key })).status, 401)
    assert.equal((await suite.api.request('GET', '/v1/me', { headers: session, key: null })).status, 401)
  })
})
