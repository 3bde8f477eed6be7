import assert from 'node:assert/strict'
import type { Answer } from '../../support/answer.ts'
import { createKey, startApi, type TestApi } from '../../support/api.ts'
import { createOrganization } from '../../support/database.ts'
import { inOneMinute, leaveOf } from '../../support/limits.ts'
import { withApi } from '../../support/with-api.ts'

const LIMIT = 1_000

describe('the rate limit of /v1', () => {
  const suite = withApi()
  /** Three processes on one database. */
  let processes: TestApi[]
  before(async () => {
    processes = [suite.api, await startApi(suite.db), await startApi(suite.db)]
  })
  after(() => Promise.all(processes.slice(1).map((api) => api.close())))

  const me = (key: string, process = 0) => processes[process]!.request('GET', '/v1/me', { key })
  /** Organizations with a limit of their own, so that no test finds what another has used. */
  async function limited(limits: { requests_per_minute?: number; requests_per_minute_per_key?: number }) {
    const organizationId = await createOrganization(suite.db, { limits })
    const { id, key } = await createKey(suite.db, organizationId)
    // Waits for the next minute if this one ends soon.
    await leaveOf(suite.db, { organizationId, subject: 'none', limit: 1 }, 1)
    return { organizationId, id, key }
  }
  /** Sends so many requests, a few at a time, to the process that `which` chooses. */
  async function send(key: string, total: number, which: (n: number) => number) {
    const counts: Record<number, number> = {}
    let sent = 0
    const client = async () => {
      while (sent < total) {
        const { status } = await me(key, which(sent++))
        counts[status] = (counts[status] ?? 0) + 1
      }
    }
    await Promise.all(Array.from({ length: 12 }, client))
    return counts
  }
  const assertExact = (allowed: number) =>
    assert.ok(allowed <= LIMIT && allowed >= LIMIT * 0.98, `${allowed} of ${LIMIT}`)

  for (const [what, limits] of [
    ['a key', { requests_per_minute_per_key: LIMIT }],
    ['an organization', { requests_per_minute: LIMIT }],
  ] as const)
    it(`of ${what} is exact to within 2 % across three processes with equal load`, () =>
      inOneMinute(async () => {
        const { key } = await limited(limits)
        const counts = await send(key, LIMIT + 100, (n) => n % 3)
        assertExact(counts[200]!)
        assert.deepEqual(Object.keys(counts), ['200', '429'])
      }))

  it('is exact to within 2 % if two of three processes fall idle with a part of it', () =>
    inOneMinute(async () => {
      const { key } = await limited({ requests_per_minute_per_key: LIMIT })
      const early = await send(key, 120, (n) => n % 3)
      const rest = await send(key, LIMIT, () => 0)
      assertExact(early[200]! + rest[200]!)
    }))

  it('costs a query for less than one in ten requests while most of the limit is left', async () => {
    const { key } = await limited({})
    await send(key, 200, () => 0)
    let leases = 0
    const count = ({ sql }: { sql: string }) => {
      if (sql.includes('into limit_windows')) leases++
    }
    suite.db.system.on('query', count)
    await send(key, 300, () => 0)
    suite.db.system.off('query', count)
    assert.ok(leases < 30, String(leases))
  })

  it('is in the headers of successes and refusals', async () => {
    const { key, organizationId } = await limited({ requests_per_minute: 5, requests_per_minute_per_key: 3 })
    const second = await createKey(suite.db, organizationId)
    const shown = ({ status, headers }: Answer) => {
      const reset = Number(headers.get('x-ratelimit-reset'))
      const left = Math.ceil(reset - Date.now() / 1_000)
      assert.ok(Number.isInteger(reset) && reset % 60 === 0 && left > 0 && left <= 60)
      const [, name, remaining, seconds] = /^"(\w+)";r=(\d+);t=(\d+)$/.exec(headers.get('ratelimit')!)!
      // From the answer, not from now.
      assert.ok(Number(seconds) >= left && Number(seconds) <= 60)
      assert.equal(remaining, headers.get('x-ratelimit-remaining'))
      const limit = headers.get('x-ratelimit-limit')
      assert.equal(headers.get('ratelimit-policy'), `"${name}";q=${limit};w=60`)
      const retry = headers.get('retry-after')
      assert.equal(retry === null, status !== 429)
      if (retry !== null) assert.ok(Math.abs(Number(retry) - left) <= 1)
      return [status, name, Number(limit), Number(remaining)]
    }
    const answers = []
    for (let i = 0; i < 4; i++) answers.push(shown(await me(key)))
    for (let i = 0; i < 3; i++) answers.push(shown(await me(second.key)))
    assert.deepEqual(answers, [
      [200, 'key', 3, 2],
      [200, 'key', 3, 1],
      [200, 'key', 3, 0],
      [429, 'key', 3, 0],
      [200, 'organization', 5, 1],
      [200, 'organization', 5, 0],
      [429, 'organization', 5, 0],
    ])
    // Refusals of other kinds count and show it too.
    const { status, headers } = await suite.api.request('GET', '/v1/nowhere', {
      key: (await limited({ requests_per_minute: 9 })).key,
    })
    assert.deepEqual([status, headers.get('x-ratelimit-remaining')], [404, '8'])
  })

  it('says in Retry-After when the next request succeeds, on every process', async () => {
    const { key } = await limited({ requests_per_minute_per_key: 1 })
    assert.equal((await me(key)).status, 200)
    const wait = Number((await me(key)).headers.get('retry-after'))
    const now = Date.now
    const later = async (seconds: number, process: number) => {
      // The processes of this test read the clock of this one.
      Date.now = () => now() + seconds * 1_000
      try {
        return (await me(key, process)).status
      } finally {
        Date.now = now
      }
    }
    assert.equal(await later(wait - 2, 1), 429)
    assert.equal(await later(wait, 1), 200)
    assert.equal(await later(wait, 0), 429)
  })

  it('grows at once with the plan', async () => {
    const { key, organizationId } = await limited({ requests_per_minute_per_key: 1 })
    assert.deepEqual([(await me(key)).status, (await me(key)).status], [200, 429])
    await suite.db.system('organizations').where({ id: organizationId }).update({ limits: '{}' })
    for (const process of [0, 1, 2]) assert.equal((await me(key, process)).status, 200)
  })
})
