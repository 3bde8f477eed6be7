import assert from 'node:assert/strict'
import { Agent, request } from 'node:http'
import { createUser } from '../../../db/access/users.ts'
import { leaveOf } from '../../support/limits.ts'
import { planted } from '../../support/planted.ts'
import { recordStatements } from '../../support/statements.ts'
import { withApi } from '../../support/with-api.ts'

const PASSWORD = planted('correct horse battery staple')
const EMAIL = 'ada@example.com'

interface Attempt {
  status: number
  retryAfter: string | undefined
}

describe('a flood of sign-ins', () => {
  const suite = withApi({ TRUSTED_PROXIES: '1' })
  const agent = new Agent({ keepAlive: true, maxSockets: 50 })
  before(async () => {
    const { organizationId } = suite.api
    await createUser(suite.db.system, {
      email: EMAIL,
      name: 'Ada',
      password: PASSWORD,
      organizationId,
      role: 'owner',
    })
  })
  beforeEach(() => suite.db.system('limit_windows').delete())
  after(() => agent.destroy())

  const attempt = (address: string, password: string): Promise<Attempt> =>
    new Promise((resolve, reject) => {
      const headers = { 'Content-Type': 'application/json', 'X-Forwarded-For': address }
      const sent = request(`${suite.api.url}/app/session`, { method: 'POST', agent, headers }, (answer) => {
        answer.resume()
        answer.on('end', () =>
          resolve({ status: answer.statusCode!, retryAfter: answer.headers['retry-after'] }),
        )
      })
      sent.on('error', reject)
      sent.end(JSON.stringify({ email: EMAIL, password }))
    })
  const counts = (attempts: Attempt[]) => {
    const found: Record<number, number> = {}
    for (const { status } of attempts) found[status] = (found[status] ?? 0) + 1
    return found
  }

  it('of 10,000 from one address checks ten passwords, and lets the user in from elsewhere', async () => {
    const statements = recordStatements()
    const flood = Promise.all(Array.from({ length: 10_000 }, (_, i) => attempt('192.0.2.1', `guess ${i}`)))
    const user = await attempt('192.0.2.2', PASSWORD)
    const attempts = await flood
    const sent = statements.take()
    statements.stop()
    assert.equal(user.status, 201)
    const { 401: checked = 0, 503: busy = 0, 429: refused = 0, ...others } = counts(attempts)
    assert.deepEqual(others, {})
    // Ten per window of five minutes, which may end during the test.
    assert.ok(checked > 0 && checked + busy <= 20, `${checked} ${busy}`)
    assert.equal(checked + busy + refused, 10_000)
    for (const { status, retryAfter } of attempts)
      if (status === 429) assert.ok(Number(retryAfter) >= 1, retryAfter)
    assert.ok(sent.filter((text) => text.includes('"users"')).length <= 50)
    // The limit of the address is counted in memory, with leases.
    assert.ok(sent.length < 1_000, `${sent.length} statements`)
  })

  it('from many addresses ends for one email at 300 in five minutes', async () => {
    await leaveOf(suite.db, { subject: `sign-in email ${EMAIL}`, limit: 300, period: 300 }, 3)
    const attempts = await Promise.all(
      Array.from({ length: 100 }, (_, i) => attempt(`198.51.100.${i}`, 'guess')),
    )
    const { 401: checked = 0, 429: refused = 0, 503: busy = 0 } = counts(attempts)
    assert.deepEqual([checked + busy, refused], [3, 97])
  })
})
