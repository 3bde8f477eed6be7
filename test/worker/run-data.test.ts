import { deepEqual, equal, match } from 'node:assert/strict'
import { createSchema } from '../../db/model/records/schemas.ts'
import { createRecord } from '../../db/records/create.ts'
import type { NodeSpec } from '../../workflows/language/definition.ts'
import { testActor } from '../support/database.ts'
import { edge } from '../support/nodes.ts'
import { withWorker } from '../support/with-worker.ts'
import { queueRun, untilRun } from '../support/worker.ts'

const MIB = 1024 * 1024

describe('the data of runs', () => {
  const suite = withWorker()
  const limits = (values: object, storage_full = false) =>
    suite.db
      .system('organizations')
      .where({ id: suite.organizationId })
      .update({ limits: JSON.stringify(values), storage_full })
  const LOOP: NodeSpec[] = [
    {
      id: 'each',
      type: 'for_each',
      config: { items: Array.from({ length: 100 }, (_, n) => n), concurrency: 10 },
    },
    { id: 'copy', type: 'set_fields', config: { fields: { text: '{{ inputs.text }}' } } },
  ]
  const edges = [{ from: 'each', handle: 'item', to: 'copy' }]
  const inputs = { text: 'x'.repeat(100_000) }

  it('are limited by the plan, with those of all items of a loop', async () => {
    await limits({ run_bytes: 2 * MIB })
    const id = await queueRun(suite.db, suite.organizationId, { nodes: LOOP, edges }, inputs)
    const run = await untilRun(suite.db, id)
    deepEqual([run.status, run.error?.code], ['failed', 'run_data_exceeded'])
    match(run.error!.message, /more than 2 MiB/)
    const { rows } = await suite.db.system.raw(
      'select sum(length(input::text) + length(output::text)) as bytes from run_nodes where run_id = ?',
      [id],
    )
    equal(Number(rows[0].bytes) < 3 * MIB, true, `${rows[0].bytes} bytes`)
  })

  it('are not limited within the plan', async () => {
    await limits({ run_bytes: 64 * MIB })
    const run = await untilRun(
      suite.db,
      await queueRun(suite.db, suite.organizationId, { nodes: LOOP, edges }, inputs),
    )
    equal(run.status, 'completed')
  })

  it('store nothing more in an organization that is full, but delete', async () => {
    const record = await suite.db.tenant(suite.organizationId, testActor, (tx) =>
      createRecord(tx, 'notes', createSchema('notes').parse({ body: 'old' }) as never),
    )
    const crm = (id: string, config: object): NodeSpec => ({
      id,
      type: 'crm_manager',
      config: { entity: 'notes', ...config },
    })
    const nodes: NodeSpec[] = [
      { id: 'pause', type: 'delay', config: { for: '1s' } },
      crm('delete', { operation: 'delete', id: record.id }),
      crm('create', { operation: 'create', fields: { body: 'new' } }),
    ]
    const edges = [edge('pause', 'delete'), edge('delete', 'create')]
    await limits({})
    const id = await queueRun(suite.db, suite.organizationId, { nodes, edges })
    while (!(await suite.db.system('run_nodes').where({ run_id: id }).first()))
      await new Promise((resolve) => setTimeout(resolve, 20))
    await limits({ storage_bytes: 1 }, true)
    const run = await untilRun(suite.db, id)
    deepEqual([run.status, run.error?.code, run.error?.node_id], ['failed', 'quota_exceeded', 'create'])
    match(run.error!.message, /^the organization stores \d+ bytes, and its plan allows 1: /)
  })

  it('do not begin in an organization that is full', async () => {
    await limits({ storage_bytes: 1 }, true)
    const nodes: NodeSpec[] = [{ id: 'set', type: 'set_fields', config: { fields: { a: 1 } } }]
    const run = await untilRun(suite.db, await queueRun(suite.db, suite.organizationId, { nodes }))
    deepEqual([run.status, run.error?.code], ['failed', 'quota_exceeded'])
    equal((await suite.db.system('run_nodes').where({ run_id: run.id })).length, 0)
  })
})
