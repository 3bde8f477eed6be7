import assert from 'node:assert/strict'
import { createServer, type IncomingMessage } from 'node:http'
import type { AddressInfo } from 'node:net'
import { setTimeout } from 'node:timers/promises'
import { createHttp } from '../../activities/http/client.ts'
import { createMailboxes } from '../../activities/mail/mailbox.ts'
import { incomingPolls } from '../../db/incoming/polls.ts'
import { unreadMail } from '../../db/model/incoming/mail.ts'
import { type IncomingThreads, incomingThreads } from '../../worker/polls/incoming-threads.ts'
import { poll } from '../../worker/queues/incoming-polls.ts'
import type { HttpResponse } from '../../workflows/effects/http.ts'
import { createKey, startApi, type TestApi } from '../support/api.ts'
import { createTestDatabase, type TestDatabase } from '../support/database.ts'
import { httpResponse } from '../support/http-response.ts'
import { MAIL_PASSWORD, mailOf, startImap } from '../support/imap.ts'
import { signIn } from '../support/session.ts'
import { until } from '../support/until.ts'
import { testLog } from '../support/worker.ts'

/** A service without webhooks: answers what `answer` returns. */
async function startService() {
  const calls: IncomingMessage[] = []
  let answer: (query: URLSearchParams) => { status?: number; type?: string; body: unknown } = () => ({
    body: [],
  })
  const server = createServer((request, response) => {
    calls.push(request)
    const {
      status = 200,
      type = 'application/json',
      body,
    } = answer(new URL(request.url!, 'http://a').searchParams)
    response
      .writeHead(status, { 'content-type': type })
      .end(typeof body === 'string' ? body : JSON.stringify(body))
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  return {
    calls,
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/list`,
    answers: (next: typeof answer) => {
      answer = next
    },
    close: () => server.close(),
  }
}

const person = (id: number) => ({
  id,
  email: `p${id}@example.com`,
  first_name: `P${id}`,
  last_name: 'Polled',
})
const people = (...ids: number[]) => ids.map(person)

describe('a polled source of an incoming webhook', function () {
  this.timeout(60_000)
  let db: TestDatabase
  let api: TestApi
  let app: Awaited<ReturnType<typeof signIn>>
  let service: Awaited<ReturnType<typeof startService>>
  const http = createHttp({ allow: ['127.0.0.0/8'] })
  const openMailbox = createMailboxes({ allow: ['127.0.0.0/8'] })
  before(async () => {
    db = await createTestDatabase()
    api = await startApi(db, { ALLOW_INSECURE_WEBHOOKS: 'true', EGRESS_ALLOW: '127.0.0.0/8' })
    app = await signIn(db, api)
    service = await startService()
  })
  after(async () => {
    service?.close()
    await http.close()
    await api?.close()
    await db?.drop()
  })

  async function createWebhook(source: object, more: object = {}): Promise<string> {
    const { status, body } = await app('POST', '/webhooks/incoming', {
      name: 'Polled',
      source: { type: 'http_list', url: service.url, ...source },
      ...more,
    })
    assert.equal(status, 201, JSON.stringify(body))
    return body.id
  }
  /** What threads were given. */
  const tasks: string[] = []
  const threads = incomingThreads((task) => tasks.push(task))
  const deps = () => ({
    db,
    log: testLog,
    http,
    openMailbox,
    threads,
    secretsKey: api.secretsKey,
  })
  const polled = async (id: string, more: object = {}) => {
    await poll({ ...deps(), ...more }, { organization_id: api.organizationId, id })
    return (await app('GET', `/webhooks/incoming/${id}`)).body
  }
  /** Polls until one succeeds; each transaction of the poll in turn is the last one of its worker. */
  const dyingAnywhere = async (id: string) => {
    for (let transactions = 0, died = true; died; transactions++) {
      let left = transactions
      const dying = {
        ...db,
        tenant: ((...args: Parameters<typeof db.tenant>) => {
          if (left-- <= 0) throw new Error('killed')
          return db.tenant(...args)
        }) as typeof db.tenant,
      }
      died = await polled(id, { db: dying }).then(
        () => false,
        (error) => /killed/.test(String(error)) || assert.fail(error),
      )
    }
  }
  const logs = async (id: string) =>
    (await db.system('incoming_logs').where({ webhook_id: id }).orderBy('id')).map(
      ({ status, action }) => action ?? status,
    )
  const contacts = async () =>
    (await db.system('contacts').where({ last_name: 'Polled' }).orderBy('first_name')).map(
      (one) => one.first_name,
    )
  afterEach(async () => {
    await db.system('contacts').delete()
    service.calls.length = 0
  })

  it('takes a page of many large items, each read in a thread', async () => {
    const id = await createWebhook({})
    const large = { notes: 'word '.repeat(2_000) }
    service.answers(() => ({ body: people(...Array(30).keys()).map((one) => ({ ...one, ...large })) }))
    tasks.length = 0
    assert.equal((await polled(id)).poll_problem, null)
    assert.equal((await contacts()).length, 30)
    assert.deepEqual([...new Set(tasks)], ['readPage', 'mapBody'])
  })

  it('gives each new item to the webhook once, whatever it lists again', async () => {
    const id = await createWebhook({ headers: { authorization: 'Bearer s3cret-of-the-source' } })
    service.answers(() => ({ body: people(1, 2) }))
    const first = await polled(id)
    assert.equal(first.poll_problem, null)
    assert.ok(new Date(first.next_poll_at).getTime() > Date.now() + 14 * 60_000)
    assert.deepEqual(first.source.header_names, ['authorization'])
    assert.ok(!JSON.stringify(first).includes('s3cret'))
    assert.equal(service.calls[0]!.headers.authorization, 'Bearer s3cret-of-the-source')
    service.answers(() => ({ body: { data: people(2, 3, 1) } }))
    await polled(id)
    await polled(id)
    assert.deepEqual(await contacts(), ['P1', 'P2', 'P3'])
    assert.deepEqual(await logs(id), ['Created', 'Created', 'Created'])
  })

  it('goes on from its cursor, and asks the last one again', async () => {
    const id = await createWebhook({
      items: 'data',
      cursor: { param: 'after', from: 'last_item', path: 'id' },
    })
    let all = [1, 2, 3, 4, 5]
    service.answers((query) => ({
      body: { data: people(...all.filter((n) => n > Number(query.get('after') ?? 0)).slice(0, 2)) },
    }))
    await polled(id)
    assert.deepEqual(await contacts(), ['P1', 'P2', 'P3', 'P4', 'P5'])
    all = [...all, 6]
    service.calls.length = 0
    await polled(id)
    assert.deepEqual(
      service.calls.map(({ url }) => url),
      ['/list?after=5', '/list?after=6'],
    )
    assert.deepEqual(await logs(id), Array(6).fill('Created'))
  })

  it('neither loses nor doubles an item if its worker dies anywhere', async () => {
    const id = await createWebhook({
      items: 'data',
      cursor: { param: 'after', from: 'last_item', path: 'id' },
    })
    service.answers((query) => {
      const ids = Array.from({ length: 120 }, (_, i) => i + 1).filter(
        (n) => n > Number(query.get('after') ?? 0),
      )
      return { body: { data: people(...ids.slice(0, 60)) } }
    })
    await dyingAnywhere(id)
    assert.equal((await contacts()).length, 120)
    assert.deepEqual(await logs(id), Array(120).fill('Created'))
  })

  it('takes only what comes after its first poll, if it shall not take what exists', async () => {
    const id = await createWebhook({ existing: false })
    service.answers(() => ({ body: people(1, 2) }))
    await polled(id)
    assert.deepEqual(await contacts(), [])
    service.answers(() => ({ body: people(1, 2, 3) }))
    await polled(id)
    assert.deepEqual(await contacts(), ['P3'])
  })

  it('logs an item that cannot be written once, beside those that can', async () => {
    const id = await createWebhook(
      {},
      {
        field_mapping: {
          mode: 'manual',
          rules: [
            { from: 'email', to: 'email' },
            { from: 'first_name', to: 'first_name' },
            { from: 'last_name', to: 'last_name' },
          ],
        },
      },
    )
    service.answers(() => ({ body: [person(1), { ...person(2), email: 'no address' }, person(3)] }))
    await polled(id)
    await polled(id)
    assert.deepEqual(await contacts(), ['P1', 'P3'])
    assert.deepEqual((await logs(id)).sort(), ['Created', 'Created', 'Failed'])
  })

  it('says why a poll failed, tries again sooner than usual, and forgets it once it succeeds', async () => {
    const id = await createWebhook({ interval_minutes: 60 })
    const problems = [
      [{ status: 503, body: '' }, /answered 503/, 1],
      [{ body: '{"a":' }, /JSON/, 5],
      [{ body: { a: 1 } }, /no list/, 15],
      [{ body: { a: 1 } }, /no list/, 60],
      [{ body: { a: 1 } }, /no list/, 60],
    ] as const
    for (const [i, [answer, reason, minutes]] of problems.entries()) {
      service.answers(() => answer)
      const { poll_problem, poll_failures, next_poll_at, polled_at } = await polled(id)
      assert.match(poll_problem, reason)
      assert.equal(poll_failures, i + 1)
      const wait = (Date.parse(next_poll_at) - Date.parse(polled_at)) / 60_000
      assert.ok(wait >= minutes && wait <= minutes * 1.05 + 0.001, `${wait} instead of ${minutes}`)
    }
    service.answers(() => ({ body: people(1) }))
    const { poll_problem, poll_failures } = await polled(id)
    assert.deepEqual([poll_problem, poll_failures], [null, 0])
    assert.deepEqual(await contacts(), ['P1'])
    const often = await createWebhook({ interval_minutes: 2 })
    service.answers(() => ({ status: 503, body: '' }))
    await polled(often)
    const { next_poll_at, polled_at } = await polled(often)
    assert.ok(Date.parse(next_poll_at) - Date.parse(polled_at) < 130_000, 'at most the interval')
  })

  /** The names of webhooks in mails to owners about failing sources. */
  const reported = async () =>
    (await db.system('account_mails').where({ kind: 'source_failing' }).orderBy('id')).map(
      ({ details }) => details.webhook_name,
    )

  it('asks a source that refuses its credentials less and less often, and tells the owners once', async () => {
    const id = await createWebhook({ interval_minutes: 20 }, { name: 'Refused' })
    service.answers(() => ({ status: 401, body: '' }))
    for (const minutes of [20, 40, 80, 160, 320, 640, 1_280, 1_440, 1_440]) {
      const { poll_problem, next_poll_at, polled_at } = await polled(id)
      assert.match(poll_problem, /answered 401/)
      const wait = (Date.parse(next_poll_at) - Date.parse(polled_at)) / 60_000
      assert.ok(wait >= minutes && wait <= minutes * 1.05 + 0.001, `${wait} instead of ${minutes}`)
    }
    assert.deepEqual(await reported(), ['Refused'])
    const often = await createWebhook({ interval_minutes: 1 }, { name: 'Often' })
    const { next_poll_at, polled_at } = await polled(often)
    assert.ok(Date.parse(next_poll_at) - Date.parse(polled_at) >= 15 * 60_000)
    service.answers(() => ({ body: [] }))
    assert.equal((await polled(id)).poll_failures, 0)
  })

  it('tells the owners of a source that fails for a day', async () => {
    await db.system('account_mails').delete()
    const id = await createWebhook({ interval_minutes: 1_440 }, { name: 'Failing' })
    service.answers(() => ({ status: 503, body: '' }))
    // After 1, 5 and 15 minutes, then a day later.
    for (let n = 0; n < 4; n++) await polled(id)
    assert.deepEqual(await reported(), [])
    await polled(id)
    await polled(id)
    assert.deepEqual(await reported(), ['Failing'])
  })

  it('is due when it is made, changed or activated, for one worker at a time, and not while it is Inactive', async () => {
    service.answers(() => ({ body: [] }))
    await db.system('incoming_webhooks').update({ next_poll_at: null })
    const due = async () => (await incomingPolls.claim(db.system, 10)).map((one) => one.id)
    const id = await createWebhook({})
    assert.deepEqual(await due(), [id])
    assert.deepEqual(await due(), [], 'it is leased')
    await polled(id)
    assert.deepEqual(await due(), [])
    const set = (path: string, body?: object) =>
      app(body ? 'PATCH' : 'POST', `/webhooks/incoming/${id}${path}`, body)
    await set('', { source: { type: 'http_list', url: service.url } })
    await set('/deactivate')
    assert.deepEqual(await due(), [])
    await set('/activate')
    assert.deepEqual(await due(), [id])
    await db.system('incoming_webhooks').where({ id }).delete()
    await poll(deps(), { organization_id: api.organizationId, id })
  })

  it('is leased for seconds, which its worker renews while it polls: of one that was killed they end', async () => {
    const id = await createWebhook({})
    const leased = async () => {
      const row = await db.system('incoming_webhooks').where({ id }).first()
      return row.poll_lease_until && row.poll_lease_until.getTime() - Date.now()
    }
    let release: (() => void) | undefined
    const slow = createServer((_, response) => {
      release = () => response.end('[]')
    })
    await new Promise<void>((resolve) => slow.listen(0, '127.0.0.1', resolve))
    const url = `http://127.0.0.1:${(slow.address() as AddressInfo).port}/`
    await app('PATCH', `/webhooks/incoming/${id}`, { source: { type: 'http_list', url } })
    await db.system('incoming_webhooks').whereNot({ id }).update({ next_poll_at: null })
    await incomingPolls.claim(db.system, 10)
    assert.ok((await leased()) < 16_000)
    await db.system('incoming_webhooks').where({ id }).update({ poll_lease_until: new Date() })
    const polling = polled(id, { renewMs: 10 })
    await until(async () => release && (await leased()) > 10_000)
    release!()
    await polling
    assert.equal(await leased(), null)
    slow.close()
  })

  it('is given up if it hangs: it fails, ends its lease, and writes nothing when it goes on', async () => {
    const id = await createWebhook({})
    let answer: ((response: HttpResponse) => void) | undefined
    const hanging = {
      call: () =>
        new Promise<HttpResponse>((resolve) => {
          answer = resolve
        }),
    }
    const hung = await polled(id, { http: hanging, mostMs: 50 })
    assert.match(hung.poll_problem, /took longer than 50 ms/)
    const row = () =>
      db
        .system('incoming_webhooks')
        .where({ id })
        .first('poll_failures', 'poll_lease_until', 'source_state', 'next_poll_at')
    const failed = await row()
    assert.deepEqual([failed.poll_failures, failed.poll_lease_until], [1, null])
    answer!(httpResponse({ body: people(1) }))
    await setTimeout(200)
    assert.deepEqual([await contacts(), await row()], [[], failed])
    service.answers(() => ({ body: people(1) }))
    assert.equal((await polled(id)).poll_problem, null)
    assert.deepEqual(await contacts(), ['P1'])
  })

  it('stops at the quota of the month, and takes the rest later', async () => {
    const organization = db.system('organizations').where({ id: api.organizationId })
    const id = await createWebhook({})
    service.answers(() => ({ body: people(1, 2, 3) }))
    await db.system('limit_months').delete()
    await organization.clone().update({ limits: { incoming_per_month: 2 } })
    assert.match((await polled(id)).poll_problem, /quota/)
    assert.deepEqual(await contacts(), ['P1', 'P2'])
    await organization.clone().update({ limits: {} })
    assert.equal((await polled(id)).poll_problem, null)
    assert.deepEqual(await contacts(), ['P1', 'P2', 'P3'])
  })

  it('is refused for a URL that may not be called, and keeps its headers for the same origin only', async () => {
    const refused = async (url: string) =>
      (await app('POST', '/webhooks/incoming', { name: 'x', source: { type: 'rss', url } })).body
    assert.deepEqual((await refused('http://10.0.0.1/')).detail[0].loc, ['body', 'source', 'url'])
    const id = await createWebhook({ headers: { 'x-key': 'value-of-the-key' } })
    const patch = async (url: string) => {
      const source = { type: 'http_list', url }
      const { body } = await app('PATCH', `/webhooks/incoming/${id}`, { source })
      return body.source.header_names
    }
    assert.deepEqual(await patch(`${service.url}?page=2`), ['x-key'])
    assert.deepEqual(await patch('http://127.0.0.1:9/'), [])
    assert.equal((await app('PATCH', `/webhooks/incoming/${id}`, { source: null })).body.source, null)
    assert.equal((await app('GET', `/webhooks/incoming/${id}`)).body.next_poll_at, null)
  })

  describe('that is a folder of a mailbox', () => {
    let imap: Awaited<ReturnType<typeof startImap>>
    beforeEach(async () => {
      imap = await startImap()
      assert.equal((await app('PUT', '/secrets/MAILBOX', { value: MAIL_PASSWORD })).status, 200)
    })
    afterEach(() => imap.close())
    const mailbox = (more: object = {}) => ({
      type: 'imap',
      host: '127.0.0.1',
      port: imap.port,
      tls: 'none',
      user: 'ada',
      password_secret: 'MAILBOX',
      ...more,
    })
    const create = async (source: object = {}, more: object = {}): Promise<string> => {
      const values = { name: 'Mails', source: mailbox(source), ...more }
      const { status, body } = await app('POST', '/webhooks/incoming', values)
      assert.equal(status, 201, JSON.stringify(body))
      return body.id
    }
    const people = async () =>
      (await db.system('contacts').where({ first_name: 'Mailed' }).orderBy('id')).map((one) => one.email)

    it('gives each mail that comes after its first poll to the webhook, from its sender', async () => {
      imap.deliver(mailOf(1))
      const id = await create()
      assert.equal((await polled(id)).poll_problem, null)
      assert.deepEqual(await people(), [])
      imap.deliver(mailOf(2))
      imap.deliver(mailOf(3))
      // A list sends what was also sent directly.
      imap.deliver(mailOf(3, { headers: 'List-Id: <list.example>\r\n' }))
      await polled(id)
      await polled(id)
      assert.deepEqual(await people(), ['m2@example.com', 'm3@example.com'])
      assert.deepEqual(await logs(id), ['Created', 'Created'])
      const [log] = await db.system('incoming_logs').where({ webhook_id: id })
      assert.equal(log.source_ip, '127.0.0.1')
      assert.ok(!JSON.stringify(log).includes(MAIL_PASSWORD))
      const [note] = await db.system('notes').orderBy('id', 'desc')
      assert.match(note.body, /^Text 3/)
    })

    it('neither loses nor doubles a mail if its worker dies anywhere', async () => {
      for (let n = 1; n <= 70; n++) imap.deliver(mailOf(n))
      const id = await create({ existing: true })
      await dyingAnywhere(id)
      assert.equal(new Set(await people()).size, 70)
      assert.deepEqual(await logs(id), Array(70).fill('Created'))
    })

    it('takes what came since its last poll, and nothing twice, when the server numbers mails anew', async () => {
      imap.deliver(mailOf(1), new Date(Date.now() - 3 * 86_400_000))
      const id = await create()
      await polled(id)
      imap.deliver(mailOf(2))
      await polled(id)
      imap.deliver(mailOf(3))
      imap.renumber()
      const { poll_problem, poll_failures } = await polled(id)
      assert.match(poll_problem, /numbered the mails of INBOX anew \(UIDVALIDITY\)/)
      assert.equal(poll_failures, 0)
      assert.deepEqual(await people(), ['m2@example.com', 'm3@example.com'])
      imap.deliver(mailOf(4))
      assert.equal((await polled(id)).poll_problem, null)
      assert.deepEqual(await people(), ['m2@example.com', 'm3@example.com', 'm4@example.com'])
    })

    it('reads large mails in a thread, and takes one that is too expensive as it came', async () => {
      const id = await create({ existing: true })
      imap.deliver(mailOf(1, { text: 'word '.repeat(2_000) }))
      imap.deliver(mailOf(2))
      tasks.length = 0
      assert.equal((await polled(id)).poll_problem, null)
      assert.deepEqual(tasks, ['readMail', 'mapBody'])
      const broken: IncomingThreads = { ...threads, readMail: async (_, mail) => unreadMail(mail) }
      imap.deliver(mailOf(3))
      assert.equal((await polled(id, { threads: broken })).poll_problem, null)
      const { payload } = await db
        .system('incoming_logs')
        .where({ webhook_id: id })
        .orderBy('id', 'desc')
        .first()
      assert.match(JSON.parse(payload).message, /^From: Mailed 3 .*Text 3$/s)
    })

    it('logs a mail that cannot be written, and goes on', async () => {
      const id = await create({ existing: true })
      imap.deliver('no mail')
      imap.deliver(mailOf(2))
      assert.equal((await polled(id)).poll_problem, null)
      assert.deepEqual(await people(), ['m2@example.com'])
      assert.deepEqual((await logs(id)).sort(), ['Created', 'Failed'])
    })

    it('says why it cannot be read, and is read again once it can', async () => {
      const id = await create({ existing: true })
      await app('PUT', '/secrets/MAILBOX', { value: 'another-password' })
      imap.deliver(mailOf(1))
      const wrong = await polled(id)
      assert.match(wrong.poll_problem, /refused the user or the password/)
      assert.ok(!JSON.stringify(wrong).includes('another-password'))
      await app('DELETE', '/secrets/MAILBOX')
      assert.match((await polled(id)).poll_problem, /no secret MAILBOX/)
      await app('PUT', '/secrets/MAILBOX', { value: MAIL_PASSWORD })
      const others = db.system('incoming_webhooks').whereNot({ id })
      await others.update({ next_poll_at: null })
      const due = await incomingPolls.claim(db.system, 10)
      assert.deepEqual(
        due.map((one) => one.id),
        [id],
        'it is polled at once',
      )
      assert.equal((await polled(id)).poll_problem, null)
      assert.deepEqual(await people(), ['m1@example.com'])
    })

    it('is refused for a private host, an unknown secret, and a key that may not send secrets', async () => {
      const refused = async (more: object) =>
        (await app('POST', '/webhooks/incoming', { name: 'x', source: mailbox(more) })).body.detail[0].loc
      assert.deepEqual(await refused({ host: '10.0.0.1' }), ['body', 'source', 'host'])
      assert.deepEqual(await refused({ host: 'a/b' }), ['body', 'source', 'host'])
      assert.deepEqual(await refused({ password_secret: 'OTHER' }), ['body', 'source', 'password_secret'])
      const { key } = await createKey(db, api.organizationId, {
        scopes: ['webhooks:write', 'contacts:write'],
      })
      const { status, body } = await api.request('POST', '/v1/webhooks/incoming', {
        key,
        body: { name: 'x', source: mailbox() },
      })
      assert.equal(status, 403, JSON.stringify(body))
      assert.match(JSON.stringify(body), /workflows:author/)
    })
  })
})
