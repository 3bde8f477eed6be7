import assert from 'node:assert/strict'
import { chainError } from '../../db/model/runs/chain.ts'
import { cancelRun, endUnrecordedRun, terminateRun } from '../../db/runs/moves/ends.ts'
import type { Definition } from '../../workflows/language/definition.ts'
import { CHAIN_DEPTH } from '../../workflows/shared/limits.ts'
import { createOrganization, testActor } from '../support/database.ts'
import type { PartialDefinition } from '../support/definition.ts'
import { withWorker } from '../support/with-worker.ts'
import { queueRun, saveWorkflow, untilRun } from '../support/worker.ts'

const fail = { id: 'post', type: 'stop', title: 'Post', config: { status: 'failed', message: 'No.' } }

describe('the error workflow of a run', () => {
  const suite = withWorker()
  let organizationId: string

  beforeEach(async () => {
    organizationId = await createOrganization(suite.db)
  })

  const save = (definition: PartialDefinition & Pick<Definition, 'name'>) =>
    saveWorkflow(suite.db, organizationId, definition)
  const failing = (error_workflow: string, more: Partial<Definition> = {}) =>
    queueRun(suite.db, organizationId, { nodes: [fail], settings: { error_workflow }, ...more })
  const handler = (more: Partial<Definition> = {}) =>
    save({
      name: 'On error',
      nodes: [
        {
          id: 'tell',
          type: 'set_fields',
          config: {
            fields: {
              text: '{{ trigger.run.workflow_name }}: {{ trigger.node.title }}: {{ trigger.error.message }}',
            },
          },
        },
      ],
      outputs: { text: '{{ nodes.tell.output.text }}', run: '{{ trigger.run.id }}' },
      ...more,
    })
  const startedBy = (id: string) => suite.db.system('runs').where({ cause: id, kind: 'run' })
  const outcomeOf = (run: { error: unknown }) =>
    (run.error as { details?: { error_workflow?: unknown } }).details?.error_workflow

  it('is started once, by its name, with the failed run, its node and its error', async () => {
    const { id: workflowId } = await handler()
    const id = await failing('On error')
    const failed = await untilRun(suite.db, id)
    assert.deepEqual(
      [failed.status, failed.error?.code, failed.error?.node_id],
      ['failed', 'stopped', 'post'],
    )
    const [started, ...more] = await startedBy(id)
    assert.deepEqual(more, [])
    assert.deepEqual(outcomeOf(failed), { run_id: started.id })
    assert.deepEqual([started.workflow_id, started.depth, started.trigger.type], [workflowId, 1, 'error'])
    const { status, outputs } = await untilRun(suite.db, started.id)
    assert.deepEqual([status, outputs], ['completed', { text: 'Test: Post: No.', run: id }])
    const event = await suite.db.system('events').where({ subject_id: id, name: 'workflow.failed' }).first()
    assert.deepEqual(event.data.error.details.error_workflow, { run_id: started.id })
  })

  it('is started by its id, also for a run that its workflow in Temporal did not record', async () => {
    const { id: workflowId } = await handler()
    const id = await failing(workflowId, { nodes: [{ id: 'wait', type: 'delay', config: { for: '1h' } }] })
    await untilRun(suite.db, id, ['running'])
    await suite.db.system('runs').where({ id }).update({ temporal_run_id: 'gone' })
    const lost = { code: 'lost', message: 'Temporal does not know the run.' }
    await suite.db.tenant(organizationId, testActor, (tx) => endUnrecordedRun(tx, id, 'gone', 'lost', lost))
    const [started] = await startedBy(id)
    const ended = await untilRun(suite.db, id)
    assert.deepEqual([ended.status, outcomeOf(ended)], ['lost', { run_id: started.id }])
    assert.deepEqual([started.trigger.run.status, started.trigger.node], ['lost', null])
    await untilRun(suite.db, started.id)
  })

  it('is not started again by a run that is reset and fails again', async () => {
    await handler()
    const id = await failing('On error', {
      nodes: [{ id: 'wait', type: 'delay', config: { for: '10ms' } }, fail],
      edges: [{ from: 'wait', handle: 'success', to: 'post' }],
    })
    await untilRun(suite.db, id)
    const { temporal_run_id: first } = await suite.db.system('runs').where({ id }).first()
    const workflow = suite.worker.client.workflow.getHandle(`run:${id}`)
    await workflow.result().catch(() => {})
    const { events } = await workflow.fetchHistory()
    const done = events?.find((event) => event.workflowTaskCompletedEventAttributes)
    await suite.worker.client.workflowService.resetWorkflowExecution({
      namespace: 'default',
      workflowExecution: { workflowId: workflow.workflowId },
      workflowTaskFinishEventId: done!.eventId!,
      requestId: id,
      reason: 'test',
    })
    await workflow.result().catch(() => {})
    const again = await suite.db.system('runs').where({ id }).first()
    assert.notEqual(again.temporal_run_id, first)
    const started = await startedBy(id)
    assert.equal(started.length, 1)
    assert.deepEqual(outcomeOf(again), { run_id: started[0].id })
  })

  it('is not started by a run that completed, was cancelled or was terminated, which raise no event of a failure', async () => {
    await handler()
    for (const [end, status] of [
      [cancelRun, 'cancelled'],
      [terminateRun, 'terminated'],
    ] as const) {
      const open = await failing('On error', {
        nodes: [{ id: 'wait', type: 'delay', config: { for: '1h' } }],
      })
      await untilRun(suite.db, open, ['running'])
      await suite.db.tenant<unknown>(organizationId, testActor, (tx) => end(tx, open))
      assert.equal((await untilRun(suite.db, open)).status, status)
      const { workflow } = suite.worker.client
      await workflow
        .getHandle(`run:${open}`)
        .result()
        .catch(() => {})
      assert.deepEqual(await startedBy(open), [])
      assert.deepEqual(
        await suite.db.system('events').where({ subject_id: open, name: 'workflow.failed' }),
        [],
      )
    }
    const id = await failing('On error', { nodes: [{ ...fail, config: { status: 'completed' } }] })
    assert.equal((await untilRun(suite.db, id)).status, 'completed')
    assert.deepEqual(await startedBy(id), [])
  })

  it('never starts itself', async () => {
    const { id: workflowId, name } = await handler({
      nodes: [fail],
      outputs: {},
      settings: { error_workflow: 'On error' },
    })
    const id = await failing(name)
    await untilRun(suite.db, id)
    const [started] = await startedBy(id)
    assert.equal(started.workflow_id, workflowId)
    const failed = await untilRun(suite.db, started.id)
    assert.deepEqual(outcomeOf(failed), { not_started: 'a workflow is never its own error workflow' })
    assert.deepEqual(await startedBy(started.id), [])
  })

  it('two that name each other end at the depth limit of chains', async () => {
    await save({ name: 'A', nodes: [fail], settings: { error_workflow: 'B' } })
    await save({ name: 'B', nodes: [fail], settings: { error_workflow: 'A' } })
    let id = await failing('A')
    for (let depth = 0; depth < CHAIN_DEPTH; depth++) {
      await untilRun(suite.db, id)
      const [started] = await startedBy(id)
      assert.equal(started.depth, depth + 1)
      id = started.id
    }
    const last = await untilRun(suite.db, id)
    assert.deepEqual(outcomeOf(last), { not_started: chainError(CHAIN_DEPTH + 1, id)!.message })
  })

  const refused: [what: string, name: string, reason: RegExp, before: () => Promise<unknown>][] = [
    ['that does not exist', 'Nowhere', /^"Nowhere": workflow not found$/, async () => {}],
    ['of an unknown id', '019a0000-0000-7000-8000-000000000001', /workflow/, async () => {}],
    [
      'of another organization',
      'Elsewhere',
      /"Elsewhere": workflow not found/,
      async () => {
        const own = organizationId
        organizationId = await createOrganization(suite.db)
        await save({ name: 'Elsewhere', nodes: [fail] })
        organizationId = own
      },
    ],
    [
      'whose name two have',
      'On error',
      /2 workflows have this name/,
      async () => {
        await handler()
        await handler()
      },
    ],
    [
      'that requires an input',
      'On error',
      /Input who is required/,
      () => handler({ inputs: { who: { type: 'string', required: true } } }),
    ],
  ]
  for (const [what, name, reason, before] of refused)
    it(`one ${what} is not started, and the run says why`, async () => {
      await before()
      const id = await failing(name)
      const { status, error } = await untilRun(suite.db, id)
      assert.equal(status, 'failed')
      assert.match(String((outcomeOf({ error }) as { not_started?: string }).not_started), reason)
      assert.deepEqual(await startedBy(id), [])
    })
})
