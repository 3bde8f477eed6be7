import assert from 'node:assert/strict'
import { CHAIN_START, createRun } from '../../db/runs/runs.ts'
import { testActor } from '../support/database.ts'
import type { PartialDefinition } from '../support/definition.ts'
import { edge, set } from '../support/nodes.ts'
import { recordStatements } from '../support/statements.ts'
import { withWorker } from '../support/with-worker.ts'
import { nodeStatuses, saveWorkflow, untilRun } from '../support/worker.ts'

const write = (id: string, name: string) => ({
  id,
  type: 'crm_manager',
  config: { operation: 'create', entity: 'companies', fields: { name } },
})
const missing = {
  id: 'missing',
  type: 'crm_manager',
  config: { operation: 'get', entity: 'companies', id: '019a0000-0000-7000-8000-000000000001' },
}

describe('nodes of one segment', () => {
  const suite = withWorker()
  const namesLike = (like: string) =>
    suite.db.system('companies').where('name', 'like', like).orderBy('name').pluck('name')

  const save = (definition: PartialDefinition) => saveWorkflow(suite.db, suite.organizationId, definition)

  /** @returns a run of the workflow, and how often it was loaded and took a savepoint. */
  async function statementsOf({ id: workflowId, name }: Awaited<ReturnType<typeof save>>) {
    const recorded = recordStatements()
    const workflow = { id: workflowId, version: 1, name }
    const id = await suite.db.tenant(suite.organizationId, testActor, (tx) =>
      createRun(tx, { workflow, trigger: { type: 'api' }, inputs: {}, chain: CHAIN_START }),
    )
    const run = await untilRun(suite.db, id)
    const texts = recorded.take()
    recorded.stop()
    const count = (prefix: string) => texts.filter((text) => text.startsWith(prefix)).length
    return { id, run, loads: count('select to_jsonb(r)'), savepoints: count('savepoint') }
  }

  it('take no savepoints', async () => {
    const workflow = await save({
      nodes: [write('one', 'alone 1'), write('two', 'alone 2')],
      edges: [edge('one', 'two')],
    })
    const { run, loads, savepoints } = await statementsOf(workflow)
    assert.equal(run.status, 'completed')
    assert.deepEqual(await namesLike('alone %'), ['alone 1', 'alone 2'])
    assert.deepEqual([loads, savepoints], [1, 0])
  })

  it('are repeated with savepoints if one fails: what the others wrote is there once', async () => {
    const workflow = await save({
      nodes: [write('one', 'failing 1'), missing, set('caught'), write('two', 'failing 2')],
      edges: [edge('one', 'missing'), edge('missing', 'caught', 'error'), edge('caught', 'two')],
    })
    const { id, run, loads, savepoints } = await statementsOf(workflow)
    assert.equal(run.status, 'completed')
    assert.deepEqual(await namesLike('failing %'), ['failing 1', 'failing 2'])
    assert.equal((await nodeStatuses(suite.db, id)).missing, 'failed')
    const events = await suite.db.system('events').where({ cause: id, name: 'company.created' })
    assert.equal(events.length, 2)
    assert.deepEqual([loads, savepoints], [2, 3])

    const next = await statementsOf(workflow)
    assert.equal((await namesLike('failing %')).length, 4)
    // The failed node takes a savepoint at once.
    assert.deepEqual([next.loads, next.savepoints], [1, 1])
  })
})
