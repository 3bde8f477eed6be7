import { deepEqual, equal, match, ok } from 'node:assert/strict'
import { once } from 'node:events'
import { connect, type Socket } from 'node:net'
import { startApi, type TestApi } from '../../support/api.ts'
import { wideSwitch } from '../../support/attacks.ts'
import { until } from '../../support/until.ts'
import { withApi } from '../../support/with-api.ts'

/** No worker: what waits for one stays in progress. Streams have their test in run-stream.test.ts. */
describe('what is in progress at once', () => {
  const suite = withApi()
  const opened: Socket[] = []
  const aborts: AbortController[] = []
  afterEach(() => {
    for (const socket of opened.splice(0)) socket.destroy()
    for (const abort of aborts.splice(0)) abort.abort()
  })
  const open = async (api: TestApi, text = '') => {
    const socket = connect(Number(new URL(api.url).port), '127.0.0.1')
    opened.push(socket)
    await once(socket, 'connect')
    socket.on('error', () => {})
    socket.write(text)
    return socket
  }
  const get = (lines = '') => `GET /healthz HTTP/1.1\r\nHost: localhost\r\n${lines}\r\n`
  const answerOf = async (socket: Socket) => String((await once(socket, 'data'))[0])
  /** A request that is never answered here. @returns its response, if it is refused. */
  const pending = (path: string, init: RequestInit = {}) => {
    const abort = new AbortController()
    aborts.push(abort)
    const headers = { Authorization: `Bearer ${suite.api.key}`, 'Content-Type': 'application/json' }
    return fetch(suite.api.url + path, { ...init, headers, signal: abort.signal }).catch(() => undefined)
  }

  it('is bounded for the connections of one address, which get 503, and far above it none', async () => {
    const api = await startApi(suite.db, { MAX_CONNECTIONS_PER_ADDRESS: '2' })
    const [first] = [await open(api), await open(api)]
    const refused = await answerOf(await open(api, get()))
    match(refused, /^HTTP\/1\.1 503 .*\r\nRetry-After: 5\r\n.*too many connections from this address/s)
    await open(api)
    await open(api)
    const closed = await open(api)
    await once(closed, 'close')
    for (const socket of opened.slice(2)) socket.destroy()
    first!.destroy()
    await until(async () => (await answerOf(await open(api, get()))).startsWith('HTTP/1.1 200'))
    await api.close()
  })

  it('is bounded for the requests of one client behind a proxy, and others are answered', async () => {
    const api = await startApi(suite.db, { MAX_CONNECTIONS_PER_ADDRESS: '1', TRUSTED_PROXIES: '1' })
    const from = (client: string) => `X-Forwarded-For: ${client}\r\n`
    const body = `POST /v1/workflows/validate HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer ${api.key}\r\nContent-Type: application/json\r\nContent-Length: 9\r\n${from('203.0.113.1')}\r\n{`
    const held = await open(api, body)
    const refused = /^HTTP\/1\.1 503 .*\r\nRetry-After: 5\r\n/s
    await until(async () => refused.test(await answerOf(await open(api, get(from('203.0.113.1'))))))
    match(await answerOf(await open(api, get(from('203.0.113.2')))), /^HTTP\/1\.1 200/)
    held.destroy()
    const served = async () => (await answerOf(await open(api, get(from('203.0.113.1'))))).slice(0, 12)
    await until(async () => (await served()) === 'HTTP/1.1 200')
    await api.close()
  })

  it('is bounded for the validations of an organization', async () => {
    const body = JSON.stringify({ spec: wideSwitch(90) })
    const answers = await Promise.all(
      Array.from({ length: 40 }, () => pending('/v1/workflows/validate', { method: 'POST', body })),
    )
    const refused = answers.filter((one) => one?.status === 503)
    ok(refused.length > 0 && refused.length < 30, `${refused.length} were refused`)
    equal(refused[0]!.headers.get('retry-after'), '2')
    equal(answers.filter((one) => one?.status === 200).length, 40 - refused.length)
  })

  it('is bounded for the node tests of an organization', async () => {
    const body = JSON.stringify({
      node_type: 'set_fields',
      config: { fields: { a: 1 } },
      confirm: true,
    })
    const test = () => pending('/v1/workflows/nodes/test', { method: 'POST', body })
    const tests = Array.from({ length: 20 }, test)
    const { system } = suite.db
    const queued = async () => Number((await system('runs').where({ kind: 'node_test' }).count())[0]!.count)
    await until(async () => (await queued()) >= 20)
    const refused = await test()
    deepEqual([refused?.status, refused?.headers.get('retry-after')], [429, '10'])
    equal(await queued(), 20)
    for (const abort of aborts.splice(0)) abort.abort()
    await Promise.all(tests)
  })
})
