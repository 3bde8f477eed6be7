import assert from 'node:assert/strict'
import { randomUUID } from 'node:crypto'
import { Client } from '@temporalio/client'
import pg from 'pg'
import { cancelRun } from '../../db/runs/moves/ends.ts'
import type { ClaimedRun } from '../../db/runs/queue.ts'
import { NamespaceAttributes } from '../../worker/namespace-attributes.ts'
import { runsQueue } from '../../worker/queues/runs.ts'
import { refusal } from '../../worker/relay.ts'
import { RunCapacity } from '../../worker/run-capacity.ts'
import { createOrganization, testActor } from '../support/database.ts'
import { delay, each, edge, set } from '../support/nodes.ts'
import { withWorker } from '../support/with-worker.ts'
import { queueRun, testLog, untilRun } from '../support/worker.ts'

/** Unplanned ends of runs, also of runs that never start. */
describe('ends of runs', () => {
  const suite = withWorker()
  const events = async (id: string): Promise<string[]> => {
    const rows = await suite.db.system('events').where({ subject_id: id }).orderBy('id')
    return rows.map((row) => row.name)
  }
  const rowOf = (id: string, over: Partial<ClaimedRun> = {}): ClaimedRun => ({
    organization_id: suite.organizationId,
    id,
    kind: 'run',
    workflow_id: randomUUID(),
    workflow_name: 'Test',
    workflow_version: 1,
    trigger_type: 'api',
    record_id: null,
    expected_by: null,
    starts_with: 'First',
    organization_name: 'Test',
    temporal_run_id: null,
    history_length: null,
    resumes: 0,
    segment: null,
    ...over,
  })

  it('fails a run that takes longer than its workflow allows', async () => {
    const id = await queueRun(suite.db, suite.organizationId, {
      nodes: [delay('long', '1h')],
      settings: { timeout: '300ms' },
    })
    const run = await untilRun(suite.db, id)
    assert.deepEqual([run.status, run.error?.code], ['failed', 'timeout'])
    assert.deepEqual(await events(id), ['workflow.started', 'workflow.failed'])
    const node = await suite.db.system('run_nodes').where({ run_id: id }).first()
    assert.equal(node.status, 'cancelled')
    const workflow = suite.worker.client.workflow.getHandle(`run:${id}`)
    const { cause } = await workflow.result().then(assert.fail, (error) => error)
    assert.deepEqual([cause.type, cause.message, cause.category], ['timeout', run.error?.message, 'BENIGN'])
    assert.equal((await workflow.describe()).status.name, 'FAILED')
  })

  /** Runs `work` while the database refuses rows of nodes with the title Broken. */
  async function withRefusals(work: () => Promise<void>): Promise<void> {
    // As the owner, because the role of the processes lacks this privilege.
    const owner = new pg.Client({ connectionString: suite.db.url })
    await owner.connect()
    await owner.query("alter table run_nodes add constraint refused check (title <> 'Broken')")
    try {
      await work()
    } finally {
      await owner.query('alter table run_nodes drop constraint refused')
      await owner.end()
    }
  }

  it('records a reduced end if the database refuses the full one', () =>
    withRefusals(async () => {
      const id = await queueRun(suite.db, suite.organizationId, { nodes: [{ ...set('a'), title: 'Broken' }] })
      const run = await untilRun(suite.db, id)
      assert.deepEqual([run.status, run.error?.code], ['failed', 'not_recordable'])
      assert.deepEqual(await events(id), ['workflow.failed'])
      await assert.rejects(suite.worker.client.workflow.getHandle(`run:${id}`).result())
    }))

  it('closes the loops of such a run', () =>
    withRefusals(async () => {
      const id = await queueRun(
        suite.db,
        suite.organizationId,
        {
          nodes: [each(), delay('wait', '10ms'), { ...set('a'), title: 'Broken' }],
          edges: [edge('each', 'wait', 'item'), edge('wait', 'a')],
          inputs: { items: { type: 'array' } },
        },
        { items: [1, 2] },
      )
      assert.equal((await untilRun(suite.db, id)).error?.code, 'not_recordable')
      const states = (table: string, column: string) =>
        suite.db.system(table).where({ run_id: id }).pluck(column)
      assert.deepEqual(await states('run_loops', 'open'), [false])
      assert.deepEqual([...new Set(await states('run_iterations', 'status'))], ['cancelled'])
    }))

  it('cleans outputs that jsonb would refuse', async () => {
    const id = await queueRun(suite.db, suite.organizationId, {
      nodes: [set('a')],
      outputs: { text: '{{ "a%00b" | url_decode }}' },
    })
    assert.deepEqual((await untilRun(suite.db, id)).outputs, { text: 'a\ufffdb' })
  })

  it('cancels a queued run at once, and it never starts', async () => {
    const lane = { nodes: [delay('a', '1h')], settings: { concurrency: 1 } }
    const first = await queueRun(suite.db, suite.organizationId, lane)
    await untilRun(suite.db, first, ['running'])
    const { workflow_id } = await suite.db.system('runs').where({ id: first }).first()
    const { CHAIN_START, createRun } = await import('../../db/runs/runs.ts')
    const second = await suite.db.tenant(suite.organizationId, testActor, (tx) =>
      createRun(tx, {
        workflow: { id: workflow_id, version: 1, name: 'Test' },
        trigger: { type: 'api' },
        inputs: {},
        chain: CHAIN_START,
      }),
    )
    const cancel = (id: string) => suite.db.tenant(suite.organizationId, testActor, (tx) => cancelRun(tx, id))
    assert.equal(await cancel(second), 'cancelled')
    assert.equal(await cancel(second), 'cancelled')
    await cancel(first)
    await untilRun(suite.db, first)
    await assert.rejects(suite.worker.client.workflow.getHandle(`run:${second}`).describe(), /NotFound/)
  })

  it('runs nothing of a run that is cancelled before its first segment', async () => {
    const organizationId = await createOrganization(suite.db, { limits: { max_running: 0 } })
    const id = await queueRun(suite.db, organizationId, { nodes: [set('a')] })
    // Simulates a claim by a relay whose start failed.
    await suite.db
      .system('run_claims')
      .insert({ organization_id: organizationId, run_id: id, relay_id: randomUUID(), retry_at: new Date() })
    const status = await suite.db.tenant(organizationId, testActor, (tx) => cancelRun(tx, id))
    assert.equal(status, 'queued')
    await suite.db.system('organizations').where({ id: organizationId }).update({ limits: '{}' })
    const run = await untilRun(suite.db, id)
    assert.deepEqual([run.status, run.error?.code], ['cancelled', 'cancelled'])
    assert.deepEqual(await suite.db.system('run_nodes').where({ run_id: id }), [])
    assert.deepEqual(await events(id), [])
    const workflow = suite.worker.client.workflow.getHandle(`run:${id}`)
    await assert.rejects(workflow.result())
    assert.equal((await workflow.describe()).status.name, 'CANCELLED')
  })

  it('starts runs in a namespace that lacks our search attributes, without them', async () => {
    const namespace = `bare-${randomUUID()}`
    await suite.worker.client.workflowService.registerNamespace({
      namespace,
      workflowExecutionRetentionPeriod: { seconds: 86_400 as unknown as never },
    })
    const client = new Client({ connection: suite.worker.connection, namespace })
    const queue = runsQueue({
      db: suite.db,
      relayId: randomUUID(),
      taskQueue: 'nobody',
      attributes: new NamespaceAttributes(testLog),
      capacity: new RunCapacity(1),
    })
    const start = async (row: ClaimedRun) => {
      // A new namespace becomes available after a moment.
      for (const until = Date.now() + 30_000; ; ) {
        try {
          return await queue.start(client, row)
        } catch (error) {
          if (refusal(error) !== undefined || Date.now() > until) throw error
          await new Promise((resolve) => setTimeout(resolve, 500))
        }
      }
    }
    const rows = [1, 2, 3].map(() => rowOf(randomUUID()))
    await Promise.all(rows.map(start))
    for (const { id } of rows) {
      const handle = client.workflow.getHandle(`run:${id}`)
      const { status, typedSearchAttributes } = await handle.describe()
      assert.equal(status.name, 'RUNNING')
      assert.deepEqual(
        typedSearchAttributes.getAll().filter(({ key }) => key.name.startsWith('Agx')),
        [],
      )
      await handle.terminate()
    }
  })

  it('fails a run that Temporal refuses to start, with its reason and its event', async () => {
    const other = await createOrganization(suite.db)
    // The organization's limit of 0 active runs keeps every relay from claiming it.
    await suite.db
      .system('organizations')
      .where({ id: other })
      .update({ limits: JSON.stringify({ max_running: 0 }) })
    const id = await queueRun(suite.db, other, { nodes: [set('a')] })
    const queue = runsQueue({
      relayId: randomUUID(),
      db: suite.db,
      taskQueue: 'q'.repeat(2_000),
      attributes: new NamespaceAttributes(testLog),
      capacity: new RunCapacity(1),
    })
    const row = rowOf(id, { organization_id: other })
    const reason = await queue.start(suite.worker.client, row).then(
      () => undefined,
      (error) => refusal(error),
    )
    assert.match(reason ?? '', /length/i)
    await queue.refused!(suite.db, row, reason!)
    const run = await untilRun(suite.db, id)
    assert.deepEqual([run.status, run.error], ['failed', { code: 'start_refused', message: reason }])
    assert.deepEqual(await events(id), ['workflow.failed'])
    await queue.refused!(suite.db, row, reason!)
    assert.deepEqual(await events(id), ['workflow.failed'])
  })

  it('accepts names and titles of any script at their maximum length', async () => {
    const title = '漢'.repeat(200)
    const id = await queueRun(suite.db, suite.organizationId, {
      name: title,
      nodes: [
        { ...delay('a', '10ms'), title },
        { ...set('b'), title },
      ],
      edges: [{ from: 'a', handle: 'success', to: 'b' }],
    })
    assert.equal((await untilRun(suite.db, id)).status, 'completed')
  })
})
