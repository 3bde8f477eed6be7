import assert from 'node:assert/strict'
import type Koa from 'koa'
import { Compute } from '../../../api/compute/compute.ts'
import { readConfig } from '../../../api/config.ts'
import { Exchange } from '../../../api/http/exchange.ts'
import { runOnce } from '../../../api/http/idempotency.ts'
import { KnownWorkflows } from '../../../api/http/known-workflows.ts'
import { RunEnds } from '../../../api/http/run-ends.ts'
import type { Caller } from '../../../api/http/scopes.ts'
import { documentSlots, nodeTestSlots, streamSlots } from '../../../api/http/slots.ts'
import { ClientDocuments } from '../../../api/oauth/client-documents.ts'
import { conflict } from '../../../db/model/errors.ts'
import type { Database } from '../../../db/postgres/connect.ts'
import { createLogger } from '../../../db/process/log.ts'
import { LogOutput } from '../../../db/process/log-output.ts'
import { createMetrics } from '../../../db/process/metrics.ts'
import { QueuedRuns } from '../../../db/runs/queued-runs.ts'
import { createOrganization, createTestDatabase, type TestDatabase } from '../../support/database.ts'
import { noVectors } from '../../support/embedding.ts'
import { noFiles } from '../../support/files.ts'

describe('concurrent requests with one Idempotency-Key', () => {
  let db: TestDatabase
  let caller: Caller
  before(async () => {
    db = await createTestDatabase()
    const id = await createOrganization(db)
    const organization = {
      id,
      name: 'Test',
      plan: 'free',
      currency: 'USD',
      timezone: 'UTC',
    } as const
    caller = { type: 'key', id, name: 'test', organization, storageFull: false, scopes: new Set() }
  })
  after(() => db.drop())

  const keyed = { method: 'POST', path: '/things', key: 'shared', bytes: Buffer.from('{}') }

  function once(execute: () => Promise<unknown>, database: Database = db) {
    const config = readConfig({ DATABASE_URL: db.url, NODE_ENV: 'test', LOG_LEVEL: 'silent' })
    const log = createLogger('api', 'silent')
    const deps = {
      config,
      db: database,
      log,
      secretsKey: Buffer.alloc(32),
      files: noFiles(),
      runEnds: new RunEnds(database.system),
      knownWorkflows: new KnownWorkflows(),
      queuedRuns: new QueuedRuns(),
      streams: streamSlots(),
      nodeTests: nodeTestSlots(),
      documents: documentSlots(),
      compute: new Compute(),
      queryVectors: noVectors(),
      fetchFile: () => Promise.reject(new Error('nothing is fetched')),
      clientDocuments: new ClientDocuments(() => Promise.reject(new Error('nothing is fetched'))),
      stopping: new AbortController().signal,
      metrics: createMetrics({ db: database, log: new LogOutput(1), queues: false }),
    }
    const state = { requestId: 'test' }
    const ctx = { state, req: { headers: {} }, res: { setHeader() {} } } as unknown as Koa.Context
    return runOnce(new Exchange(ctx, deps, caller, {}), keyed, 201, execute)
  }

  it('store the answer of the successful request if the other one was refused just before', async () => {
    let calls = 0
    // The second request runs after the rollback of the first one and before its refusal is stored.
    const between: Database = {
      ...db,
      async tenant(organizationId, actor, work) {
        if (++calls === 2) assert.equal((await once(async () => ({ done: true }))).status, 201)
        return db.tenant(organizationId, actor, work)
      },
    }
    await assert.rejects(
      once(() => Promise.reject(conflict('taken')), between),
      /taken/,
    )
    const retried = await once(() => Promise.reject(new Error('done twice')))
    assert.deepEqual(retried, { status: 201, body: '{"done":true}', headers: {}, scopes: [] })
  })
})
