import assert from 'node:assert/strict'
import { once } from 'node:events'
import { createServer } from 'node:http'
import { type AddressInfo, connect } from 'node:net'
import { answerExpectation, answerMalformed } from '../../../api/http/malformed.ts'

describe('a request that is not valid HTTP', () => {
  const server = createServer((_, res) => res.end('reached'))
  server.on('clientError', answerMalformed).on('checkExpectation', answerExpectation)
  before(() => once(server.listen(0, '127.0.0.1'), 'listening'))
  after(() => {
    server.closeAllConnections()
    server.close()
  })

  async function send(bytes: string): Promise<{ status: number; headers: string; body: string }> {
    const socket = connect((server.address() as AddressInfo).port, '127.0.0.1')
    socket.end(Buffer.from(bytes, 'latin1'))
    let answer = ''
    for await (const chunk of socket) answer += chunk
    const [headers = '', body = ''] = answer.split('\r\n\r\n')
    return { status: Number(headers.split(' ')[1]), headers, body }
  }

  it('is answered with the error envelope and a request id', async () => {
    for (const bytes of ['no http\r\n\r\n', 'GET /\xe9\xff HTTP/1.1\r\nHost: x\r\n\r\n'])
      assert.equal((await send(bytes)).status, 400)
    const { headers, body } = await send('POST / HTTP/1.1\r\nHost: x\r\nContent-Length: -1\r\n\r\n')
    const { error } = JSON.parse(body)
    assert.equal(error.type, 'invalid_request')
    assert.match(headers, new RegExp(`X-Request-Id: ${error.request_id}`))
    assert.match(headers, /Content-Type: application\/json/)
  })

  it('is refused with the error envelope for an unsupported expectation', async () => {
    const { status, headers, body } = await send('GET / HTTP/1.1\r\nHost: x\r\nExpect: a miracle\r\n\r\n')
    assert.equal(status, 417)
    const { error } = JSON.parse(body)
    assert.equal(error.type, 'invalid_request')
    assert.match(headers, new RegExp(`X-Request-Id: ${error.request_id}`))
  })

  it('is refused if the headers are too large', async () => {
    const { status, body } = await send(`GET / HTTP/1.1\r\nHost: x\r\nX: ${'a'.repeat(20_000)}\r\n\r\n`)
    assert.equal(status, 431)
    assert.match(JSON.parse(body).error.message, /headers are too large/)
  })
})
