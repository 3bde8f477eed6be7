import assert from 'node:assert/strict'
import { chainError } from '../../db/model/runs/chain.ts'
import { cancelRun } from '../../db/runs/moves/ends.ts'
import { resumeRun } from '../../db/runs/moves/starts.ts'
import { Sweep } from '../../worker/sweep.ts'
import type { Definition, NodeSpec } from '../../workflows/language/definition.ts'
import { CHAIN_DEPTH } from '../../workflows/shared/limits.ts'
import { createOrganization, testActor } from '../support/database.ts'
import type { PartialDefinition } from '../support/definition.ts'
import { edge, set } from '../support/nodes.ts'
import { until } from '../support/until.ts'
import { withWorker } from '../support/with-worker.ts'
import { historyOf, queueRun, saveWorkflow, testLog, untilRun } from '../support/worker.ts'

const wait = (time: string): NodeSpec => ({ id: 'wait', type: 'delay', config: { for: time } })
const start = (workflow: string, more: Record<string, unknown> = {}, id = 'child'): NodeSpec => ({
  id,
  type: 'run_workflow',
  config: { workflow, ...more },
})

describe('runs that run other workflows', () => {
  const suite = withWorker()
  let organizationId: string

  beforeEach(async () => {
    organizationId = await createOrganization(suite.db)
  })

  const save = (definition: PartialDefinition & Pick<Definition, 'name'>) =>
    saveWorkflow(suite.db, organizationId, definition)
  const run = (definition: PartialDefinition, inputs = {}) =>
    queueRun(suite.db, organizationId, definition, inputs)
  const childrenOf = (id: string) =>
    suite.db.system('runs').where({ organization_id: organizationId, parent_run_id: id }).orderBy('id')
  const nodesOf = async (id: string) => {
    const rows = await suite.db.system('run_nodes').where({ run_id: id })
    return Object.fromEntries(rows.map((row) => [row.node_id, row.status]))
  }
  const untilChild = async (id: string) => (await until(async () => (await childrenOf(id))[0])).id as string

  it('wait for the end and read its outputs', async () => {
    const { id: workflowId } = await save({
      name: 'Double',
      inputs: { n: { type: 'number', required: true } },
      nodes: [wait('50ms'), set('twice', '{{ inputs.n | times: 2 }}')],
      edges: [edge('wait', 'twice')],
      outputs: { n: '{{ nodes.twice.output.value }}' },
    })
    const id = await run({
      nodes: [start('Double', { inputs: { n: 21 } }), set('after', '{{ nodes.child.output.outputs.n }}')],
      edges: [edge('child', 'after')],
      outputs: { n: '{{ nodes.after.output.value }}', child: '{{ nodes.child.output }}' },
    })
    const { status, outputs } = await untilRun(suite.db, id)
    const [child, ...more] = await childrenOf(id)
    assert.deepEqual(more, [])
    assert.deepEqual([child.workflow_id, child.depth, child.cause], [workflowId, 1, id])
    assert.equal(status, 'completed')
    assert.deepEqual(outputs, {
      n: 42,
      child: { run_id: child.id, workflow_id: workflowId, status: 'completed', outputs: { n: 42 } },
    })
    const waited = await suite.db.system('run_waits').where({ run_id: id }).first()
    assert.ok(waited.answered_at)
    const signals = (await historyOf(suite.worker.client, `run:${id}`)).filter(
      (event) => event.workflowExecutionSignaledEventAttributes,
    )
    assert.equal(signals.length, 1)
  })

  it('do not wait if they are told so', async () => {
    const { id: workflowId } = await save({ name: 'Slow', nodes: [wait('1h')] })
    const id = await run({
      nodes: [start(workflowId, { wait: false })],
      outputs: { status: '{{ nodes.child.output.status }}' },
    })
    const { status, outputs } = await untilRun(suite.db, id)
    assert.deepEqual([status, outputs], ['completed', { status: 'queued' }])
    const [child] = await childrenOf(id)
    await untilRun(suite.db, child.id, ['running'])
    await suite.db.tenant(organizationId, testActor, (tx) => cancelRun(tx, child.id))
    await untilRun(suite.db, child.id)
  })

  it('fail, or take the error handle, if the child fails', async () => {
    await save({
      name: 'Fails',
      nodes: [{ id: 'no', type: 'stop', config: { status: 'failed', message: 'No.' } }],
    })
    const failed = await untilRun(suite.db, await run({ nodes: [start('Fails')] }))
    assert.deepEqual(
      [failed.status, failed.error?.code, failed.error?.message, failed.error?.node_id],
      ['failed', 'child_run_failed', 'The run of Fails is failed: No.', 'child'],
    )
    const handled = await run({
      nodes: [start('Fails'), set('sorry', '{{ nodes.child.error.details.error.code }}')],
      edges: [edge('child', 'sorry', 'error')],
      outputs: { code: '{{ nodes.sorry.output.value }}' },
    })
    assert.deepEqual((await untilRun(suite.db, handled)).outputs, { code: 'stopped' })
  })

  it('hold no slot while they wait: many parents run with one slot in their organization', async () => {
    await suite.db
      .system('organizations')
      .where({ id: organizationId })
      .update({ limits: JSON.stringify({ max_running: 1 }) })
    await save({ name: 'Child', nodes: [set('a', 1)] })
    const parents = await Promise.all([1, 2, 3].map(() => run({ nodes: [start('Child')] })))
    for (const id of parents) assert.equal((await untilRun(suite.db, id)).status, 'completed')
  })

  it('cancel the children that they wait for, also grandchildren', async () => {
    await save({ name: 'Leaf', nodes: [wait('1h')] })
    await save({ name: 'Middle', nodes: [start('Leaf')] })
    const id = await run({ nodes: [start('Middle')] })
    const middle = await untilChild(id)
    const leaf = await untilChild(middle)
    await untilRun(suite.db, leaf, ['running'])
    await suite.db.tenant(organizationId, testActor, (tx) => cancelRun(tx, id))
    for (const one of [id, middle, leaf]) assert.equal((await untilRun(suite.db, one)).status, 'cancelled')
    assert.deepEqual(await nodesOf(id), { child: 'cancelled' })
  })

  it('cancel a child when another branch ends the run', async () => {
    await save({ name: 'Leaf', nodes: [wait('1h')] })
    const id = await run({
      nodes: [
        set('go', 1),
        start('Leaf'),
        { ...wait('300ms'), id: 'soon' },
        { id: 'stop', type: 'stop', config: {} },
      ],
      edges: [edge('go', 'child'), edge('go', 'soon'), edge('soon', 'stop')],
    })
    const child = await untilChild(id)
    assert.equal((await untilRun(suite.db, id)).status, 'completed')
    assert.equal((await untilRun(suite.db, child)).status, 'cancelled')
  })

  it('learn of a child that was cancelled', async () => {
    await save({ name: 'Leaf', nodes: [wait('1h')] })
    const id = await run({ nodes: [start('Leaf')] })
    const child = await untilChild(id)
    await suite.db.tenant(organizationId, testActor, (tx) => cancelRun(tx, child))
    const { status, error } = await untilRun(suite.db, id)
    assert.deepEqual([status, error?.code], ['failed', 'child_run_failed'])
    assert.match(error!.message, /The run of Leaf is cancelled/)
  })

  it('go on after Temporal has lost their workflow, whether the child ends before or after', async () => {
    await save({
      name: 'Leaf',
      nodes: [wait('1500ms'), set('a', 7)],
      edges: [edge('wait', 'a')],
      outputs: { a: '{{ nodes.a.output.value }}' },
    })
    for (const ends of ['before', 'after']) {
      const id = await run({ nodes: [start('Leaf')], outputs: { a: '{{ nodes.child.output.outputs.a }}' } })
      const child = await untilChild(id)
      await untilRun(suite.db, child, ['running'])
      const { temporal_run_id } = await suite.db.system('runs').where({ id }).first()
      await suite.worker.client.workflow.getHandle(`run:${id}`).terminate()
      if (ends === 'before') await untilRun(suite.db, child)
      await suite.db.tenant(organizationId, testActor, (tx) => resumeRun(tx, id, temporal_run_id))
      const { status, outputs } = await untilRun(suite.db, id)
      assert.deepEqual([status, outputs, (await childrenOf(id)).length], ['completed', { a: 7 }, 1], ends)
    }
  })

  it('find the child that they started before a reset, and its answer', async () => {
    await save({ name: 'Leaf', nodes: [wait('50ms')] })
    const id = await run({ nodes: [wait('20ms'), start('Leaf')], edges: [edge('wait', 'child')] })
    await untilRun(suite.db, id)
    const workflow = suite.worker.client.workflow.getHandle(`run:${id}`)
    await workflow.result()
    const first = (await workflow.fetchHistory()).events?.find(
      (event) => event.workflowTaskCompletedEventAttributes,
    )
    const { temporal_run_id } = await suite.db.system('runs').where({ id }).first()
    await suite.worker.client.workflowService.resetWorkflowExecution({
      namespace: 'default',
      workflowExecution: { workflowId: workflow.workflowId },
      workflowTaskFinishEventId: first!.eventId!,
      requestId: id,
      reason: 'test',
    })
    await workflow.result()
    const again = await untilRun(suite.db, id)
    assert.notEqual((again as { temporal_run_id?: string }).temporal_run_id, temporal_run_id)
    assert.deepEqual([again.status, (await childrenOf(id)).length], ['completed', 1])
  })

  it('are left alone by the sweep while they wait', async () => {
    await save({ name: 'Leaf', nodes: [wait('1h')] })
    const id = await run({ nodes: [start('Leaf')] })
    await untilRun(suite.db, await untilChild(id), ['running'])
    await new Promise((resolve) => setTimeout(resolve, 500))
    await new Sweep({
      db: suite.db,
      client: suite.worker.client,
      taskQueue: suite.worker.taskQueue,
      log: testLog,
    }).once('0 seconds')
    const { status, stuck_reason, sleeps_until } = await suite.db.system('runs').where({ id }).first()
    assert.deepEqual([status, stuck_reason, String(sleeps_until)], ['running', null, 'Infinity'])
    const events = await historyOf(suite.worker.client, `run:${id}`)
    assert.ok(!events.some((event) => event.workflowExecutionSignaledEventAttributes))
    await suite.db.tenant(organizationId, testActor, (tx) => cancelRun(tx, id))
    await untilRun(suite.db, id)
  })

  it('are refused if the child would start a workflow that runs above it', async () => {
    await save({ name: 'Ping', nodes: [start('Pong')] })
    await save({ name: 'Pong', nodes: [start('Ping')] })
    const id = await run({ nodes: [start('Ping')] })
    const { status, error } = await untilRun(suite.db, id)
    assert.equal(status, 'failed')
    assert.match(error!.message, /"Ping" is already running above this node/)
  })

  it('are refused below the depth limit', async () => {
    for (let level = 1; level <= CHAIN_DEPTH; level++)
      await save({ name: `Level ${level}`, nodes: [start(`Level ${level + 1}`)] })
    await save({ name: `Level ${CHAIN_DEPTH + 1}`, nodes: [set('a', 1)] })
    const { status } = await untilRun(suite.db, await run({ nodes: [start('Level 1')] }))
    assert.equal(status, 'failed')
    const last = await suite.db.system('runs').where({ depth: CHAIN_DEPTH, status: 'failed' }).first()
    assert.deepEqual(
      [last.error.code, last.error.message],
      ['chain_too_long', chainError(CHAIN_DEPTH + 1, last.id)!.message],
    )
  })

  it('fail with a clear error if the workflow does not exist, or its inputs are wrong', async () => {
    await save({ name: 'Strict', inputs: { n: { type: 'number', required: true } }, nodes: [set('a', 1)] })
    const errorOf = async (node: NodeSpec) => (await untilRun(suite.db, await run({ nodes: [node] }))).error
    assert.equal((await errorOf(start('Nowhere')))?.code, 'not_found')
    const wrong = await errorOf(start('Strict', { inputs: { n: 'x', m: 1 } }))
    assert.deepEqual(
      [wrong?.code, wrong?.message],
      ['invalid_inputs', 'Input n must be of type number. The workflow has no input m.'],
    )
  })
})
