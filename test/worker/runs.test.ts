import assert from 'node:assert/strict'
import { withWorker } from '../support/with-worker.ts'
import { historyOf, queueRun, untilRun } from '../support/worker.ts'

const five = {
  nodes: ['one', 'two', 'three', 'four', 'five'].map((id) => ({
    id,
    type: 'set_fields',
    config: { fields: { [id]: '{{ inputs.name }}' } },
  })),
  edges: [
    { from: 'one', handle: 'success', to: 'two' },
    { from: 'two', handle: 'success', to: 'three' },
    { from: 'three', handle: 'success', to: 'four' },
    { from: 'four', handle: 'success', to: 'five' },
  ],
  inputs: { name: { type: 'string' as const } },
  outputs: { last: '{{ nodes.five.output.five }}' },
}

describe('runs on Temporal', () => {
  const suite = withWorker()

  it('takes one workflow task and at most eight events for five light nodes', async () => {
    const id = await queueRun(suite.db, suite.organizationId, five, { name: 'Ada' })
    const run = await untilRun(suite.db, id)
    assert.deepEqual([run.status, run.outputs, run.error], ['completed', { last: 'Ada' }, null])
    const nodes = await suite.db.system('run_nodes').where({ run_id: id }).orderBy('position')
    assert.deepEqual(
      nodes.map((node) => [node.node_id, node.status]),
      five.nodes.map((node) => [node.id, 'completed']),
    )
    await suite.worker.client.workflow.getHandle(`run:${id}`).result()
    const events = await historyOf(suite.worker.client, `run:${id}`)
    assert.ok(events.length <= 8, `${events.length} events`)
    assert.equal(events.filter((event) => event.workflowTaskCompletedEventAttributes).length, 1)
    const raised = await suite.db.system('events').where({ subject_id: id }).orderBy('id')
    assert.deepEqual(
      raised.map((event) => event.name),
      ['workflow.started', 'workflow.completed'],
    )
  })
})
