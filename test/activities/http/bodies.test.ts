import assert from 'node:assert/strict'
import { createServer, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { brotliCompressSync, deflateRawSync, deflateSync, gzipSync } from 'node:zlib'
import { createHttp, type HttpClient } from '../../../activities/http/client.ts'
import { HTTP_LIMITS } from '../../../workflows/effects/http.ts'
import { NodeError } from '../../../workflows/language/node-error.ts'

const PNG = Buffer.from(
  'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==',
  'base64',
)

describe('bodies of responses', () => {
  let server: Server
  let http: HttpClient
  let url: string
  let answer: { headers: Record<string, string>; body: Buffer | string } = { headers: {}, body: '' }
  let received: Buffer[] = []

  before(async () => {
    server = createServer((request, response) => {
      received = []
      request.on('data', (chunk: Buffer) => received.push(chunk))
      request.on('end', () => response.writeHead(200, answer.headers).end(answer.body))
    })
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
    url = `http://127.0.0.1:${(server.address() as AddressInfo).port}/`
    http = createHttp({ allow: ['127.0.0.1/32'] })
  })
  after(async () => {
    await http.close()
    server.closeAllConnections()
    server.close()
  })

  const options = () => ({ signal: new AbortController().signal, timeoutMs: 10_000 })
  const get = async (
    type: string | undefined,
    body: Buffer | string,
    headers: Record<string, string> = {},
  ) => {
    answer = { headers: { ...(type === undefined ? {} : { 'content-type': type }), ...headers }, body }
    return http.call({ method: 'GET', url }, options())
  }
  const fails = (call: Promise<unknown>, code: string, message: RegExp) =>
    assert.rejects(call, (error) => {
      assert.ok(error instanceof NodeError, String(error))
      assert.equal(error.code, code)
      assert.match(error.message, message)
      return true
    })

  const encodings: [encoding: string, encode: (bytes: Buffer) => Buffer][] = [
    ['gzip', gzipSync],
    ['x-gzip', gzipSync],
    ['deflate', deflateSync],
    ['deflate', deflateRawSync],
    ['br', brotliCompressSync],
    ['GZIP', gzipSync],
    ['gzip, br', (bytes) => brotliCompressSync(gzipSync(bytes))],
    ['identity', (bytes) => bytes],
  ]
  for (const [encoding, encode] of encodings)
    it(`are decoded from ${encoding}`, async () => {
      const body = encode(Buffer.from('{"name":"Zoë"}'))
      const {
        body: got,
        body_error,
        body_bytes,
      } = await get('application/json', body, {
        'content-encoding': encoding,
      })
      assert.deepEqual([got, body_error, body_bytes], [{ name: 'Zoë' }, null, 15])
    })

  it('fail the node if they cannot be decoded', async () => {
    const gzip = { 'content-encoding': 'gzip' }
    await fails(get('text/plain', 'not gzip', gzip), 'undecodable_response', /gzip/)
    await fails(
      get('text/plain', gzipSync('x'.repeat(100)).subarray(0, 15), gzip),
      'undecodable_response',
      /gzip/,
    )
    await fails(
      get('text/plain', 'x', { 'content-encoding': 'zstd' }),
      'undecodable_response',
      /zstd.*gzip, deflate/,
    )
    const many = { 'content-encoding': Array(6).fill('gzip').join(', ') }
    await fails(get('text/plain', 'x', many), 'undecodable_response', /6 content encodings/)
  })

  it('are decoded up to the limit of a response, however small they were', async () => {
    const bomb = gzipSync(Buffer.alloc(64 * 1024 * 1024))
    assert.ok(bomb.length < 100_000)
    await fails(
      get('text/plain', bomb, { 'content-encoding': 'gzip' }),
      'response_too_large',
      /4 MiB.*decoded/,
    )
  })

  it('are accepted up to 4 MiB, requests up to 2 MiB', async () => {
    const { responseBytes, requestBytes } = HTTP_LIMITS
    assert.equal((await get('text/plain', 'x'.repeat(responseBytes))).body_bytes, responseBytes)
    await fails(get('text/plain', 'x'.repeat(responseBytes + 1)), 'response_too_large', /4 MiB/)
    answer = { headers: {}, body: '' }
    const post = (body: string) => http.call({ method: 'POST', url, body }, options())
    await post('x'.repeat(requestBytes))
    assert.equal(Buffer.concat(received).length, requestBytes)
    received = []
    await fails(post('é'.repeat(requestBytes / 2 + 1)), 'request_too_large', /2 MiB/)
    assert.equal(received.length, 0)
  })

  const charsets: [type: string, bytes: Buffer, text: string][] = [
    ['text/plain; charset=iso-8859-1', Buffer.from('Zo\xeb \x80', 'latin1'), 'Zoë €'],
    ['text/plain; charset="Latin1"', Buffer.from('Zo\xeb', 'latin1'), 'Zoë'],
    ['text/plain; charset=windows-1252', Buffer.from('\x93Zo\xeb\x94', 'latin1'), '“Zoë”'],
    ['text/csv;charset=Shift_JIS', Buffer.from([0x82, 0xa0]), 'あ'],
    ['text/plain; charset=utf-16le', Buffer.from('Zoë', 'utf16le'), 'Zoë'],
    ['text/plain', Buffer.from('\ufeffZoë', 'utf16le'), 'Zoë'],
    ['text/plain', Buffer.from('\ufeffZoë'), 'Zoë'],
    ['text/plain; charset=iso-8859-1', Buffer.from('\ufeffZoë'), 'Zoë'],
    ['text/plain; charset=utf-8; format=flowed', Buffer.from('Zoë'), 'Zoë'],
  ]
  for (const [type, bytes, text] of charsets)
    it(`are decoded as ${type}: ${bytes.toString('hex')}`, async () => {
      const { body, body_error } = await get(type, bytes)
      assert.deepEqual([body, body_error], [text, null])
    })

  it('of JSON are parsed in their charset', async () => {
    const latin = Buffer.from('{"name":"Zo\xeb"}', 'latin1')
    assert.deepEqual((await get('application/json; charset=iso-8859-1', latin)).body, { name: 'Zoë' })
    for (const type of ['application/problem+json', 'text/json', 'application/vnd.api+json; charset=utf-8'])
      assert.deepEqual((await get(type, '{"a":1}')).body, { a: 1 }, type)
    for (const type of ['text/plain', 'application/json-seq', 'application/x-ndjson', undefined])
      assert.equal((await get(type, '{"a":1}')).body, '{"a":1}', type)
  })

  it('that are not what their type says are text, with the reason', async () => {
    const broken = await get('application/json', '{"a":')
    assert.equal(broken.body, '{"a":')
    assert.equal(broken.body_error?.code, 'invalid_json')
    assert.match(broken.body_error!.message, /application\/json.*JSON/)
    const unknown = await get('text/plain; charset=klingon', 'Zoë')
    assert.deepEqual([unknown.body, unknown.body_error?.code], ['Zoë', 'unknown_charset'])
    assert.match(unknown.body_error!.message, /klingon.*UTF-8/)
    const malformed = await get('text/html', Buffer.from('Zo\xeb', 'latin1'))
    assert.deepEqual([malformed.body, malformed.body_error?.code], ['Zo\ufffd', 'malformed_text'])
    const empty = await get('application/json', '')
    assert.deepEqual([empty.body, empty.body_error], ['', null])
  })

  const binary: [what: string, type: string | undefined, bytes: Buffer][] = [
    ['image', 'image/png', PNG],
    ['file without a type', undefined, PNG],
    ['file of bytes', 'application/octet-stream', Buffer.from([0, 1, 2, 3])],
    [
      'document',
      'application/pdf',
      Buffer.concat([Buffer.from('%PDF-1.7\n%'), Buffer.from([0xe2, 0xe3, 0xcf])]),
    ],
  ]
  for (const [what, type, bytes] of binary)
    it(`that are binary are not stored as text: a ${what}`, async () => {
      const { body, body_error, body_bytes } = await get(type, bytes)
      assert.deepEqual([body, body_error?.code, body_bytes], [null, 'binary_body', bytes.length])
      assert.match(body_error!.message, new RegExp(`${bytes.length} bytes`))
    })

  it('of other types are text if they are text', async () => {
    for (const type of [undefined, 'application/octet-stream', 'application/yaml', 'image/svg+xml'])
      assert.deepEqual((await get(type, '<a>Zoë</a>\r\n')).body, '<a>Zoë</a>\r\n', type)
  })

  it('of requests that are forms by their header are written as forms', async () => {
    const send = (body: Record<string, unknown> | unknown[]) => {
      answer = { headers: {}, body: '' }
      const headers = { 'Content-Type': 'application/x-www-form-urlencoded; charset=utf-8' }
      return http.call({ method: 'POST', url, headers, body }, options())
    }
    await send({
      a: 1,
      b: 'x y&z',
      ok: true,
      card: { number: '42' },
      items: [{ price: 'p1' }, { price: 'p2' }],
    })
    assert.equal(
      Buffer.concat(received).toString(),
      'a=1&b=x+y%26z&ok=true&card%5Bnumber%5D=42&items%5B0%5D%5Bprice%5D=p1&items%5B1%5D%5Bprice%5D=p2',
    )
    await fails(send({ a: { b: null } }), 'invalid_config', /body\.a\[b\] is null.*omit_if_empty/)
    await fails(send([1]), 'invalid_config', /a form needs names/)
  })

  it('of JSON may be nested 100 levels deep', async () => {
    const nested = (depth: number) => `${'[{"a":'.repeat(depth / 2)}"[[\\"[["${'}]'.repeat(depth / 2)}`
    const { body } = await get('application/json', nested(HTTP_LIMITS.depth))
    assert.equal(typeof body, 'object')
    for (const depth of [HTTP_LIMITS.depth + 2, 5_000, 400_000])
      await fails(get('application/json', nested(depth)), 'response_too_deep', /100 levels/)
  })
})
