import assert from 'node:assert/strict'
import { randomUUID } from 'node:crypto'
import { createServer, type Server, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { Client, Connection } from '@temporalio/client'
import { createOrganization, createTestDatabase, type TestDatabase } from '../support/database.ts'
import { startProcess, type TestProcess } from '../support/process.ts'
import { until } from '../support/until.ts'
import { queueRun } from '../support/worker.ts'

/** By itself, it would write them to stdout as coloured text, where nothing masks secrets. */
describe('what the native part of the SDK of Temporal logs', function () {
  this.timeout(110_000)
  let db: TestDatabase
  let server: Server
  let worker: TestProcess
  let connection: Connection
  const held: ServerResponse[] = []
  before(async () => {
    db = await createTestDatabase()
    server = createServer((_, response) => void held.push(response))
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
    const env = { TEMPORAL_TASK_QUEUE: `test-${randomUUID()}` }
    worker = await startProcess('worker', { databaseUrl: db.url, env })
    connection = await Connection.connect({ address: process.env.TEST_TEMPORAL_ADDRESS! })
  })
  after(async () => {
    worker?.child.kill('SIGKILL')
    await connection?.close()
    server?.closeAllConnections()
    server?.close()
    await db?.drop()
  })

  it('is in the log of the worker, as its other lines', async () => {
    const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}/`
    const organizationId = await createOrganization(db)
    const id = await queueRun(db, organizationId, {
      nodes: [{ id: 'call', type: 'api_request', config: { method: 'GET', url } }],
    })
    await until(() => held.length > 0, 'the call')
    // The activity ends when its workflow is gone.
    await new Client({ connection }).workflow.getHandle(`run:${id}`).terminate()
    for (const response of held) response.end('{}')
    const found = await until(() => {
      const lines = worker.output().split('\n')
      return lines.find((line) => /activity not found/i.test(line))
    }, 'the line of the SDK')
    const { level, name } = JSON.parse(found)
    assert.deepEqual([level, name], [40, 'worker'])
    for (const line of worker.output().trim().split('\n')) assert.doesNotThrow(() => JSON.parse(line), line)
  })
})
