import assert from 'node:assert/strict'
import { randomUUID } from 'node:crypto'
import { NativeConnection } from '@temporalio/worker'
import { createLogger } from '../../db/process/log.ts'
import { requireTemporalServer } from '../../db/runs/temporal-server.ts'
import { describeTemporalServer, ServerCheck } from '../../worker/temporal-server.ts'
import { createTestDatabase, type TestDatabase } from '../support/database.ts'

describe('the Temporal server that a database belongs to', () => {
  let db: TestDatabase
  let connection: NativeConnection
  before(async () => {
    db = await createTestDatabase()
    connection = await NativeConnection.connect({ address: process.env.TEST_TEMPORAL_ADDRESS! })
  })
  after(async () => {
    await connection?.close()
    await db?.drop()
  })

  it('is the first one; another is refused with what to do, or adopted', async () => {
    const own = await describeTemporalServer(connection, 'default')
    assert.match(own.namespace_id, /^[0-9a-f-]{36}$/)
    assert.notEqual(own.cluster_id, '')
    await requireTemporalServer(db.system, own, false)
    await requireTemporalServer(db.system, own, false)

    const namespace = `other-${randomUUID()}`
    await connection.workflowService.registerNamespace({
      namespace,
      workflowExecutionRetentionPeriod: { seconds: 86_400 as unknown as never },
    })
    const other = await describeTemporalServer(connection, namespace)
    const require = (adopt: boolean) => requireTemporalServer(db.system, other, adopt)
    await assert.rejects(require(false), {
      name: 'ConfigError',
      message: /belongs to another Temporal server: namespace default .*TEMPORAL_ADOPT=true$/,
    })
    await require(true)
    await require(false)
    await assert.rejects(requireTemporalServer(db.system, own, false), /another Temporal server/)
  })

  it('is the same one on another cluster, to which its namespace failed over', async () => {
    const own = await describeTemporalServer(connection, 'default')
    await requireTemporalServer(db.system, own, true)
    assert.equal(await requireTemporalServer(db.system, { ...own, cluster_id: randomUUID() }, false), true)
  })

  it('is unknown where a token of the namespace may not ask', async () => {
    // As a server with an authorizer answers; the development server has none.
    const denied = () => Promise.reject(Object.assign(new Error('Request unauthorized.'), { code: 7 }))
    const { workflowService } = connection
    const describe = (calls: object) =>
      describeTemporalServer(
        { workflowService: Object.assign(Object.create(workflowService), calls) },
        'default',
      )
    const own = await describeTemporalServer(connection, 'default')
    const scoped = await describe({ getClusterInfo: denied })
    assert.deepEqual(scoped, { ...own, cluster_id: '' })
    assert.equal(await requireTemporalServer(db.system, scoped, false), true)
    const refusing = { getClusterInfo: denied, describeNamespace: denied }
    const unknown = await describe(refusing)
    assert.equal(await requireTemporalServer(db.system, unknown, false), false)
    const warnings: string[] = []
    const check = new ServerCheck({
      system: db.system,
      log: createLogger('worker', 'warn', { write: (line: string) => void warnings.push(line) }),
      namespace: 'default',
      adopt: false,
    })
    const service = Object.assign(Object.create(workflowService), refusing)
    for (let connections = 0; connections < 3; connections++)
      await check.require({ workflowService: service })
    assert.equal(warnings.length, 1, 'said once, however often it connects again')
    await assert.rejects(
      describe({ getClusterInfo: () => Promise.reject(Object.assign(new Error('gone'), { code: 14 })) }),
      /gone/,
    )
  })
})
