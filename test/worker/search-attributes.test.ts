import assert from 'node:assert/strict'
import { randomUUID } from 'node:crypto'
import { Connection } from '@temporalio/client'
import { SearchAttributeType } from '@temporalio/common'
import proto from '@temporalio/proto'
import { createLogger } from '../../db/process/log.ts'
import { NamespaceAttributes } from '../../worker/namespace-attributes.ts'
import { searchAttributes } from '../../worker/search-attributes.ts'
import { createOrganization, createTestDatabase, type TestDatabase } from '../support/database.ts'
import { queueRun, startWorker, type TestWorker, untilRun } from '../support/worker.ts'

describe('a namespace that lacks one search attribute', () => {
  const namespace = `lacking-${randomUUID()}`
  let connection: Connection
  let db: TestDatabase
  let worker: TestWorker
  before(async () => {
    connection = await Connection.connect({ address: process.env.TEST_TEMPORAL_ADDRESS! })
    await createNamespace(['state'])
    db = await createTestDatabase()
    worker = await startWorker(db, { namespace })
  })
  after(async () => {
    await worker?.stop()
    await db?.drop()
    await connection?.close()
  })

  it('runs workflows with approvals, and shows the others', async () => {
    const id = await queueRun(db, await createOrganization(db), {
      nodes: [{ id: 'ask', type: 'approval', config: { title: 'May I?', timeout: '1s' } }],
    })
    const run = await untilRun(db, id)
    assert.equal(run.status, 'completed')
    const { typedSearchAttributes } = await worker.client.workflow.getHandle(`run:${id}`).describe()
    const names = typedSearchAttributes.getAll().map(({ key }) => key.name)
    assert.ok(names.includes(searchAttributes.organization.name), String(names))
  })

  it('is named in the log once, with what it lacks', async () => {
    const lines: string[] = []
    const log = createLogger('worker', 'info', { write: (line: string) => void lines.push(line) })
    const attributes = new NamespaceAttributes(log)
    await attributes.check(connection.workflowService, namespace)
    await attributes.check(connection.workflowService, namespace)
    assert.equal(lines.length, 1)
    assert.deepEqual(JSON.parse(lines[0]!).lacking, ['AgxState'])
    assert.deepEqual([attributes.has('AgxState'), attributes.has('AgxTrigger')], [false, true])
  })

  async function createNamespace(lacking: (keyof typeof searchAttributes)[]): Promise<void> {
    await connection.workflowService.registerNamespace({
      namespace,
      workflowExecutionRetentionPeriod: { seconds: 86_400 as unknown as never },
    })
    const { INDEXED_VALUE_TYPE_DATETIME, INDEXED_VALUE_TYPE_KEYWORD } =
      proto.temporal.api.enums.v1.IndexedValueType
    const created = Object.entries(searchAttributes)
      .filter(([key]) => !(lacking as string[]).includes(key))
      .map(([, { name, type }]) => {
        const isDate = type === SearchAttributeType.DATETIME
        return [name, isDate ? INDEXED_VALUE_TYPE_DATETIME : INDEXED_VALUE_TYPE_KEYWORD] as const
      })
    for (const until = Date.now() + 30_000; ; )
      try {
        await connection.operatorService.addSearchAttributes({
          namespace,
          searchAttributes: Object.fromEntries(created),
        })
        const query = created.map(([name]) => `${name} is not null`).join(' and ')
        await connection.workflowService.countWorkflowExecutions({ namespace, query })
        return
      } catch (error) {
        // A new namespace becomes available after a moment.
        if (Date.now() > until) throw error
        await new Promise((resolve) => setTimeout(resolve, 200))
      }
  }
})
