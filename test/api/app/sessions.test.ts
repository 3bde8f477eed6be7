import assert from 'node:assert/strict'
import { createUser } from '../../../db/access/users.ts'
import { createMember, createOrganization } from '../../support/database.ts'
import { headersOf, signIn, signInAs } from '../../support/session.ts'
import { withApi } from '../../support/with-api.ts'

describe('the sessions of a user', () => {
  const suite = withApi()

  it('are listed, and each can be ended', async () => {
    const { db, api } = suite
    const ada = await createMember(db, api.organizationId, 'Ada')
    const [desktop, phone] = [await signInAs(db, api, ada), await signInAs(db, api, ada)]
    await signIn(db, api)
    const { body } = await desktop('GET', '/sessions')
    assert.deepEqual(
      body.data.map(({ current }: { current: boolean }) => current),
      [false, true],
    )
    const [other, own] = body.data
    const first = await desktop('GET', '/sessions?limit=1')
    assert.deepEqual([first.body.total, first.body.has_more, first.body.data[0].id], [2, true, other.id])
    const next = await desktop('GET', `/sessions?limit=1&cursor=${first.body.next_cursor}`)
    assert.deepEqual([next.body.has_more, next.body.data[0].id], [false, own.id])

    const ended = await desktop('DELETE', `/sessions/${other.id}`)
    assert.deepEqual([ended.status, ended.headers.get('set-cookie')], [200, null])
    assert.equal((await phone('GET', '/session')).status, 401)
    assert.equal((await desktop('DELETE', `/sessions/${other.id}`)).status, 404)
    const last = await desktop('DELETE', `/sessions/${own.id}`)
    assert.match(last.headers.get('set-cookie')!, /^agx_session=; .*Expires=Thu, 01 Jan 1970/)
    assert.equal((await desktop('GET', '/session')).status, 401)
  })

  it("of another user are answered like unknown ones, also to an owner's attempt to end them", async () => {
    const { db, api } = suite
    const owner = await signIn(db, api)
    const member = await signIn(db, api, 'member')
    const { body } = await member('GET', '/session')
    const refused = await owner('DELETE', `/sessions/${body.id}`)
    const unknown = await owner('DELETE', '/sessions/0198c1de-7d5e-7c11-b8a4-2f4f3c1d9a10')
    assert.deepEqual(
      [refused.status, refused.body.error.message],
      [unknown.status, unknown.body.error.message],
    )
    assert.equal((await member('GET', '/session')).status, 200)
  })

  it('end with the user, and with the organization', async () => {
    const { db, api } = suite
    const other = await createOrganization(db)
    const ada = await createMember(db, api.organizationId, 'Ada')
    await db.system('memberships').insert({ organization_id: other, user_id: ada, role: 'owner' })
    const [here, there] = [
      await signInAs(db, api, ada),
      await signInAs(db, { ...api, organizationId: other }, ada),
    ]
    assert.equal((await there('GET', '/session')).status, 200)
    await db.system('organizations').where({ id: other }).delete()
    assert.deepEqual(
      [(await there('GET', '/session')).status, (await here('GET', '/session')).status],
      [401, 200],
    )
    await db.system('users').where({ id: ada }).delete()
    for (const [method, path] of [
      ['GET', '/session'],
      ['PUT', '/session/organization'],
      ['DELETE', '/session'],
    ] as const) {
      const { status, body } = await here(method, path)
      assert.deepEqual([status, body.error.message], [401, 'sign in first'])
    }
  })

  it('begin with a new cookie; the session of the browser before ends', async () => {
    const { db, api } = suite
    const password = 'correct horse battery staple'
    const { organizationId } = api
    await createUser(db.system, {
      email: 'a@example.com',
      name: 'A',
      password,
      organizationId,
      role: 'member',
    })
    const post = (headers: Record<string, string>) =>
      api.request('POST', '/app/session', { key: null, headers, body: { email: 'a@example.com', password } })
    const cookieOf = (headers: Headers) => headers.get('set-cookie')!.split(';')[0]!
    const get = async (Cookie: string) =>
      (await api.request('GET', '/app/session', { key: null, headers: { Cookie } })).status

    const planted = 'agx_session=chosen-by-an-attacker'
    const first = cookieOf((await post({ Cookie: planted, 'User-Agent': 'Desktop' })).headers)
    assert.notEqual(first, planted)
    assert.equal(await get(planted), 401)
    assert.equal(await get(first), 200)
    const second = cookieOf((await post({ Cookie: first, 'User-Agent': 'Phone' })).headers)
    assert.deepEqual([await get(first), await get(second)], [401, 200])

    const { body } = await api.request('GET', '/app/sessions', { key: null, headers: { Cookie: second } })
    assert.deepEqual(
      body.data.map((one: { user_agent: string; ip: string }) => [one.user_agent, one.ip]),
      [['Phone', '127.0.0.1']],
    )
  })
})

describe('a user in several organizations', () => {
  const suite = withApi()

  it('switches between them, under a new cookie and CSRF token', async () => {
    const { db, api } = suite
    const ada = await createMember(db, api.organizationId, 'Ada', 'owner')
    const other = await createOrganization(db, { name: 'Other' })
    await db.system('memberships').insert({ organization_id: other, user_id: ada, role: 'member' })
    const headers = await headersOf(db, api, ada)
    const request = (method: string, path: string, body?: object, extra = headers) =>
      api.request(method, `/app${path}`, { key: null, headers: extra, ...(body && { body }) })

    const before = await request('GET', '/session')
    assert.deepEqual(
      before.body.organizations.map(({ id, role }: { id: string; role: string }) => [id, role]),
      [
        [api.organizationId, 'owner'],
        [other, 'member'],
      ],
    )
    const switched = await request('PUT', '/session/organization', { organization_id: other })
    assert.deepEqual(
      [switched.status, switched.body.organization.id, switched.body.role],
      [200, other, 'member'],
    )
    assert.equal((await request('GET', '/session')).status, 401, 'the cookie before')

    const Cookie = switched.headers.get('set-cookie')!.split(';')[0]!
    // A page of the previous organization has its CSRF token, while the browser sends the new cookie.
    const stale = await request('DELETE', '/session', undefined, { ...headers, Cookie })
    assert.deepEqual([stale.status, stale.body.error.type], [403, 'csrf_token_invalid'])
    const now = { Cookie, 'X-CSRF-Token': switched.body.csrf_token }
    assert.equal((await request('GET', '/organization', undefined, now)).body.name, 'Other')
    assert.equal((await request('GET', '/keys', undefined, now)).status, 403, 'the role is that of a member')

    await db.system('memberships').where({ organization_id: other, user_id: ada }).delete()
    assert.equal((await request('GET', '/session', undefined, now)).status, 401)
  })

  it('cannot switch to one of others', async () => {
    const { db, api } = suite
    const app = await signIn(db, api)
    const other = await createOrganization(db)
    for (const organization_id of [other, '0198c1de-7d5e-7c11-b8a4-2f4f3c1d9a10'])
      assert.equal((await app('PUT', '/session/organization', { organization_id })).status, 404)
    assert.equal((await app('GET', '/session')).body.organization.id, api.organizationId)
    assert.equal((await app('PUT', '/session/organization', {})).status, 422)
  })
})
