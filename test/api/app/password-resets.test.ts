import assert from 'node:assert/strict'
import { createUser } from '../../../db/access/users.ts'
import type { MemberRole } from '../../../db/model/access/roles.ts'
import { startApi } from '../../support/api.ts'
import { createMember, createOrganization } from '../../support/database.ts'
import { planted } from '../../support/planted.ts'
import { type App, signIn, signInAs } from '../../support/session.ts'
import { withApi } from '../../support/with-api.ts'

const PASSWORD = planted('correct horse battery staple')
const NEXT = planted('a new battery for the old horse')

describe('password resets', () => {
  const suite = withApi()
  let owner: App
  before(async () => {
    owner = await signIn(suite.db, suite.api)
  })
  beforeEach(() => suite.db.system('limit_windows').delete())

  let users = 0
  async function user(role: MemberRole = 'member') {
    const email = `user${++users}@example.com`
    const values = { email, name: `User ${users}`, password: PASSWORD, role }
    const id = await createUser(suite.db.system, { ...values, organizationId: suite.api.organizationId })
    return { id, email }
  }
  const post = (path: string, body: object) => suite.api.request('POST', `/app${path}`, { key: null, body })
  const linkFor = (id: string, app = owner) => app('POST', `/members/${id}/password-reset`)
  const signInWith = async (email: string, password: string) =>
    (await post('/session', { email, password })).status

  it('set a new password once, and end all sessions of the user', async () => {
    const { db, api } = suite
    const { id, email } = await user()
    const sessions = [await signInAs(db, api, id), await signInAs(db, api, id)]
    const { status, body } = await linkFor(id)
    assert.deepEqual([status, body.link], [201, `http://localhost:8080/app/password-resets/${body.token}`])
    const stored = await db.system('password_resets').select(db.system.raw('to_jsonb(password_resets)'))
    assert.ok(!JSON.stringify(stored).includes(body.token))
    const done = await post(`/password-resets/${body.token}`, { password: NEXT })
    assert.equal(done.status, 200)
    for (const app of sessions) assert.equal((await app('GET', '/session')).status, 401)
    assert.deepEqual([await signInWith(email, PASSWORD), await signInWith(email, NEXT)], [401, 201])
    const again = await post(`/password-resets/${body.token}`, { password: PASSWORD })
    const unknown = await post(`/password-resets/${'x'.repeat(43)}`, { password: PASSWORD })
    assert.deepEqual([again.status, again.body.error.message], [404, unknown.body.error.message])
    assert.equal(await signInWith(email, NEXT), 201)
  })

  it('end when they expire, are replaced, or the member gets another role', async () => {
    const { id, email } = await user()
    const refused = async (token: string) =>
      assert.equal((await post(`/password-resets/${token}`, { password: NEXT })).status, 404)
    const expired = (await linkFor(id)).body.token
    await suite.db.system('password_resets').update({ expires_at: new Date() })
    await refused(expired)
    const replaced = (await linkFor(id)).body.token
    const current = (await linkFor(id)).body.token
    await refused(replaced)
    await owner('PATCH', `/members/${id}`, { role: 'owner' })
    await refused(current)
    assert.equal(await signInWith(email, PASSWORD), 201)
  })

  it('are made for roles up to the own one, and only for members', async () => {
    const { db, api } = suite
    const admin = await signIn(db, api, 'admin')
    const [boss, bob] = [await user('owner'), await user()]
    assert.equal((await linkFor(boss.id, admin)).status, 403)
    assert.equal((await linkFor(bob.id, await signIn(db, api, 'member'))).status, 403)
    assert.equal((await linkFor(bob.id, admin)).status, 201)
    const stranger = await createMember(db, await createOrganization(db))
    assert.equal((await linkFor(stranger)).status, 404)
  })

  it('do not let the admins of one organization into another of the user', async () => {
    const { db } = suite
    const { id, email } = await user()
    const before = (await linkFor(id)).body.token
    const other = await createOrganization(db)
    await db.system('memberships').insert({ organization_id: other, user_id: id, role: 'owner' })
    // The link was created while the user belonged to one organization only.
    assert.equal((await post(`/password-resets/${before}`, { password: NEXT })).status, 404)
    assert.equal(await signInWith(email, NEXT), 401)
    const refused = await linkFor(id)
    assert.deepEqual([refused.status, refused.body.error.type], [409, 'conflict'])
  })

  it('can be asked for: the answer and its time do not tell whether the address exists', async () => {
    const { email, id } = await user()
    const ask = async (address: string) => {
      const started = performance.now()
      const { status, body } = await post('/password-resets', { email: address })
      return { status, body: { ...body, email: '' }, ms: performance.now() - started }
    }
    const [known, unknown] = [await ask(email.toUpperCase()), await ask('nobody@example.com')]
    assert.deepEqual([known.status, known.body], [200, unknown.body])
    assert.ok(known.ms >= 295 && unknown.ms >= 295)
    const { body } = await owner('GET', `/audit-log?action=password_reset.requested&target_id=${id}`)
    assert.deepEqual([body.total, body.data[0].actor.type], [1, 'system'])
    assert.equal((await owner('GET', '/audit-log?action=password_reset.requested')).body.total, 1)
  })

  it('cannot be silenced by a stranger', async () => {
    const { db } = suite
    const env = {
      TRUSTED_PROXIES: '1',
      SMTP_URL: 'smtp://127.0.0.1:1',
      MAIL_FROM: 'crm@example.com',
      PUBLIC_URL: 'http://localhost:8080',
    }
    const mailing = await startApi(db, env)
    try {
      const { email } = await user()
      const ask = async (from: string) =>
        (
          await mailing.request('POST', '/app/password-resets', {
            key: null,
            body: { email },
            headers: { 'X-Forwarded-For': from },
          })
        ).status
      const mails = () => db.system('account_mails').where({ address: email, kind: 'password_reset' })
      const strangers = Array.from({ length: 12 }, (_, i) => `198.51.${i}.7`)
      for (const from of strangers) for (let i = 0; i < 4; i++) await ask(from)
      assert.equal(await ask(strangers[0]!), 429, 'each client is limited')
      const before = (await mails()).length
      assert.ok(before <= 10, `${before} mails`)
      // The user gets no further mail, because the last one has a link that works.
      assert.equal(await ask('203.0.113.9'), 200)
      assert.equal((await mails()).length, before)
      // Once it was used, the next request of the user is mailed, whatever strangers asked for.
      await db.system('password_resets').delete()
      assert.equal(await ask('203.0.113.9'), 200)
      assert.equal((await mails()).length, before + 1)
    } finally {
      await mailing.close()
    }
  })

  it('can be asked for three times an hour', async () => {
    const statuses: number[] = []
    for (const email of ['a@example.com', 'A@example.com', 'a@example.com', 'a@example.com'])
      statuses.push((await post('/password-resets', { email })).status)
    assert.deepEqual(statuses, [200, 200, 200, 429])
    assert.equal((await post('/password-resets', { email: 'b@example.com' })).status, 200)
    assert.equal((await post('/password-resets', { email: 'b\u043eb@example.com' })).status, 422)
  })
})
