import assert from 'node:assert/strict'
import { randomUUID } from 'node:crypto'
import type { ServerResponse } from 'node:http'
import { createOrganization, createTestDatabase, type TestDatabase } from '../support/database.ts'
import { type HttpServer, startHttpServer } from '../support/http-server.ts'
import { startProcess, type TestProcess } from '../support/process.ts'
import { until } from '../support/until.ts'
import { queueRun, untilRun } from '../support/worker.ts'

describe('a worker process that gets SIGTERM', () => {
  let db: TestDatabase
  let organizationId: string
  let server: HttpServer
  let url: string
  /** Pending calls, by path. */
  const calls: Record<string, ServerResponse[]> = { '/finishes': [], '/hangs': [] }
  const workers: TestProcess[] = []
  const taskQueue = `test-${randomUUID()}`

  before(async () => {
    db = await createTestDatabase()
    organizationId = await createOrganization(db)
    server = await startHttpServer((request, response) => calls[request.url!]!.push(response))
    url = server.url
  })
  after(async () => {
    for (const { child } of workers) child.kill('SIGKILL')
    await server?.close()
    await db?.drop()
  })

  async function start(): Promise<TestProcess> {
    const env = { TEMPORAL_TASK_QUEUE: taskQueue, SHUTDOWN_GRACE: '2' }
    const worker = await startProcess('worker', { databaseUrl: db.url, env })
    workers.push(worker)
    return worker
  }
  const queue = (path: string) =>
    queueRun(db, organizationId, {
      nodes: [
        {
          id: 'post',
          type: 'api_request',
          config: { method: 'POST', url: url + path },
          retry: { max_attempts: 1 },
        },
      ],
    })
  const nodeOf = (runId: string) => db.system('run_nodes').where({ run_id: runId }).first()
  const answered = (path: string, index: number) =>
    until(() => calls[path]![index], `call ${index} of ${path}`).then((response) => response.end('ok'))

  it('finishes what it can within SHUTDOWN_GRACE, and leaves the rest to another worker', async () => {
    const first = await start()
    const [finishes, hangs] = [await queue('/finishes'), await queue('/hangs')]
    await until(() => calls['/finishes']![0] && calls['/hangs']![0], 'both calls')

    const stopped = first.stop()
    const readiness = await until(async () => {
      const answer = await fetch(`${first.url}/readyz`)
      return answer.status === 503 && answer
    })
    assert.equal(((await readiness.json()) as { status: string }).status, 'stopping')
    const late = await queue('/finishes')
    await answered('/finishes', 0)
    const { code, milliseconds } = await stopped
    assert.equal(code, 0, first.output())
    assert.ok(milliseconds > 1_900, `it took ${milliseconds} ms`)
    assert.equal((await nodeOf(finishes)).status, 'completed')
    assert.equal((await db.system('runs').where({ id: late }).first()).status, 'queued')

    await start()
    await answered('/hangs', 1)
    await answered('/finishes', 1)
    for (const id of [finishes, hangs, late]) assert.equal((await untilRun(db, id)).status, 'completed')
    assert.equal((await nodeOf(hangs)).attempt, 1, 'the attempt that the shutdown cancelled does not count')
  })
})
