import assert from 'node:assert/strict'
import { createKey } from '../support/api.ts'
import { createOrganization, createTestDatabase, type TestDatabase } from '../support/database.ts'
import { startProcess, type TestProcess } from '../support/process.ts'
import { startProxy, type TestProxy } from '../support/proxy.ts'
import { until } from '../support/until.ts'

describe('an api process whose PostgreSQL hangs', () => {
  let db: TestDatabase
  let proxy: TestProxy
  let api: TestProcess
  let key: string
  before(async () => {
    db = await createTestDatabase()
    key = (await createKey(db, await createOrganization(db))).key
    proxy = await startProxy(db.url)
    api = await startProcess('api', { databaseUrl: proxy.url, env: { DATABASE_POOL: '4' } })
  })
  after(async () => {
    api?.child.kill('SIGKILL')
    proxy?.close()
    await db.drop()
  })

  async function call(path: string, method = 'GET', body?: object) {
    const response = await fetch(api.url + path, {
      method,
      headers: { authorization: `Bearer ${key}`, 'content-type': 'application/json' },
      ...(body && { body: JSON.stringify(body) }),
    })
    const parsed = (await response.json()) as { error?: { type: string }; status?: string }
    const { status, headers } = response
    return { status, headers, body: parsed }
  }

  it('answers every request although the database never will, and recovers by itself', async () => {
    const mixed = () =>
      Array.from({ length: 20 }, (_, index) =>
        index % 2
          ? call('/v1/objects/contacts')
          : call('/v1/objects/contacts', 'POST', { first_name: 'Ada' }),
      )
    for (const { status } of await Promise.all(mixed())) assert.ok(status < 300)

    proxy.hang()
    let answered = 0
    const first = mixed().map((request) => request.finally(() => answered++))
    assert.deepEqual([(await call('/healthz')).status, answered], [200, 0], 'it is alive meanwhile')
    const answers = [...(await Promise.all(first)), ...(await Promise.all(mixed()))]
    for (const { status, headers, body } of answers) {
      assert.deepEqual([status, body.error?.type], [503, 'unavailable'])
      assert.ok(Number(headers.get('retry-after')) >= 1)
    }
    const readiness = await call('/readyz')
    assert.deepEqual([readiness.status, readiness.body.status], [503, 'not_ready'])

    proxy.resume()
    await until(
      async () => ((await call('/v1/objects/contacts')).status === 200 ? true : undefined),
      'an answer',
    )
  })

  it('lets a statement finish that is only slow', async () => {
    let listed: ReturnType<typeof call> | undefined
    await db.system.transaction(async (trx) => {
      await trx.raw('reset role; lock table contacts in access exclusive mode')
      listed = call('/v1/objects/contacts')
      await new Promise((resolve) => setTimeout(resolve, 4_000))
    })
    assert.equal((await listed)?.status, 200)
  })
})
