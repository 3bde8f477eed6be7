import assert from 'node:assert/strict'
import { createUser } from '../../../db/access/users.ts'
import type { Answer } from '../../support/answer.ts'
import { startApi, type TestApi } from '../../support/api.ts'
import { createTestDatabase, type TestDatabase } from '../../support/database.ts'
import { planted } from '../../support/planted.ts'

const PASSWORD = planted('correct horse battery staple')

describe('sign-up', () => {
  let db: TestDatabase
  let open: TestApi
  before(async () => {
    db = await createTestDatabase()
    open = await startApi(db, { SIGN_UP: 'open' })
  })
  // Attempts are limited per address, which all tests share.
  beforeEach(() => db.system('limit_windows').delete())
  after(async () => {
    await open.close()
    await db.drop()
  })

  const post = (path: string, body: unknown, api = open) =>
    api.request('POST', `/app${path}`, { key: null, body })
  const signUp = (email: string, more: object = {}, api = open) =>
    post('/signup', { organization_name: 'Acme', name: 'Ada', email, password: PASSWORD, ...more }, api)
  const signIn = (email: string, password = PASSWORD) => post('/session', { email, password })
  const organizationsOf = async (email: string): Promise<{ name: string; plan: string; role: string }[]> =>
    db
      .system('organizations as o')
      .join('memberships as m', 'm.organization_id', 'o.id')
      .join('users as u', 'u.id', 'm.user_id')
      .where('u.email', email)
      .orderBy('o.id')
      .select('o.name', 'o.plan', 'm.role')

  it('makes an organization on the plan Free, whose owner can sign in and write', async () => {
    const { status, body } = await signUp('ada@example.com', { organization_name: '  Acme  ' })
    assert.deepEqual(
      [status, body],
      [201, { object: 'sign_up', email: 'ada@example.com', confirmation: 'none' }],
    )
    const session = await signIn('ADA@example.com')
    assert.deepEqual(
      [session.status, session.body.role, session.body.user.name, session.body.organization.name],
      [201, 'owner', 'Ada', 'Acme'],
    )
    const headers = {
      Cookie: session.headers.get('set-cookie')!.split(';')[0]!,
      'X-CSRF-Token': session.body.csrf_token,
    }
    const key = await open.request('POST', '/app/keys', {
      key: null,
      headers,
      body: { name: 'First', scopes: ['contacts:write'] },
    })
    const created = await open.request('POST', '/v1/objects/contacts', {
      key: key.body.key,
      body: { email: 'grace@example.com' },
    })
    assert.equal(created.status, 201)
    const log = await open.request('GET', '/app/audit-log?action=organization.created', {
      key: null,
      headers,
    })
    const [entry] = log.body.data
    assert.deepEqual([entry.actor.name, entry.target.name, entry.details], ['Ada', 'Acme', { plan: 'free' }])
    assert.deepEqual(await organizationsOf('ada@example.com'), [
      { name: 'Acme', plan: 'free', role: 'owner' },
    ])
  })

  it('cannot be used up by a stranger', async () => {
    const behind = await startApi(db, { SIGN_UP: 'open', TRUSTED_PROXIES: '1' })
    try {
      const from = async (address: string, email = 'target@example.com') => {
        const body = { organization_name: 'Acme', name: 'Ada', email, password: PASSWORD }
        const headers = { 'X-Forwarded-For': address }
        return (await behind.request('POST', '/app/signup', { key: null, body, headers })).status
      }
      const stranger = []
      for (let i = 0; i < 4; i++) stranger.push(await from('198.51.100.7'))
      assert.deepEqual(stranger, [201, 201, 201, 429])
      assert.equal(await from('203.0.113.9'), 201)
      // The address is not flooded from many clients either.
      const windows = db.system('limit_windows').where({ subject: 'sign-up email target@example.com' })
      assert.deepEqual(await windows.clone().pluck('used'), [4], 'what one client is refused does not count')
      await windows.update({ used: 29 })
      assert.deepEqual([await from('192.0.2.1'), await from('192.0.2.2')], [201, 429])
    } finally {
      await behind.close()
    }
  })

  it('answers an address with an account as a new one, and makes nothing without its password', async () => {
    const { organizationId } = open
    const bob = { email: 'bob@example.com', name: 'Bob', password: PASSWORD }
    await createUser(db.system, { ...bob, organizationId, role: 'member' })
    const timed = async (email: string, password: string) => {
      const started = performance.now()
      const { status, body } = await signUp(email, { password })
      return { status, body: { ...body, email: '' }, ms: performance.now() - started }
    }
    const before = Number((await db.system('organizations').count())[0]!.count)
    const guessed = await timed('BOB@example.com', 'the password of Eve')
    assert.equal(Number((await db.system('organizations').count())[0]!.count), before)
    const fresh = await timed('new@example.com', 'the password of Eve')
    assert.deepEqual([guessed.status, guessed.body], [fresh.status, fresh.body])
    assert.ok(guessed.ms >= 495 && fresh.ms >= 495, `${guessed.ms} ${fresh.ms}`)
    assert.equal((await signIn('bob@example.com', 'the password of Eve')).status, 401)
    assert.equal((await signIn('bob@example.com')).body.role, 'member')

    // With the password of the account, the sign-up adds an organization to it.
    await signUp('bob@example.com', { organization_name: 'Of Bob', name: 'Robert' })
    const { body } = await signIn('bob@example.com')
    assert.deepEqual(
      body.organizations.map(({ name, role }: { name: string; role: string }) => [name, role]),
      [
        ['Test', 'member'],
        ['Of Bob', 'owner'],
      ],
    )
    assert.equal(body.user.name, 'Bob')
  })

  it('makes one account of two concurrent sign-ups, which get the same answer', async () => {
    const answers = await Promise.all(
      ['One', 'Two'].map((organization_name) => signUp('twice@example.com', { organization_name })),
    )
    assert.deepEqual(
      answers.map(({ status }) => status),
      [201, 201],
    )
    assert.equal((await organizationsOf('twice@example.com')).length, 1)
  })

  it('refuses look-alike addresses and weak passwords, all at once and without an echo of the password', async () => {
    for (const email of [
      'b\u043eb@example.com', // Cyrillic о
      '\uff42ob@example.com', // fullwidth b
      'bo\u200bb@example.com', // zero-width space
      '\u212aate@example.com', // Kelvin sign
      'bob@example.com, eve@example.com',
    ]) {
      const { status, body } = await signUp(email, { name: ' ', password: 'hunter2' })
      assert.equal(status, 422, email)
      assert.deepEqual(body.detail.map(({ loc }: { loc: string[] }) => loc[1]).sort(), [
        'email',
        'name',
        'password',
      ])
      assert.doesNotMatch(JSON.stringify(body), /hunter2/)
    }
    assert.equal((await signUp('more@example.com', { plan: 'enterprise' })).status, 422)
  })

  it('is limited per email and per address', async () => {
    const statuses = async (emails: string[]) => {
      const answers: Answer[] = []
      for (const email of emails) answers.push(await signUp(email, { password: 'short' }))
      return answers.map(({ status }) => status)
    }
    // Refused before it is counted.
    assert.deepEqual(await statuses(['x@example.com']), [422])
    await db.system.raw(
      `insert into limit_windows (organization_id, subject, window_start, used, ends_at)
       select '00000000-0000-0000-0000-000000000000', subject, to_timestamp(floor(extract(epoch from now()) / 3600) * 3600),
         used, now() + interval '1 hour'
       from (values ('sign-up email x@example.com from 127.0.0.1', 3), ('sign-up address 127.0.0.1', 18)) rows (subject, used)`,
    )
    const limited = await signUp('X@example.com')
    assert.deepEqual([limited.status, limited.body.error.type], [429, 'rate_limited'])
    assert.ok(Number(limited.headers.get('retry-after')) > 0)
    assert.equal((await signUp('y@example.com')).status, 201)
    assert.equal((await signUp('z@example.com')).status, 429)
  })

  it('is closed by default as soon as there is an organization, and always if the operator closes it', async () => {
    for (const env of [{}, { SIGN_UP: 'closed' }] as Record<string, string>[]) {
      const api = await startApi(db, env)
      const { status, body } = await signUp('eve@example.com', {}, api)
      assert.deepEqual([status, body.error.message], [404, 'sign-up is closed'])
      assert.equal(
        (await post('/signup/none', { password: PASSWORD }, api)).body.error.message,
        'sign-up is closed',
      )
      await api.close()
    }
    assert.deepEqual(await organizationsOf('eve@example.com'), [])
  })

  it('makes the first organization of an empty service by default, once, on the plan Enterprise', async () => {
    const empty = await createTestDatabase()
    const api = await startApi(empty)
    try {
      await empty.system('organizations').delete()
      const answers = await Promise.all(
        ['ada@example.com', 'eve@example.com'].map((email) => signUp(email, {}, api)),
      )
      assert.deepEqual(answers.map(({ status }) => status).sort(), [201, 404])
      const made = await empty.system('organizations').select('plan')
      assert.deepEqual(made, [{ plan: 'enterprise' }])
      assert.equal((await empty.system('users')).length, 1)
    } finally {
      await api.close()
      await empty.drop()
    }
  })
})
