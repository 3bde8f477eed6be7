import assert from 'node:assert/strict'
import type { ChildProcess } from 'node:child_process'
import { randomUUID } from 'node:crypto'
import { once } from 'node:events'
import { createServer, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { createOrganization, createTestDatabase, type TestDatabase } from '../support/database.ts'
import { startProcess } from '../support/process.ts'
import { queueRun, untilRun } from '../support/worker.ts'

const LAST = 5

/** A worker process, killed with SIGKILL while it reads the fourth page of a service. */
describe('a worker that is killed while it reads pages', () => {
  let db: TestDatabase
  let server: Server
  const calls: number[] = []
  const children: ChildProcess[] = []
  const taskQueue = `test-${randomUUID()}`
  let hang = true
  let arrived = () => {}

  before(async () => {
    db = await createTestDatabase()
    server = createServer((request, response) => {
      const page = Number(new URL(request.url!, 'http://x.test').searchParams.get('page'))
      const isBusy = page === 2 && !calls.includes(2)
      calls.push(page)
      if (page === 4 && hang) return arrived()
      response
        .writeHead(isBusy ? 503 : 200, { 'content-type': 'application/json' })
        .end(JSON.stringify(page > LAST ? [] : [page]))
    })
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  })
  after(async () => {
    for (const child of children) child.kill('SIGKILL')
    server?.closeAllConnections()
    server?.close()
    await db?.drop()
  })

  async function startWorker(): Promise<ChildProcess> {
    const env = { TEMPORAL_TASK_QUEUE: taskQueue }
    const { child } = await startProcess('worker', { databaseUrl: db.url, env })
    children.push(child)
    return child
  }

  it('is replaced by another, which goes on after the pages that were kept', async () => {
    const came = new Promise<void>((resolve) => {
      arrived = resolve
    })
    const first = await startWorker()
    const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}/things`
    const id = await queueRun(db, await createOrganization(db), {
      nodes: [
        {
          id: 'read',
          type: 'api_request',
          config: { url, paginate: { page: {} } },
          retry: { max_attempts: 2, initial_interval: '10ms' },
        },
      ],
      edges: [],
      outputs: { items: '{{ nodes.read.output.items }}' },
    })
    await came
    first.kill('SIGKILL')
    await once(first, 'exit')
    hang = false
    await startWorker()
    const run = await untilRun(db, id, undefined, 90)
    assert.deepEqual(run.outputs, { items: [1, 2, 3, 4, 5] })
    assert.deepEqual(calls, [1, 2, 2, 3, 4, 2, 3, 4, 5, 6], 'the failure of page 2 had page 1 kept')
  })
})
