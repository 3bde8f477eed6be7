import assert from 'node:assert/strict'
import { randomUUID } from 'node:crypto'
import { createServer, type Server } from 'node:http'
import { setTimeout as sleep } from 'node:timers/promises'
import { Webhook } from 'standardwebhooks'
import { migrations } from '../db/migrations/index.ts'
import { migrate } from '../db/migrations/migrate.ts'
import { type Caller, caller, signInOwner } from './support/caller.ts'
import { createTestDatabase, type TestDatabase } from './support/database.ts'
import { startProcess, type TestProcess } from './support/process.ts'
import { KEY, OUTSIDE_PORT, OWNER, RELEASE_ENV, releases, WAITING } from './support/releases.ts'
import { until } from './support/until.ts'

type Run = {
  run_id: string
  workflow_name: string
  status: string
  waits: { approval?: { id: string } }[]
}

describe('releases', () => {
  it('are recorded', () => assert.ok(releases().length > 0))
})

for (const { version, sql, known } of releases())
  describe(`the database of version ${version}, with an empty Temporal`, () => {
    let db: TestDatabase
    let applied: string[]
    let processes: TestProcess[] = []
    let outside: Server
    let v1: Caller
    let app: Caller
    const calls: { run: string; key: string }[] = []
    const hooks: { id: string; body: { event: string; data: { first_name: string } } }[] = []

    before(async () => {
      outside = createServer(async (request, response) => {
        let body = ''
        for await (const chunk of request) body += chunk
        const headers = request.headers as Record<string, string>
        if (request.url === '/calls')
          calls.push({ ...JSON.parse(body), key: headers['idempotency-key'] ?? 'none' })
        else
          hooks.push({
            id: headers['webhook-id']!,
            body: new Webhook(known.outgoing.secret).verify(body, headers) as (typeof hooks)[number]['body'],
          })
        response.writeHead(200, { 'content-type': 'application/json' }).end('{}')
      })
      await new Promise<void>((resolve) => outside.listen(OUTSIDE_PORT, '127.0.0.1', resolve))
      db = await createTestDatabase()
      await db.asOwner(async (client) => {
        await client.query('drop schema public cascade; create schema public')
        await client.query(sql)
      })
      applied = await migrate(db.url)
      // The Temporal of the recorded deployment is gone.
      const env = { ...RELEASE_ENV, TEMPORAL_TASK_QUEUE: `test-${randomUUID()}`, TEMPORAL_ADOPT: 'true' }
      processes = await Promise.all(
        (['worker', 'api'] as const).map((name) => startProcess(name, { databaseUrl: db.url, env })),
      )
      const [, api] = processes as [TestProcess, TestProcess]
      v1 = caller(`${api.url}/v1`, { authorization: `Bearer ${KEY}` })
      app = await signInOwner({ apiUrl: api.url, owner: OWNER })
    })
    after(async () => {
      await Promise.all(processes.map((process) => process.stop()))
      await new Promise((resolve) => outside?.close(resolve))
      await db?.drop()
    })

    const runsOf = async (name: string): Promise<Run[]> => {
      // Within the limit of requests of the key.
      await sleep(200)
      const { data } = await v1<{ data: Run[] }>('GET', '/runs?limit=200')
      const named = data.filter(({ workflow_name }) => workflow_name === name)
      return Promise.all(named.map(({ run_id }) => v1<Run>('GET', `/runs/${run_id}`)))
    }
    const completes = (name: string, count = 1) =>
      until(
        async () => {
          const runs = await runsOf(name)
          return runs.length === count && runs.every(({ status }) => status === 'completed')
        },
        () => runsOf(name),
      )

    it('is migrated in one step to the newest schema', async () => {
      const names = migrations.map(([name]) => name)
      assert.deepEqual(applied, names.slice(names.length - applied.length))
      assert.deepEqual(await migrate(db.url), [])
    })

    it('has its records, as clients of that version read them', async () => {
      assert.ok(known.records.length > 0)
      for (const { path, body } of known.records) {
        const now = await v1<Record<string, unknown>>('GET', path)
        // A later version may add members.
        assert.deepEqual(Object.fromEntries(Object.keys(body).map((name) => [name, now[name]])), body)
      }
    })

    it('goes on with runs that wait for a signal, also in an item, and with what was accepted without a worker', async () => {
      const waiting = await until(async () => {
        const runs = await runsOf('Waits for a signal')
        return runs.length === 2 && runs.every(({ waits }) => waits.length === 1) && runs
      })
      for (const { run_id } of waiting)
        await v1('POST', `/runs/${run_id}/signal`, { name: 'go', payload: {} })
      await completes('Waits for a signal', 2)
      const [looping] = await runsOf('Waits for an item')
      for (const _ of [1, 2])
        await until(() => v1('POST', `/runs/${looping!.run_id}/signal`, { name: 'item', payload: {} }))
      await completes('Waits for an item')
    })

    it('takes the answer to an approval', async () => {
      const [run] = await runsOf('Waits for a person')
      const approval_id = run!.waits[0]!.approval!.id
      await v1('POST', `/runs/${run!.run_id}/signal`, { approval_id, decision: 'approved' })
      await completes('Waits for a person')
    })

    it('goes on after a delay, and with a call between two attempts, once', async () => {
      await completes('Waits for a time')
      await completes('Waits for its next attempt')
      const [run] = await runsOf('Waits for its next attempt')
      assert.deepEqual(
        calls.map((call) => call.run),
        [run!.run_id],
      )
    })

    it('delivers what waited and what was not sent yet, with the secret of then', async () => {
      await until(() => new Set(hooks.map(({ body }) => body.data.first_name)).size >= 2)
      const names = hooks.map(({ body }) => body.data.first_name)
      for (const name of ['Early', 'Late']) assert.equal(names.filter((one) => one === name).length, 1, name)
      assert.equal(new Set(hooks.map(({ id }) => id)).size, hooks.length)
    })

    it('starts workflows by events of before and after the upgrade, and takes its incoming webhooks', async () => {
      const contacts = async () => (await runsOf('Greets a contact')).length
      const before = await contacts()
      const [, api] = processes as [TestProcess, TestProcess]
      const answer = await fetch(api.url + known.incoming.path, {
        method: 'POST',
        headers: { 'content-type': 'application/json', 'x-webhook-secret': known.incoming.secret },
        body: JSON.stringify({ first_name: 'New', email: 'new@example.com' }),
      })
      assert.equal(answer.status, 200)
      await until(async () => (await contacts()) === before + 1)
      await until(async () =>
        (await runsOf('Greets a contact')).every(({ status }) => status === 'completed'),
      )
      const { data } = await app<{ data: { name: string }[] }>('GET', '/webhooks/incoming')
      assert.deepEqual(
        data.map(({ name }) => name),
        ['Form'],
      )
    })

    it('has no run that did not wait or complete', async () => {
      for (const name of Object.keys(WAITING))
        for (const { status } of await runsOf(name)) assert.equal(status, 'completed', name)
    })
  })
