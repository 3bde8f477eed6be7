import assert from 'node:assert/strict'
import { createServer, type IncomingMessage } from 'node:http'
import type { AddressInfo } from 'node:net'
import { createHttp } from '../../activities/http/client.ts'
import { incomingPolls } from '../../db/incoming/polls.ts'
import { poll } from '../../worker/queues/incoming-polls.ts'
import { mapInThreads } from '../../worker/queues/incoming-replays.ts'
import { startApi, type TestApi } from '../support/api.ts'
import { createTestDatabase, type TestDatabase } from '../support/database.ts'
import { signIn } from '../support/session.ts'
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
  const deps = () => ({ db, log: testLog, http, mapBody: mapInThreads(), secretsKey: api.secretsKey })
  const polled = async (id: string, more: object = {}) => {
    await poll({ ...deps(), ...more }, { organization_id: api.organizationId, id })
    return (await app('GET', `/webhooks/incoming/${id}`)).body
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
    // Each transaction of the poll in turn is the last one of its worker.
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

  it('says why a poll failed, tries again after its interval, and forgets it once it succeeds', async () => {
    const id = await createWebhook({})
    const problems = [
      [{ status: 503, body: '' }, /answered 503/],
      [{ body: '{"a":' }, /JSON/],
      [{ body: { a: 1 } }, /no list/],
    ] as const
    for (const [answer, reason] of problems) {
      service.answers(() => answer)
      const { poll_problem, next_poll_at } = await polled(id)
      assert.match(poll_problem, reason)
      assert.ok(new Date(next_poll_at) > new Date())
    }
    service.answers(() => ({ body: people(1) }))
    assert.equal((await polled(id)).poll_problem, null)
    assert.deepEqual(await contacts(), ['P1'])
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
})
