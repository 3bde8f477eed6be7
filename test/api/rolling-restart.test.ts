import assert from 'node:assert/strict'
import { createKey } from '../support/api.ts'
import { type Balancer, startBalancer } from '../support/balancer.ts'
import { createOrganization, createTestDatabase, type TestDatabase } from '../support/database.ts'
import { startProcess, type TestProcess } from '../support/process.ts'
import { until } from '../support/until.ts'

describe('a rolling restart of the api behind a balancer that polls /readyz', () => {
  let db: TestDatabase
  let balancer: Balancer
  const apis: TestProcess[] = []
  before(async () => {
    db = await createTestDatabase()
    balancer = await startBalancer()
  })
  after(async () => {
    balancer?.close()
    for (const { child } of apis) child.kill('SIGKILL')
    await db?.drop()
  })

  async function start(): Promise<TestProcess> {
    // Empty: the default, which the other tests do without.
    const api = await startProcess('api', { databaseUrl: db.url, env: { SHUTDOWN_DELAY: '' } })
    apis.push(api)
    await balancer.add(api.url)
    return api
  }

  it('answers every request, with the default settings', async () => {
    const { key } = await createKey(db, await createOrganization(db))
    const [first, second] = [await start(), await start()]
    const statuses = new Map<number, number>()
    let restarting = true
    const client = async () => {
      while (restarting) {
        const { status } = await fetch(`${balancer.url}/v1/me`, {
          headers: { authorization: `Bearer ${key}` },
        })
        statuses.set(status, (statuses.get(status) ?? 0) + 1)
      }
    }
    const clients = Array.from({ length: 4 }, client)
    const answered = () => [...statuses.values()].reduce((sum, count) => sum + count, 0)
    for (const old of [first, second]) {
      const before = answered()
      await until(() => answered() > before + 10, 'requests before the signal')
      assert.equal((await old.stop()).code, 0, old.output())
      await start()
    }
    restarting = false
    await Promise.all(clients)
    assert.deepEqual([...statuses.keys()], [200], JSON.stringify([...statuses]))
    assert.ok(answered() > 50)
  })
})
