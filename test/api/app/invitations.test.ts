import assert from 'node:assert/strict'
import { createUser } from '../../../db/access/users.ts'
import type { Answer } from '../../support/answer.ts'
import { createMember, createOrganization } from '../../support/database.ts'
import { planted } from '../../support/planted.ts'
import { type App, signIn, signInAs } from '../../support/session.ts'
import { withApi } from '../../support/with-api.ts'

const PASSWORD = planted('correct horse battery staple')

describe('invitations', () => {
  const suite = withApi()
  let owner: App
  before(async () => {
    owner = await signIn(suite.db, suite.api)
  })
  afterEach(() => suite.db.system('invitations').delete())
  // Attempts are limited per address, which all tests share.
  beforeEach(() => suite.db.system('limit_windows').delete())

  const invite = (email: string, role = 'member', app = owner) => app('POST', '/invitations', { email, role })
  const accept = (token: string, body: object): Promise<Answer> =>
    suite.api.request('POST', `/app/invitations/${token}/accept`, { key: null, body })
  const sessionAfter = ({ headers }: Answer) =>
    suite.api.request('GET', '/app/session', {
      key: null,
      headers: { Cookie: headers.get('set-cookie')!.split(';')[0]! },
    })

  it('make an account, a membership and a session, once', async () => {
    const { body } = await invite('Grace@example.com', 'admin')
    assert.equal(body.link, `http://localhost:8080/app/invitations/${body.token}/accept`)
    const stored = await suite.db.system('invitations').select(suite.db.system.raw('to_jsonb(invitations)'))
    const listed = await owner('GET', '/invitations')
    assert.deepEqual([listed.body.total, listed.body.data[0].email], [1, 'Grace@example.com'])
    assert.ok(!JSON.stringify([stored, listed.body]).includes(body.token))

    const accepted = await accept(body.token, { name: 'Grace', password: PASSWORD })
    assert.equal(accepted.status, 201)
    const session = await sessionAfter(accepted)
    assert.deepEqual(
      [session.body.user.name, session.body.role, session.body.organization.id],
      ['Grace', 'admin', suite.api.organizationId],
    )
    const again = await accept(body.token, { name: 'Eve', password: PASSWORD })
    const unknown = await accept('x'.repeat(43), { name: 'Eve', password: PASSWORD })
    assert.deepEqual([again.status, again.body.error.message], [404, unknown.body.error.message])
    const signedIn = await suite.api.request('POST', '/app/session', {
      key: null,
      body: { email: 'grace@EXAMPLE.com', password: PASSWORD },
    })
    assert.equal(signedIn.status, 201)
  })

  it('are accepted by one of two concurrent requests', async () => {
    const { body } = await invite('twice@example.com')
    const answers = await Promise.all(
      ['One', 'Two'].map((name) => accept(body.token, { name, password: PASSWORD })),
    )
    const statuses = answers.map(({ status }) => status).sort()
    assert.equal(statuses[0], 201)
    assert.ok([401, 404, 409].includes(statuses[1]!), `${statuses}`)
    const users = await suite.db.system('users').where({ email: 'twice@example.com' })
    assert.equal(users.length, 1)
  })

  it('need the password of an account that exists, and add it to the organization', async () => {
    const { db } = suite
    const elsewhere = await createOrganization(db, { name: 'Elsewhere' })
    const ada = { email: 'ada@example.com', name: 'Ada', password: PASSWORD }
    const id = await createUser(db.system, { ...ada, organizationId: elsewhere, role: 'owner' })
    const { body } = await invite('ADA@example.com')
    const guessed = await accept(body.token, { name: 'Eve', password: 'a password of Eve' })
    assert.equal(guessed.status, 401)
    const accepted = await accept(body.token, { password: PASSWORD })
    assert.deepEqual([accepted.status, accepted.body.user.id, accepted.body.role], [201, id, 'member'])
    assert.deepEqual(
      accepted.body.organizations.map(({ name, role }: { name: string; role: string }) => [name, role]),
      [
        ['Elsewhere', 'owner'],
        ['Test', 'member'],
      ],
    )
  })

  it('limit guesses of the password of an account', async () => {
    const ada = { email: 'guess@example.com', name: 'Ada', password: PASSWORD }
    await createUser(suite.db.system, {
      ...ada,
      organizationId: await createOrganization(suite.db),
      role: 'owner',
    })
    const { body } = await invite(ada.email)
    const answers = await Promise.all(
      Array.from({ length: 12 }, () => accept(body.token, { password: 'a password of Eve' })),
    )
    assert.ok(answers.filter(({ status }) => status === 429).length >= 2)
  })

  it('end when they expire, are withdrawn or replaced', async () => {
    const join = { name: 'Late', password: PASSWORD }
    const expired = (await invite('late@example.com')).body
    await suite.db.system('invitations').where({ id: expired.id }).update({ expires_at: new Date() })
    assert.equal((await accept(expired.token, join)).status, 404)
    const replaced = (await invite('LATE@example.com')).body
    const current = (await invite('late@example.com')).body
    assert.equal((await accept(replaced.token, join)).status, 404)
    assert.equal((await owner('DELETE', `/invitations/${current.id}`)).status, 200)
    assert.equal((await accept(current.token, join)).status, 404)
    assert.equal((await owner('DELETE', `/invitations/${current.id}`)).status, 404)
    assert.equal((await suite.db.system('users').where({ email: 'late@example.com' })).length, 0)
  })

  it('refuse look-alike addresses, and members in any case', async () => {
    const { db, api } = suite
    const password = PASSWORD
    const bob = { email: 'bob@example.com', name: 'Bob', password }
    await createUser(db.system, { ...bob, organizationId: api.organizationId, role: 'member' })
    const again = await invite('BOB@Example.com')
    assert.deepEqual([again.status, again.body.error.param], [409, 'email'])
    for (const email of [
      'b\u043eb@example.com', // Cyrillic о
      'bob@ex\u0430mple.com', // Cyrillic а
      '\uff42ob@example.com', // fullwidth b
      'bo\u200bb@example.com', // zero-width space
      'bob@example\u3002com', // ideographic full stop
      '\u212aate@example.com', // (Kelvin sign, whose lower case is k)
      'bob@example.com, eve@example.com',
      'bob',
    ]) {
      const { status, body } = await invite(email)
      assert.deepEqual([status, body.detail?.[0].loc], [422, ['body', 'email']], email)
      assert.match(body.error.message, /ASCII/)
    }
  })

  it('are made for roles up to the own one, and end with the membership of who made them', async () => {
    const { db, api } = suite
    const id = await createMember(db, api.organizationId, 'Mallory', 'admin')
    const admin = await signInAs(db, api, id)
    assert.equal((await invite('x@example.com', 'owner', admin)).status, 403)
    assert.equal((await invite('x@example.com', 'admin', await signIn(db, api, 'member'))).status, 403)
    const { body } = await invite('back@example.com', 'admin', admin)
    assert.equal((await owner('DELETE', `/members/${id}`)).status, 200)
    assert.equal((await accept(body.token, { name: 'Back', password: PASSWORD })).status, 404)
  })

  it('of an owner are replaced only by owners', async () => {
    const { db, api } = suite
    const { body } = await invite('boss@example.com', 'owner')
    const admin = await signIn(db, api, 'admin')
    const replacing = await invite('BOSS@example.com', 'member', admin)
    assert.deepEqual([replacing.status, replacing.body.error?.type], [403, 'insufficient_scope'])
    const accepted = await accept(body.token, { name: 'Boss', password: PASSWORD })
    assert.deepEqual([accepted.status, accepted.body.role], [201, 'owner'])
  })

  it('do not tell whether the address has an account, unless one is made', async () => {
    const ada = { email: 'known@example.com', name: 'Ada', password: PASSWORD }
    const elsewhere = await createOrganization(suite.db)
    await createUser(suite.db.system, { ...ada, organizationId: elsewhere, role: 'owner' })
    const probes = ['known@example.com', 'unknown@example.com'].map(async (email) => {
      const { body } = await invite(email)
      const answer = await accept(body.token, { password: 'a password of Eve' })
      return [answer.status, { ...answer.body.error, request_id: '' }]
    })
    const [known, unknown] = await Promise.all(probes)
    assert.equal(known![0], 401)
    assert.deepEqual(known, unknown)
  })

  it('are refused with all errors, none of which echoes the password', async () => {
    const { body } = await invite('short@example.com')
    for (const sent of [{ password: 'hunter2' }, { name: '', password: 'hunter2', extra: 'hunter2' }]) {
      const answer = await accept(body.token, sent)
      assert.equal(answer.status, 422)
      assert.doesNotMatch(JSON.stringify(answer.body), /hunter2/)
    }
    const nameless = await accept(body.token, { password: PASSWORD })
    assert.equal(nameless.status, 401)
    assert.match(nameless.body.error.hint, /a name and a new password/)
  })
})
