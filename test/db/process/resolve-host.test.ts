import assert from 'node:assert/strict'
import { writeFileSync } from 'node:fs'
import { createHttp } from '../../../activities/http/client.ts'
import { createResolver } from '../../../db/process/resolve-host.ts'
import { startDns } from '../../support/dns.ts'
import { temporaryFolder } from '../../support/folder.ts'

describe('the resolver of names', () => {
  let dns: Awaited<ReturnType<typeof startDns>>
  const folder = temporaryFolder()
  before(async () => {
    dns = await startDns({
      'ok.example': '127.0.0.2',
      'api.inside.example': '10.1.1.1',
      'a.b.c.inside.example': '10.1.1.2',
    })
    writeFileSync(`${folder}/hosts`, '127.0.0.3 Known.example other # a comment\n10.0.0.9 other\n::1 six\n')
    writeFileSync(`${folder}/resolv.conf`, 'search inside.example\noptions timeout:1 ndots:3\n')
  })
  after(() => dns.close())
  const resolver = (more: object = {}) =>
    createResolver({ servers: [dns.server], timeoutMs: 100, folder, ...more })
  const addresses = async (host: string, resolve = resolver()) =>
    (await resolve(host)).map(({ address }) => address)

  it('asks the DNS servers, after the hosts file, and in the search domains', async () => {
    assert.deepEqual(await addresses('OK.example.'), ['127.0.0.2'])
    assert.deepEqual(await addresses('known.example'), ['127.0.0.3'])
    assert.deepEqual(await addresses('other'), ['127.0.0.3', '10.0.0.9'])
    assert.deepEqual(await resolver()('six'), [{ address: '::1', family: 6 }])
    assert.deepEqual(await addresses('localhost'), ['127.0.0.1', '::1'])
    dns.asked.length = 0
    assert.deepEqual(await addresses('api'), ['10.1.1.1'])
    assert.deepEqual(
      new Set(dns.asked),
      new Set(['api.inside.example']),
      'a short name is looked for there first',
    )
    assert.deepEqual(await addresses('a.b.c'), ['10.1.1.2'])
    assert.deepEqual(await addresses('ok.example', resolver({ folder: '/nowhere' })), ['127.0.0.2'])
  })

  it('tells a name that does not exist from one of which no server tells', async () => {
    await assert.rejects(resolver()('none.example.'), { code: 'ENOTFOUND' })
    await assert.rejects(resolver()('hang.example.'), { code: 'EAI_AGAIN' })
  })

  it('resolves a name while many hang', async () => {
    const http = createHttp({ allow: ['127.0.0.0/8'], resolve: resolver({ timeoutMs: 60_000 }) })
    const ended: string[] = []
    const call = (url: string) =>
      http
        .call({ method: 'GET', url }, { signal: new AbortController().signal, timeoutMs: 60_000 })
        .catch((error) => error.message)
        .then((result) => ended.push(result))
    const hanging = Array.from({ length: 20 }, (_, i) => call(`http://hang${i}.example/`))
    // Port 9: what counts is that its address is found.
    await call('http://ok.example:9/')
    assert.deepEqual(ended, ['the connection failed: ECONNREFUSED'])
    await http.close()
    await Promise.all(hanging)
  })
})
