import assert from 'node:assert/strict'
import { once } from 'node:events'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { pino } from 'pino'
import { serve } from '../../../api/http/serve.ts'
import { AppError } from '../../../db/model/errors.ts'

describe('the request log', () => {
  const lines: Record<string, unknown>[] = []
  const log = pino({ base: null }, { write: (line: string) => lines.push(JSON.parse(line)) })
  const app = serve(log, (ctx, path) => {
    ctx.state.route = '/v1/things/{thing_id}'
    if (path.endsWith('broken'))
      throw Object.assign(new Error('duplicate key'), {
        code: '23505',
        detail: 'Key (email)=(ann@example.com)',
      })
    throw new AppError('not_found', 'thing not found')
  })
  const server = createServer(app.callback())
  before(() => once(server.listen(0, '127.0.0.1'), 'listening'))
  after(() => {
    server.closeAllConnections()
    server.close()
  })
  beforeEach(() => lines.splice(0))
  const get = (path: string) =>
    fetch(`http://127.0.0.1:${(server.address() as AddressInfo).port}${path}`, {
      headers: { Authorization: 'Bearer agx_secret', Cookie: 'agx_session=secret' },
    })

  it('has one line for each request: organization, route, status, duration', async () => {
    const answer = await get('/v1/things/ann@example.com?email=ann@example.com')
    assert.equal(lines.length, 1)
    const { request_id, method, route, status, ms } = lines[0]!
    assert.equal(request_id, answer.headers.get('x-request-id'))
    assert.deepEqual([method, route, status], ['GET', '/v1/things/{thing_id}', 404])
    assert.equal(typeof ms, 'number')
    assert.doesNotMatch(JSON.stringify(lines), /ann@|secret/)
  })

  it('has the unexpected error, without values of the row', async () => {
    const answer = await get('/broken')
    assert.equal(answer.status, 500)
    assert.match(JSON.stringify(lines), /duplicate key.*23505|23505.*duplicate key/)
    assert.doesNotMatch(JSON.stringify(lines), /ann@|secret/)
  })
})
