import assert from 'node:assert/strict'
import { randomBytes } from 'node:crypto'
import { createServer, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { z } from 'zod'
import { Compute } from '../../../api/compute/compute.ts'
import { readConfig } from '../../../api/config.ts'
import type { AppDeps } from '../../../api/deps.ts'
import { createGateway } from '../../../api/http/gateway.ts'
import { KnownWorkflows } from '../../../api/http/known-workflows.ts'
import { type Route, route } from '../../../api/http/route.ts'
import { RunEnds } from '../../../api/http/run-ends.ts'
import { serve } from '../../../api/http/serve.ts'
import { documentSlots, nodeTestSlots, streamSlots } from '../../../api/http/slots.ts'
import { ClientDocuments } from '../../../api/oauth/client-documents.ts'
import { v1Realm } from '../../../api/v1/realm.ts'
import { insertEvents } from '../../../db/events/outbox.ts'
import { conflict, notFound } from '../../../db/model/errors.ts'
import { createLogger } from '../../../db/process/log.ts'
import { LogOutput } from '../../../db/process/log-output.ts'
import { createMetrics } from '../../../db/process/metrics.ts'
import { QueuedRuns } from '../../../db/runs/queued-runs.ts'
import { createKey } from '../../support/api.ts'
import { createOrganization, createTestDatabase, type TestDatabase } from '../../support/database.ts'
import { noVectors } from '../../support/embedding.ts'
import { noFiles } from '../../support/files.ts'
import { until } from '../../support/until.ts'

/** The real gateway with a small route table: its guarantees are independent of the operations. */
describe('the gateway', () => {
  let db: TestDatabase
  let server: Server
  let url: string
  let organizationId: string
  let key: string
  /** Lets a slow handler go on, while one waits. */
  let release: (() => void) | undefined
  const handlerWaits = () => until(() => release)

  const thing = z.object({ object: z.literal('thing'), name: z.string() })
  const routes: Route[] = [
    route({
      method: 'POST',
      path: '/things',
      scope: 'contacts:write',
      id: 'createThing',
      tag: 'Things',
      summary: 'Create a thing',
      query: z.object({
        mode: z.enum(['plain', 'conflict', 'slow', 'early', 'broken', 'preview']).optional(),
      }),
      body: z.object({
        name: z.string().min(2),
        size: z.number().optional(),
        secret: z.string().max(3).optional(),
      }),
      response: { status: 201, schema: thing },
      async handler({ body, query, tenant, commit, asPreview }) {
        const [id] = await tenant((tx) =>
          insertEvents(tx, [{ name: 'thing.created', data: { id: '0198c1de-7d5e-7c11-b8a4-2f4f3c1d9a10' } }]),
        )
        if (query.mode === 'conflict') throw conflict('taken')
        if (query.mode === 'broken') throw new Error('a secret of the inside')
        if (query.mode === 'preview') asPreview()
        if (query.mode === 'early') await commit({ object: 'thing', id, name: 'early' })
        if (query.mode === 'slow' || query.mode === 'early')
          await new Promise<void>((resolve) => {
            release = () => {
              release = undefined
              resolve()
            }
          })
        return { object: 'thing', id, name: body.name }
      },
    }),
    route({
      method: 'GET',
      path: '/things/{entity}/{thing_id}',
      scope: ({ entity }) => (entity === 'contacts' ? ['contacts:read'] : ['deals:read']),
      id: 'getThing',
      tag: 'Things',
      summary: 'Get a thing',
      params: z.object({ entity: z.enum(['contacts', 'deals']), thing_id: z.uuid() }),
      response: { status: 200, schema: thing },
      handler: () => Promise.reject(notFound('thing')),
    }),
    route({
      method: 'GET',
      path: '/things/contacts/all',
      scope: 'any',
      id: 'listThings',
      tag: 'Things',
      summary: 'List things',
      query: z.object({ limit: z.coerce.number().int().min(1).default(5), q: z.string().optional() }),
      response: { status: 200, schema: thing },
      handler: async ({ query }) => ({ object: 'list', ...query }),
    }),
  ]

  before(async () => {
    db = await createTestDatabase()
    organizationId = await createOrganization(db)
    key = (await createKey(db, organizationId)).key
    const deps: AppDeps = {
      config: readConfig({ DATABASE_URL: db.url, NODE_ENV: 'test', TRUSTED_PROXIES: '1' }),
      db,
      log: createLogger('api', 'silent'),
      secretsKey: randomBytes(32),
      files: noFiles(),
      runEnds: new RunEnds(db.system),
      knownWorkflows: new KnownWorkflows(),
      queuedRuns: new QueuedRuns(),
      streams: streamSlots(),
      nodeTests: nodeTestSlots(),
      documents: documentSlots(),
      compute: new Compute(),
      queryVectors: noVectors(),
      fetchFile: () => Promise.reject(new Error('nothing is fetched')),
      clientDocuments: new ClientDocuments(() => Promise.reject(new Error('nothing is fetched'))),
      stopping: new AbortController().signal,
      metrics: createMetrics({ db: db, log: new LogOutput(1), queues: false }),
    }
    const gateway = createGateway(deps, { ...v1Realm(deps), routes })
    server = createServer(serve(deps.log, gateway).callback())
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
    url = `http://127.0.0.1:${(server.address() as AddressInfo).port}/v1`
  })
  after(async () => {
    server.closeAllConnections()
    server.close()
    await db.drop()
  })

  async function call(method: string, path: string, body?: unknown, headers: Record<string, string> = {}) {
    const response = await fetch(url + path, {
      method,
      headers: { Authorization: `Bearer ${key}`, 'Content-Type': 'application/json', ...headers },
      ...(body === undefined ? {} : { body: typeof body === 'string' ? body : JSON.stringify(body) }),
    })
    const text = await response.text()
    return { status: response.status, headers: response.headers, text, body: JSON.parse(text || 'null') }
  }
  const post = (body: unknown, headers = {}, mode = 'plain') =>
    call('POST', `/things?mode=${mode}`, body, headers)
  const effects = async () =>
    Number((await db.system('events').where({ organization_id: organizationId }).count())[0]!.count)

  describe('finding the operation', () => {
    it('answers an unknown path with 404, and a wrong method with 405 and Allow', async () => {
      assert.equal((await call('GET', '/nothing')).body.error.type, 'not_found')
      const { status, headers } = await call('PUT', '/things')
      assert.equal(status, 405)
      assert.equal(headers.get('allow'), 'POST')
    })
    it('prefers a literal segment to a parameter', async () => {
      assert.equal((await call('GET', '/things/contacts/all')).body.object, 'list')
    })
    it('lists the accepted values for an invalid segment', async () => {
      const { status, body } = await call('GET', '/things/cats/0198c1de-7d5e-7c11-b8a4-2f4f3c1d9a10')
      assert.equal(status, 404)
      assert.equal(body.error.hint, 'one of contacts, deals')
    })
    it('answers an invalid id, an invalid encoding and a NUL like an unknown id', async () => {
      for (const id of ['1', '%ff', '%00', '0198c1de-7d5e-7c11-b8a4-2f4f3c1d9a1%30'])
        assert.equal((await call('GET', `/things/contacts/${id}`)).status, 404, id)
    })
  })

  describe('authorizing', () => {
    const keyed = async (bearer: string, path = '/things/contacts/all', headers = {}) =>
      call('GET', path, undefined, { Authorization: `Bearer ${bearer}`, ...headers })

    it('answers a missing, mistyped, unknown, expired or revoked key with the same 401', async () => {
      const expired = await createKey(db, organizationId, { expires_at: new Date(Date.now() - 1000) })
      const revoked = await createKey(db, organizationId)
      await db.system('api_keys').where({ id: revoked.id }).update({ revoked_at: new Date() })
      const mistyped = key.slice(0, 10) + (key[10] === 'a' ? 'b' : 'a') + key.slice(11)
      for (const bearer of ['', 'agx_', mistyped, expired.key, revoked.key, `${key} x`, 'x'.repeat(5000)]) {
        const { status, body, headers } = await keyed(bearer)
        assert.equal(status, 401, bearer)
        assert.equal(body.error.type, 'unauthorized')
        assert.equal(body.error.message, 'missing or invalid API key')
        assert.equal(headers.get('x-ratelimit-limit'), null)
      }
    })
    it('refuses a key from the moment of its revocation', async () => {
      const other = await createKey(db, organizationId)
      assert.equal((await keyed(other.key)).status, 200)
      await db.system('api_keys').where({ id: other.id }).update({ revoked_at: new Date() })
      assert.equal((await keyed(other.key)).status, 401)
    })
    it('names the missing scope; write implies read', async () => {
      const writer = await createKey(db, organizationId, { scopes: ['contacts:write'] })
      const denied = await keyed(writer.key, '/things/deals/0198c1de-7d5e-7c11-b8a4-2f4f3c1d9a10')
      assert.equal(denied.status, 403)
      assert.equal(denied.body.error.type, 'insufficient_scope')
      assert.match(denied.body.error.message, /deals:read/)
      assert.equal(
        (await keyed(writer.key, '/things/contacts/0198c1de-7d5e-7c11-b8a4-2f4f3c1d9a10')).status,
        404,
      )
    })
    it('accepts a key only from its allowlist, counting proxies from the right', async () => {
      const inside = await createKey(db, organizationId, { ip_allowlist: ['10.1.0.0/16', '2001:db8::1'] })
      const from = (address: string) => keyed(inside.key, undefined, { 'X-Forwarded-For': address })
      assert.equal((await from('10.1.2.3')).status, 200)
      assert.equal((await from('2001:db8::1')).status, 200)
      assert.equal((await from('10.1.2.3, 10.2.0.1')).status, 401)
      assert.equal((await keyed(inside.key)).status, 401)
    })
    it('refuses to start with a route that declares no scope', () => {
      const open = { ...routes[0]!, scope: [] }
      const deps = { db } as unknown as AppDeps
      assert.throws(
        () => createGateway(deps, { ...v1Realm(deps), routes: [open] }),
        /declares no known scope/,
      )
    })
  })

  describe('reading the body', () => {
    it('reports the position of a JSON error', async () => {
      const { status, body } = await post('{"name": "x",\n "size": }')
      assert.equal(status, 400)
      assert.equal(body.error.type, 'invalid_request')
      assert.match(body.error.message, /line 2, column 10/)
    })
    it('refuses a body that is too large, not JSON, not UTF-8 or nested too deeply', async () => {
      assert.equal((await post(`{"name":"${'x'.repeat(1024 * 1024)}"}`)).status, 413)
      assert.equal((await post('{"name":"abc"}', { 'Content-Type': 'text/plain' })).status, 415)
      assert.equal(
        (await post('{"name":"abc"}', { 'Content-Type': 'application/json; charset=utf-16' })).status,
        415,
      )
      assert.equal((await post('['.repeat(100_000))).status, 400)
      assert.equal((await post(`${'['.repeat(100_000)}${']'.repeat(100_000)}`)).status, 400)
    })
    it('lists all issues', async () => {
      const { status, body } = await call('POST', '/things?mood=up', {
        name: 'x',
        size: 'big',
        colour: 'red',
      })
      assert.equal(status, 422)
      assert.equal(body.error.type, 'validation_error')
      assert.deepEqual(body.detail.map((issue: { loc: string[] }) => issue.loc.join('.')).sort(), [
        'body.colour',
        'body.name',
        'body.size',
        'query.mood',
      ])
      assert.match(body.error.message, /^4 fields are invalid: .*\bsize\b/)
      const unsafe = await call('POST', '/things?q=a%00b&mood=up', '{"name":"\\u0000","size":"big"}')
      assert.deepEqual(unsafe.body.detail.map((issue: { loc: string[] }) => issue.loc.join('.')).sort(), [
        'body.name',
        'body.size',
        'query.mood',
        'query.q',
      ])
      const one = await post({ name: 'x' })
      assert.match(one.body.error.message, /^name: /)
    })
    it('refuses a missing body', async () => {
      const { status, body } = await call('POST', '/things')
      assert.equal(status, 422)
      assert.deepEqual([body.detail[0].loc, body.error.message], [['body'], 'body: required'])
    })
    it('never echoes a secret, and truncates long input', async () => {
      const { text, body } = await post({ name: 'ok', size: 'y'.repeat(5000), secret: 'hunter2' })
      assert.doesNotMatch(text, /hunter2/)
      assert.equal(body.detail.find((issue: { input?: string }) => issue.input).input.length, 200)
      const cut = await post({ name: 'ok', size: `${'y'.repeat(199)}😀` })
      assert.equal(cut.body.detail[0].input, 'y'.repeat(199))
    })
    it('refuses NUL, lone surrogates and prototype keys', async () => {
      for (const bad of [
        '{"name":"a\\u0000b"}',
        '{"name":"a\\ud800b"}',
        '{"name":"ab","__proto__":{}}',
        '{"name":"ab","\\u005f_proto__":{}}',
      ])
        assert.equal((await post(bad)).status, 422, bad)
      assert.equal((await call('GET', '/things/contacts/all?q=a%00b')).status, 422)
    })
  })

  describe('reading the query', () => {
    const query = (search: string) => call('GET', `/things/contacts/all?${search}`)

    it('refuses a query that is not UTF-8, before it claims an Idempotency-Key', async () => {
      for (const search of ['q=caf%E9', 'q=%FF', 'q=%E0%A4%A', 'q=%ED%A0%80', '%E9=1', 'q=ok&limit=%e9']) {
        const { status, body } = await query(search)
        assert.deepEqual([status, body.error.type], [400, 'invalid_request'], search)
        assert.match(body.error.message, /query string is not UTF-8/)
      }
      const headers = { 'Idempotency-Key': 'no text' }
      assert.equal((await call('POST', '/things?mode=%FF', { name: 'abc' }, headers)).status, 400)
      assert.equal((await post({ name: 'abc' }, headers)).status, 201)
    })
    it('accepts UTF-8, and a literal %', async () => {
      for (const [search, q] of [
        ['q=caf%C3%A9', 'café'],
        ['q=%F0%9F%90%92%20%25', '🐒 %'],
        ['q=100%', '100%'],
        ['q=%EF%BF%BD', '\ufffd'],
      ] as const)
        assert.equal((await query(search)).body.q, q)
    })
  })

  describe('answering', () => {
    it('echoes a UUID or ULID as request id, and nothing else', async () => {
      const id = '01ARZ3NDEKTSV4RRFFQ69G5FAV'
      const given = await call('GET', '/nothing', undefined, { 'X-Request-Id': id })
      assert.equal(given.headers.get('x-request-id'), id)
      assert.equal(given.body.error.request_id, id)
      const made = await call('GET', '/nothing', undefined, { 'X-Request-Id': 'mine' })
      assert.match(made.headers.get('x-request-id')!, /^[0-9a-f-]{36}$/)
    })
    it('reveals no details of an unexpected error', async () => {
      const { status, text, body } = await post({ name: 'abc' }, {}, 'broken')
      assert.equal(status, 500)
      assert.equal(body.error.type, 'internal_error')
      assert.doesNotMatch(text, /inside/)
    })
    it('counts down the limits, and answers 429 with Retry-After above them', async () => {
      const other = await createOrganization(db, {
        limits: { requests_per_minute: 4, requests_per_minute_per_key: 3 },
      })
      const [first, second] = [await createKey(db, other), await createKey(db, other)]
      const use = (bearer: string) =>
        call('GET', '/things/contacts/all', undefined, { Authorization: `Bearer ${bearer}` })
      const left = []
      for (let i = 0; i < 3; i++) left.push((await use(first.key)).headers.get('x-ratelimit-remaining'))
      assert.deepEqual(left, ['2', '1', '0'])
      const over = await use(first.key)
      assert.equal(over.status, 429)
      assert.equal(over.body.error.type, 'rate_limited')
      assert.ok(Number(over.headers.get('retry-after')) >= 1)
      assert.equal((await use(second.key)).headers.get('x-ratelimit-remaining'), '0')
      assert.match((await use(second.key)).body.error.message, /organization/)
    })
  })

  describe('Idempotency-Key', () => {
    it('executes once and replays the answer, marked as replayed', async () => {
      const headers = { 'Idempotency-Key': 'once' }
      const before = await effects()
      const first = await post({ name: 'abc' }, headers)
      const second = await post({ name: 'abc' }, headers)
      assert.equal(first.status, 201)
      assert.deepEqual([second.status, second.text], [first.status, first.text])
      assert.equal(first.headers.get('idempotency-replayed'), null)
      assert.equal(second.headers.get('idempotency-replayed'), 'true')
      assert.equal(await effects(), before + 1)
    })
    it('refuses the key with another body', async () => {
      await post({ name: 'abc' }, { 'Idempotency-Key': 'other body' })
      const { status, body } = await post({ name: 'abd' }, { 'Idempotency-Key': 'other body' })
      assert.equal(status, 409)
      assert.equal(body.error.type, 'idempotency_conflict')
    })
    it('refuses the key while the first request is in flight, and stores nothing if it fails', async () => {
      const headers = { 'Idempotency-Key': 'slow' }
      const first = post({ name: 'abc' }, headers, 'slow')
      await handlerWaits()
      assert.equal((await post({ name: 'abc' }, headers, 'slow')).status, 409)
      release!()
      assert.equal((await first).status, 201)
      const before = await effects()
      assert.equal((await post({ name: 'abc' }, { 'Idempotency-Key': 'broken' }, 'broken')).status, 500)
      assert.equal(await effects(), before)
      assert.equal((await post({ name: 'abc' }, { 'Idempotency-Key': 'broken' })).status, 201)
    })
    it('replays a conflict, but not a validation error', async () => {
      const headers = { 'Idempotency-Key': 'refused' }
      assert.equal((await post({ name: 'x' }, headers)).status, 422)
      const first = await post({ name: 'abc' }, headers, 'conflict')
      assert.equal(first.status, 409)
      const second = await post({ name: 'abc' }, headers, 'conflict')
      assert.equal(second.headers.get('idempotency-replayed'), 'true')
      assert.equal(second.text, first.text)
    })
    it('makes an early commit visible while the handler waits, with the key in flight', async () => {
      const headers = { 'Idempotency-Key': 'early' }
      const before = await effects()
      const first = post({ name: 'abc' }, headers, 'early')
      await handlerWaits()
      assert.equal(await effects(), before + 1)
      const meanwhile = await post({ name: 'abc' }, headers, 'early')
      assert.deepEqual([meanwhile.status, meanwhile.body.error?.type], [409, 'idempotency_in_progress'])
      assert.equal(meanwhile.headers.get('retry-after'), '1')
      release!()
      assert.equal((await first).body.name, 'abc')
      assert.equal((await post({ name: 'abc' }, headers, 'early')).body.name, 'abc')
    })
    it('keeps the key in progress for as long as the process waits', async () => {
      const headers = { 'Idempotency-Key': 'early and long' }
      const first = post({ name: 'abc' }, headers, 'early')
      const leases = new Set<number>()
      // The first lease and two renewals.
      while (leases.size < 3) {
        const row = await db.system('idempotency_keys').where({ key: 'early and long' }).first()
        if (row) leases.add(row.locked_until.getTime())
        await new Promise((resolve) => setTimeout(resolve, 50))
      }
      assert.equal(
        (await post({ name: 'abc' }, headers, 'early')).body.error?.type,
        'idempotency_in_progress',
      )
      release!()
      await first
    })
    it('leaves neither an effect nor a locked key after a crash', async () => {
      const headers = { 'Idempotency-Key': 'dies' }
      const before = await effects()
      const first = post({ name: 'abc' }, headers, 'slow')
      await handlerWaits()
      // PostgreSQL sees a crash as a closed connection.
      await db.system.transaction(async (trx) => {
        await trx.raw('reset role')
        await trx.raw(
          "select pg_terminate_backend(pid) from pg_locks where locktype = 'advisory' and database = (select oid from pg_database where datname = current_database())",
        )
      })
      release!()
      assert.equal((await first).status, 503)
      assert.equal(await effects(), before)
      assert.equal((await post({ name: 'abc' }, headers)).status, 201)
      assert.equal(await effects(), before + 1)
    })
    it('does not store previews', async () => {
      const headers = { 'Idempotency-Key': 'preview' }
      await post({ name: 'abc' }, headers, 'preview')
      const again = await post({ name: 'abc' }, headers)
      assert.equal(again.headers.get('idempotency-replayed'), null)
    })
    it('replays to any number of requests at once', async () => {
      const headers = { 'Idempotency-Key': 'at once' }
      const first = await post({ name: 'abc' }, headers)
      const replays = await Promise.all(Array.from({ length: 20 }, () => post({ name: 'abc' }, headers)))
      assert.deepEqual(
        replays.map(({ status, text }) => [status, text]),
        replays.map(() => [first.status, first.text]),
      )
    })

    it('refuses a key that is too long, with everything else that is invalid, after what cannot be read', async () => {
      const headers = { 'Idempotency-Key': 'x'.repeat(256) }
      assert.equal((await post({ name: 'abc' }, headers)).status, 422)
      const { status, body } = await post({ name: 5 }, headers)
      const locs = body.detail.map(({ loc }: { loc: string[] }) => loc.join('.')).sort()
      assert.deepEqual([status, locs], [422, ['body.name', 'header.Idempotency-Key']])
      assert.equal((await post('{"name": ', headers)).status, 400)
      assert.equal((await post('name=abc', { ...headers, 'Content-Type': 'text/plain' })).status, 415)
    })
  })
})
