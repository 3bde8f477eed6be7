import { deepEqual, equal, match, ok } from 'node:assert/strict'
import { runInNewContext } from 'node:vm'
import { createUser } from '../../db/access/users.ts'
import { insertEvents } from '../../db/events/outbox.ts'
import { createMember, createOrganization, testActor } from '../support/database.ts'
import { planted } from '../support/planted.ts'
import { type Receiver, startReceiver } from '../support/receiver.ts'
import { type App, headersOf, signIn } from '../support/session.ts'
import type { ReceivedMail } from '../support/smtp.ts'
import { until } from '../support/until.ts'
import { withMails } from '../support/with-mails.ts'

const PASSWORD = planted('correct horse battery staple')
const NEXT = planted('a new battery for the old horse')

describe('the mails of accounts', () => {
  const suite = withMails((mail) => ({ ...mail, PUBLIC_URL: 'http://localhost:8080', SIGN_UP: 'open' }))
  let { db, api, smtp } = suite
  let owner: App
  let receiver: Receiver
  before(async () => {
    ;({ db, api, smtp } = suite)
    receiver = await startReceiver()
    owner = await signIn(db, api)
  })
  beforeEach(() => db.system('limit_windows').delete())
  after(() => receiver?.close())

  const post = (path: string, body: object) => api.request('POST', path, { key: null, body })
  const signInWith = (email: string, password: string) => post('/app/session', { email, password })
  const mailTo = (address: string) => until(() => smtp.received.find(({ to }) => to.includes(address)))
  /** The row of a mail once its attempt is recorded. */
  const ended = (address: string) =>
    until(() =>
      db.system('account_mails').where({ address }).whereNotNull('ended_at').orderBy('id', 'desc').first(),
    )
  const textOf = ({ text }: ReceivedMail) =>
    text
      .slice(text.indexOf('\r\n\r\n') + 4)
      .replaceAll('=\r\n', '')
      .replaceAll(/(?:=[0-9A-F]{2})+/g, (bytes) => Buffer.from(bytes.replaceAll('=', ''), 'hex').toString())
  /** The path of the link in a mail. Its text contains no other link. */
  const pathIn = (mail: ReceivedMail) => {
    const links = [...textOf(mail).matchAll(/http:\/\/localhost:8080(\/\S+)/g)].map(([, path]) => path!)
    equal(links.length, 1, textOf(mail))
    return links[0]!
  }
  const tokenOf = (path: string) => path.split('/').find((part) => part.length === 43)!
  /** Asserts that the token is neither in any row nor in `shown`, which admins see. */
  const assertHidden = async (token: string, ...shown: unknown[]) => {
    const tables = ['account_mails', 'invitations', 'password_resets', 'sign_ups', 'audit_log']
    const rows = await Promise.all(
      tables.map((table) => db.system(table).select(db.system.raw('to_jsonb(??)::text', [table]))),
    )
    ok(!JSON.stringify([rows, shown]).includes(token))
  }

  it('bring the link of an invitation to the invited person, and not to the admin', async () => {
    const invited = await owner('POST', '/invitations', { email: 'grace@example.com', role: 'admin' })
    deepEqual([invited.status, 'token' in invited.body, 'link' in invited.body], [201, false, false])
    deepEqual(invited.body.mail, { sent_at: null, problem: null })
    const mail = await mailTo('grace@example.com')
    deepEqual([mail.header('subject'), mail.header('from')], ['Invitation to Test', 'crm@example.com'])
    match(textOf(mail), /^owner invites you to join “Test”:/)
    const path = pathIn(mail)
    const row = await ended('grace@example.com')
    deepEqual([row.sealed, row.problem], [null, null])
    const listed = (await owner('GET', '/invitations')).body.data[0]
    equal(listed.mail.sent_at, row.sent_at.toISOString())
    await assertHidden(tokenOf(path), invited.body, listed)
    const accepted = await post(path, { name: 'Grace', password: PASSWORD })
    deepEqual([accepted.status, accepted.body.role], [201, 'admin'])
  })

  it('show why an invitation did not arrive, are repeated, and end with a withdrawn one', async () => {
    await owner('POST', '/invitations', { email: 'unknown@example.com', role: 'member' })
    match((await ended('unknown@example.com')).problem, /550 no such user/)
    match((await owner('GET', '/invitations')).body.data[0].mail.problem, /550/)

    smtp.behave({ at: 'rcpt', code: 450, text: 'later' }, { at: 'rcpt', code: 450, text: 'later' })
    const row = (address: string) => db.system('account_mails').where({ address })
    const dueNow = (address: string) => row(address).update({ due_at: new Date() })
    for (const email of ['late@example.com', 'gone@example.com']) {
      await owner('POST', '/invitations', { email, role: 'member' })
      const { sealed } = await until(() => row(email).whereNotNull('problem').first())
      match(sealed, /^v1\./)
    }
    await owner('DELETE', `/invitations/${(await owner('GET', '/invitations')).body.data[0].id}`)
    await Promise.all(['late@example.com', 'gone@example.com'].map(dueNow))
    const path = pathIn(await mailTo('late@example.com'))
    equal((await post(path, { name: 'Late', password: PASSWORD })).status, 201)
    const { sealed, sent_at } = await ended('gone@example.com')
    deepEqual([sealed, sent_at, smtp.received.length], [null, null, 1])
  })

  it('let a user who forgot the password set a new one, in whatever organizations, and nobody else', async () => {
    const { organizationId } = api
    const email = 'Bob@example.com'
    const id = await createUser(db.system, {
      email,
      name: 'Bob',
      password: PASSWORD,
      organizationId,
      role: 'member',
    })
    const other = await createOrganization(db)
    await db.system('memberships').insert({ organization_id: other, user_id: id, role: 'owner' })
    const Cookie = (await headersOf(db, api, id)).Cookie
    const ask = async (address: string) => {
      const { status, body } = await post('/app/password-resets', { email: address })
      return { status, body: { ...body, email: '' } }
    }
    deepEqual(await ask('bob@EXAMPLE.com'), await ask('nobody@example.com'))
    const path = pathIn(await mailTo(email))
    await ended(email)
    await assertHidden(tokenOf(path))
    equal((await post(path, { password: 'short' })).status, 422)
    deepEqual((await post(path, { password: NEXT })).body, { object: 'password_reset', completed: true })
    equal((await post(path, { password: PASSWORD })).status, 404)
    equal((await api.request('GET', '/app/session', { key: null, headers: { Cookie } })).status, 401)
    deepEqual(
      [(await signInWith(email, PASSWORD)).status, (await signInWith(email, NEXT)).status],
      [401, 201],
    )
    const entries = await db.system('audit_log').where({ target_id: id, action: 'member.password_changed' })
    deepEqual(entries.map(({ organization_id }) => organization_id).sort(), [organizationId, other].sort())
    equal(smtp.received.length, 1, 'nothing went to the unknown address')
  })

  it('bring the link of a reset that an admin makes to the member, and not to the admin', async () => {
    const id = await createMember(db, api.organizationId, 'Carol')
    const { status, body } = await owner('POST', `/members/${id}/password-reset`)
    const { expires_at, ...shown } = body
    deepEqual([status, shown], [201, { object: 'password_reset_link', mailed_to: `${id}@example.com` }])
    const path = pathIn(await mailTo(`${id}@example.com`))
    equal((await post(path, { password: NEXT })).status, 200)
    equal((await signInWith(`${id}@example.com`, NEXT)).status, 201)
    // The limit is three an hour.
    for (const expected of [201, 201, 429])
      equal((await owner('POST', `/members/${id}/password-reset`)).status, expected)
  })

  it('confirm a sign-up: without the link, or with another password, there is no organization', async () => {
    const signUp = {
      organization_name: 'Of Dora',
      name: 'Dora',
      email: 'dora@example.com',
      password: PASSWORD,
    }
    const { status, body } = await post('/app/signup', signUp)
    deepEqual([status, body], [201, { object: 'sign_up', email: signUp.email, confirmation: 'mail' }])
    const mail = await mailTo(signUp.email)
    // Whoever signs up chooses the address: the mail must not contain a message of theirs.
    ok(!/Dora|Of Dora/.test(textOf(mail) + mail.header('subject')))
    const path = pathIn(mail)
    await ended(signUp.email)
    await assertHidden(tokenOf(path))
    equal((await signInWith(signUp.email, PASSWORD)).status, 401)
    equal((await post(path, { password: NEXT })).status, 401)
    equal(await db.system('users').where({ email: signUp.email }).first(), undefined)

    const confirmed = await post(path, { password: PASSWORD })
    deepEqual(
      [confirmed.status, confirmed.body.organization.name, confirmed.body.organization.plan],
      [201, 'Of Dora', 'free'],
    )
    equal((await post(path, { password: PASSWORD })).status, 404)
    const Cookie = confirmed.headers.get('set-cookie')!.split(';')[0]!
    equal((await api.request('GET', '/app/session', { key: null, headers: { Cookie } })).body.role, 'owner')
  })

  it('tell only the owner of an address that it has an account', async () => {
    const { organizationId } = api
    const email = 'erin@example.com'
    await createUser(db.system, { email, name: 'Erin', password: PASSWORD, organizationId, role: 'member' })
    const signUp = { organization_name: 'Of Erin', name: 'Eve', email, password: NEXT }
    const known = await post('/app/signup', signUp)
    const unknown = await post('/app/signup', { ...signUp, email: 'fay@example.com' })
    deepEqual([known.status, { ...known.body, email: '' }], [unknown.status, { ...unknown.body, email: '' }])
    const told = await mailTo(email)
    equal(told.header('subject'), 'You already have an account')
    ok(!textOf(told).includes('/app/') && !textOf(told).includes('Eve'))
    equal((await db.system('sign_ups').where({ email })).length, 0)

    await db.system('limit_windows').delete()
    smtp.behave()
    await post('/app/signup', { ...signUp, password: PASSWORD })
    const { status, body } = await post(pathIn(await mailTo(email)), { password: PASSWORD })
    deepEqual(
      [status, body.user.name, body.organization.name, body.organizations.length],
      [201, 'Erin', 'Of Erin', 2],
    )
  })

  it('tell the owners that the service has deactivated an outgoing webhook, as the audit log does', async () => {
    receiver.behave(410)
    const { body } = await owner('POST', '/webhooks/outgoing', {
      name: 'Billing',
      url: 'https://example.com/',
      events: ['test.gone'],
    })
    await db.system('outgoing_webhooks').where({ id: body.id }).update({ url: receiver.url })
    const before = smtp.received.length
    await db.tenant(api.organizationId, testActor, (tx) =>
      insertEvents(tx, [{ name: 'test.gone', data: {} }]),
    )
    const mail = await until(() => smtp.received.slice(before)[0])
    deepEqual(mail.to, [(await owner('GET', '/session')).body.user.email])
    match(mail.header('subject')!, /Billing was deactivated/)
    match(mail.text, /the receiver answered 410 Gone/)
    const log = await owner('GET', `/audit-log?target_id=${body.id}&action=outgoing_webhook.deactivated`)
    const [{ actor, details }] = log.body.data
    deepEqual([actor.type, details], ['system', { reason: 'the receiver answered 410 Gone' }])
  })

  it('link to a form that works in a browser, and that is the same for every token', async () => {
    await owner('POST', '/invitations', { email: 'hana@example.com', role: 'member' })
    const path = pathIn(await mailTo('hana@example.com'))
    const page = await api.request('GET', path, { key: null })
    match(page.headers.get('content-type')!, /^text\/html/)
    deepEqual(
      ['cache-control', 'referrer-policy', 'x-robots-tag'].map((name) => page.headers.get(name)),
      ['no-store', 'no-referrer', 'noindex'],
    )
    equal((await api.request('GET', path.replace(tokenOf(path), 'x'), { key: null })).body, page.body)
    match(
      page.headers.get('content-security-policy')!,
      /default-src 'none'.*script-src 'sha256-\S+'; connect-src 'self'/,
    )

    const script = /<script>([\s\S]*)<\/script>/.exec(page.body)![1]!
    const done = /data-done="([^"]+)"/.exec(page.body)![1]!
    const said = { textContent: '', dataset: { done } }
    let submit: (event: object) => Promise<void> = async () => {}
    let removed = false
    const form = {
      addEventListener: (_: string, listener: typeof submit) => {
        submit = listener
      },
      remove: () => {
        removed = true
      },
    }
    let fields: [string, string][] = []
    runInNewContext(script, {
      document: { querySelector: (selector: string) => (selector === 'form' ? form : said) },
      location: { pathname: path },
      fetch: (to: string, options: RequestInit) => fetch(api.url + to, options),
      FormData: class {
        [Symbol.iterator] = () => fields[Symbol.iterator]()
      },
      Object,
      JSON,
    })
    const send = async (...given: [string, string][]) => {
      fields = given
      await submit({ preventDefault() {} })
      return said.textContent
    }
    match(await send(['name', ''], ['password', PASSWORD]), /if it has none, a name and a new password/)
    equal(removed, false)
    equal(await send(['name', 'Hana'], ['password', PASSWORD]), done)
    equal(removed, true)
    equal((await signInWith('hana@example.com', PASSWORD)).status, 201)
    // Only links respond with a form.
    equal((await api.request('GET', '/app/invitations/x/accept/y', { key: null })).status, 401)
  })
})
