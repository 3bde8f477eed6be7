import assert from 'node:assert/strict'
import { createMember, createOrganization } from '../../support/database.ts'
import { signIn, signInAs } from '../../support/session.ts'
import { withApi } from '../../support/with-api.ts'

describe('members', () => {
  const suite = withApi()
  const member = (role: 'owner' | 'admin' | 'member', name = role) =>
    createMember(suite.db, suite.api.organizationId, name, role)
  const rolesOf = async () =>
    (await suite.db.system('memberships').where({ organization_id: suite.api.organizationId })).map(
      ({ role }) => role,
    )
  afterEach(() => suite.db.system('memberships').delete())

  it('are listed with role and email, oldest first, and only those of the organization', async () => {
    const { db, api } = suite
    const ada = await member('owner', 'owner')
    const bob = await member('member')
    await createMember(db, await createOrganization(db))
    const app = await signInAs(db, api, bob)
    const { body } = await app('GET', '/members')
    assert.deepEqual(
      body.data.map(({ id, role, email }: Record<string, string>) => [id, role, email]),
      [
        [ada, 'owner', `${ada}@example.com`],
        [bob, 'member', `${bob}@example.com`],
      ],
    )
    // API keys do not see email addresses.
    assert.equal((await api.request('GET', '/v1/users')).body.data[0].email, undefined)
  })

  it('get another role, which their next request has', async () => {
    const { db, api } = suite
    const owner = await signIn(db, api)
    const bob = await member('member')
    const app = await signInAs(db, api, bob)
    assert.equal((await app('GET', '/keys')).status, 403)
    const changed = await owner('PATCH', `/members/${bob}`, { role: 'admin' })
    assert.deepEqual([changed.status, changed.body.role], [200, 'admin'])
    assert.equal((await app('GET', '/keys')).status, 200)
    await owner('PATCH', `/members/${bob}`, { role: 'member' })
    assert.equal((await app('GET', '/keys')).status, 403)
    assert.equal((await owner('PATCH', `/members/${bob}`, { role: 'boss' })).status, 422)
  })

  it('are removed with their sessions in this organization only', async () => {
    const { db, api } = suite
    const owner = await signIn(db, api)
    const bob = await member('member')
    const app = await signInAs(db, api, bob)
    const other = await createOrganization(db)
    await db.system('memberships').insert({ organization_id: other, user_id: bob, role: 'owner' })
    const elsewhere = await signInAs(db, { ...api, organizationId: other }, bob)
    assert.equal((await owner('DELETE', `/members/${bob}`)).status, 200)
    assert.equal((await app('GET', '/session')).status, 401)
    assert.equal((await elsewhere('GET', '/session')).status, 200)
    assert.equal((await owner('DELETE', `/members/${bob}`)).status, 404)
  })

  it('may manage roles up to their own', async () => {
    const { db, api } = suite
    const boss = await member('owner')
    const [admin, bob] = [await signIn(db, api, 'admin'), await member('member')]
    const plain = await signInAs(db, api, bob)
    for (const [app, method, id, role] of [
      [admin, 'PATCH', boss, 'member'],
      [admin, 'PATCH', bob, 'owner'],
      [admin, 'DELETE', boss, undefined],
      [plain, 'PATCH', bob, 'owner'],
      [plain, 'DELETE', boss, undefined],
    ] as const) {
      const { status, body } = await app(method, `/members/${id}`, role && { role })
      assert.deepEqual([status, body.error.type], [403, 'insufficient_scope'])
    }
    assert.deepEqual((await rolesOf()).sort(), ['admin', 'member', 'owner'])
    assert.equal((await admin('PATCH', `/members/${bob}`, { role: 'admin' })).status, 200)
    assert.equal((await admin('DELETE', `/members/${bob}`)).status, 200)
  })

  it('include an owner: the last one is neither removed nor demoted', async () => {
    const { db, api } = suite
    const ada = await member('owner')
    const app = await signInAs(db, api, ada)
    for (const [method, body] of [
      ['DELETE', undefined],
      ['PATCH', { role: 'admin' }],
    ] as const) {
      const refused = await app(method, `/members/${ada}`, body)
      assert.deepEqual([refused.status, refused.body.error.type], [409, 'conflict'])
      assert.match(refused.body.error.hint, /another member/)
    }
    assert.equal((await app('PATCH', `/members/${ada}`, { role: 'owner' })).status, 200)
    await member('owner')
    assert.equal((await app('DELETE', `/members/${ada}`)).status, 200)
    assert.deepEqual(await rolesOf(), ['owner'])
  })

  it('include an owner also when all owners leave, or demote each other, at once', async () => {
    const { db, api } = suite
    for (let round = 0; round < 5; round++) {
      const ids = [await member('owner'), await member('owner'), await member('owner')]
      const apps = await Promise.all(ids.map((id) => signInAs(db, api, id)))
      await Promise.all(
        apps.map((app, i) =>
          round % 2
            ? app('DELETE', `/members/${ids[i]}`)
            : app('PATCH', `/members/${ids[(i + 1) % 3]}`, { role: 'member' }),
        ),
      )
      const roles = await rolesOf()
      assert.equal(roles.filter((role) => role === 'owner').length, 1, `round ${round}: ${roles}`)
      await db.system('memberships').delete()
    }
  })

  it('of other organizations are unknown', async () => {
    const { db, api } = suite
    const owner = await signIn(db, api)
    const stranger = await createMember(db, await createOrganization(db))
    for (const id of [stranger, 'x', '0198c1de-7d5e-7c11-b8a4-2f4f3c1d9a10']) {
      assert.equal((await owner('PATCH', `/members/${id}`, { role: 'admin' })).status, 404)
      assert.equal((await owner('DELETE', `/members/${id}`)).status, 404)
    }
  })
})
