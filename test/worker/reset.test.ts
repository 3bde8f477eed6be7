import assert from 'node:assert/strict'
import { randomUUID } from 'node:crypto'
import type { WorkflowHandle } from '@temporalio/client'
import type { createActivities } from '../../activities/index.ts'
import { createCollection } from '../../db/knowledge/collections.ts'
import { cancelRun, terminateRun } from '../../db/runs/moves/ends.ts'
import { pauseRun, unpauseRun } from '../../db/runs/moves/pauses.ts'
import { Sweep } from '../../worker/sweep.ts'
import { NodeError } from '../../workflows/language/node-error.ts'
import { createOrganization, createTestDatabase, type TestDatabase, testActor } from '../support/database.ts'
import { httpResponse } from '../support/http-response.ts'
import { delay, edge, set } from '../support/nodes.ts'
import { until } from '../support/until.ts'
import { nodeStatuses, queueRun, startWorker, type TestWorker, testLog, untilRun } from '../support/worker.ts'

type Advance = ReturnType<typeof createActivities>['advance']

const call = {
  id: 'call',
  type: 'api_request',
  config: { url: 'https://example.com/' },
  retry: { max_attempts: 1 },
}

describe('runs that an operator resets in the Temporal UI', () => {
  let db: TestDatabase
  let worker: TestWorker
  let organizationId: string
  let broken = true
  let calls = 0
  let around: (advance: Advance) => Advance = (advance) => advance

  before(async () => {
    db = await createTestDatabase()
    organizationId = await createOrganization(db)
    worker = await startWorker(db, {
      http: async () => {
        calls += 1
        if (broken) throw new NodeError('connection_refused', 'Nobody there.')
        return httpResponse()
      },
      advance: (advance) => (input) => around(advance)(input),
    })
  })
  after(async () => {
    await worker?.stop()
    await db?.drop()
  })
  beforeEach(() => {
    broken = true
    calls = 0
    around = (advance) => advance
  })

  /** Waits until workflow task number `task`, from 0, has completed: a row may show a segment before. */
  async function untilCompleted(handle: WorkflowHandle, task: number) {
    for (;;) {
      const events = (await handle.fetchHistory()).events ?? []
      const completed = events.filter((event) => event.workflowTaskCompletedEventAttributes)
      if (completed[task]) return completed[task]
      assert.ok(!events.at(-1)?.workflowExecutionTerminatedEventAttributes, 'no such task: terminated before')
      await new Promise((resolve) => setTimeout(resolve, 20))
    }
  }
  /** Resets to completed workflow task number `task`, from 0. @returns the new Temporal run's id. */
  async function reset(id: string, task: number, base?: string): Promise<string> {
    const handle = worker.client.workflow.getHandle(`run:${id}`, base)
    const { eventId } = await untilCompleted(handle, task)
    const { runId } = await handle.describe()
    const answer = await worker.client.workflowService.resetWorkflowExecution({
      namespace: 'default',
      workflowExecution: { workflowId: handle.workflowId, runId },
      reason: 'test',
      requestId: randomUUID(),
      workflowTaskFinishEventId: eventId!,
    })
    return answer.runId
  }
  const run = (id: string) => db.system('runs').where({ id }).first()
  const nodes = (id: string) => nodeStatuses(db, id)

  it('answer their sender once', async () => {
    const respond = { id: 'answer', type: 'respond', config: { text: 'done at {{ run.started_at }}' } }
    const id = await queueRun(db, organizationId, {
      nodes: [respond, call],
      edges: [edge('answer', 'call')],
    })
    assert.equal((await untilRun(db, id)).status, 'failed')
    const responses = () => db.system('incoming_responses').where({ run_id: id })
    const before = await responses()
    await assert.rejects(worker.client.workflow.getHandle(`run:${id}`).result())
    broken = false
    await reset(id, 0)
    await until(async () => (await run(id)).status === 'completed')
    assert.deepEqual(await nodes(id), { answer: 'completed', call: 'completed' })
    assert.deepEqual([before.length, await responses()], [1, before])
  })

  it('repeat a failed call and continue to a new end', async () => {
    const id = await queueRun(db, organizationId, {
      nodes: [set('before'), call, set('next')],
      edges: [edge('before', 'call'), edge('call', 'next')],
    })
    assert.equal((await untilRun(db, id)).status, 'failed')
    await assert.rejects(worker.client.workflow.getHandle(`run:${id}`).result())
    broken = false
    const newest = await reset(id, 0)
    await until(async () => (await run(id)).status === 'completed')
    const row = await run(id)
    assert.deepEqual([row.temporal_run_id, row.error], [newest, null])
    assert.deepEqual(await nodes(id), { before: 'completed', call: 'completed', next: 'completed' })
    assert.equal(calls, 2)
  })

  it('fail again if they are reset to a task after the failed call', async () => {
    const id = await queueRun(db, organizationId, {
      nodes: [call, set('next')],
      edges: [edge('call', 'next')],
    })
    await untilRun(db, id)
    await assert.rejects(worker.client.workflow.getHandle(`run:${id}`).result())
    const newest = await reset(id, 1)
    await until(async () => (await run(id)).temporal_run_id === newest)
    const row = await untilRun(db, id)
    assert.deepEqual([row.status, row.error?.code], ['failed', 'connection_refused'])
    assert.deepEqual(await nodes(id), { call: 'failed' })
  })

  it('find what they created, instead of creating it again', async () => {
    const { id: collection_id } = await db.tenant(organizationId, testActor, (tx) =>
      createCollection(tx, { name: 'Learned', description: null, language: 'english' }),
    )
    const id = await queueRun(db, organizationId, {
      nodes: [
        {
          id: 'save',
          type: 'crm_manager',
          config: { operation: 'create', entity: 'contacts', fields: { email: '{{ run.id }}@example.com' } },
        },
        { id: 'paid', type: 'emit_event', config: { event: 'invoice.paid', data: { run: '{{ run.id }}' } } },
        { id: 'number', type: 'key_value', config: { operation: 'increment', key: 'number' } },
        {
          id: 'learn',
          type: 'knowledge_add',
          config: { collection: 'Learned', title: 'Of {{ run.id }}', body: 'text' },
        },
      ],
      edges: [edge('save', 'paid'), edge('paid', 'number'), edge('number', 'learn')],
      outputs: {
        contact: '{{ nodes.save.output.id }}',
        event: '{{ nodes.paid.output }}',
        number: '{{ nodes.number.output.value }}',
        document: '{{ nodes.learn.output }}',
      },
    })
    const first = await untilRun(db, id)
    assert.equal(first.status, 'completed')
    await worker.client.workflow.getHandle(`run:${id}`).result()
    const newest = await reset(id, 0)
    await until(async () => (await run(id)).temporal_run_id === newest)
    const again = await untilRun(db, id)
    assert.deepEqual([again.status, again.outputs], ['completed', first.outputs])
    assert.equal((await db.system('contacts').where({ email: `${id}@example.com` })).length, 1)
    const raised = await db
      .system('events')
      .where({ cause: id })
      .whereIn('name', ['contact.created', 'invoice.paid'])
    assert.equal(raised.length, 2)
    assert.equal((await db.system('key_values').where({ key: 'number' }).first()).value, 1)
    assert.equal((await db.system('knowledge_documents').where({ collection_id })).length, 1)
    assert.equal((await db.system('knowledge_passages').where({ collection_id })).length, 1)
  })

  it('are not taken back by an older reset whose first segment was blocked', async () => {
    const id = await queueRun(db, organizationId, {
      nodes: [set('first'), delay('pause', '1h')],
      edges: [edge('first', 'pause')],
    })
    await until(async () => (await nodes(id)).pause === 'waiting')
    let release = () => {}
    let late: Promise<unknown> | undefined
    around = (advance) => async (input) => {
      if (late) return advance(input)
      const blocked = new Promise<void>((resolve) => {
        release = resolve
      })
      late = blocked.then(() => advance(input))
      return late as ReturnType<Advance>
    }
    const first = (await run(id)).temporal_run_id
    await reset(id, 0)
    await until(async () => late !== undefined)
    const newest = await reset(id, 0, first)
    await until(async () => (await run(id)).temporal_run_id === newest)
    release()
    const answer = (await late) as Awaited<ReturnType<Advance>>
    assert.deepEqual(answer.commands, [{ type: 'end', status: 'terminated' }])
    assert.equal((await run(id)).temporal_run_id, newest)
    await worker.client.workflow.getHandle(`run:${id}`).terminate()
  })

  it('run again although they were cancelled before', async () => {
    const id = await queueRun(db, organizationId, {
      nodes: [set('first'), delay('pause', '1500ms')],
      edges: [edge('first', 'pause')],
    })
    await until(async () => (await nodes(id)).pause === 'waiting')
    await db.tenant(organizationId, testActor, (tx) => cancelRun(tx, id))
    assert.equal((await untilRun(db, id)).status, 'cancelled')
    await assert.rejects(worker.client.workflow.getHandle(`run:${id}`).result())
    const newest = await reset(id, 0)
    await until(async () => (await run(id)).temporal_run_id === newest)
    assert.equal((await untilRun(db, id)).status, 'completed')
    const row = await run(id)
    assert.deepEqual([row.cancel_requested_at, row.cancel_sent_at], [null, null])
  })

  it('wait again for a delay that the end had cancelled, and continue after it', async () => {
    const id = await queueRun(db, organizationId, {
      nodes: [set('first'), delay('pause', '1500ms'), set('after'), call],
      edges: [edge('first', 'pause'), edge('pause', 'after'), edge('first', 'call')],
    })
    assert.equal((await untilRun(db, id)).status, 'failed')
    assert.equal((await nodes(id)).pause, 'cancelled')
    await assert.rejects(worker.client.workflow.getHandle(`run:${id}`).result())
    broken = false
    await reset(id, 0)
    await until(async () => (await run(id)).status === 'completed')
    assert.deepEqual(await nodes(id), {
      first: 'completed',
      pause: 'completed',
      call: 'completed',
      after: 'completed',
    })
  })

  it('run again from where they were resumed, also if they are reset twice', async () => {
    const id = await queueRun(db, organizationId, {
      nodes: [set('first'), delay('pause', '1h'), set('after')],
      edges: [edge('first', 'pause'), edge('pause', 'after')],
    })
    await until(async () => (await nodes(id)).pause === 'waiting')
    await db.tenant(organizationId, testActor, (tx) => pauseRun(tx, id))
    await untilRun(db, id, ['paused'])
    await db.tenant(organizationId, testActor, (tx) => unpauseRun(tx, id))
    await untilRun(db, id, ['running'])
    const { temporal_run_id: resumed } = await run(id)
    await until(async () => (await run(id)).temporal_run_id !== null)
    for (const base of [resumed, undefined]) {
      // A run that is terminated during its first workflow task has none to be reset to.
      await untilCompleted(worker.client.workflow.getHandle(`run:${id}`), 0)
      await db.tenant(organizationId, testActor, (tx) => terminateRun(tx, id))
      assert.equal((await run(id)).status, 'terminated')
      const closed = worker.client.workflow.getHandle(`run:${id}`)
      await until(async () => (await closed.describe()).status.name === 'TERMINATED')
      const newest = await reset(id, 0, base)
      await until(async () => (await run(id)).temporal_run_id === newest)
      assert.deepEqual([(await run(id)).status, (await nodes(id)).pause], ['running', 'waiting'])
    }
  })

  it('ignore a late segment of the previous Temporal run', async () => {
    let late: Promise<unknown> | undefined
    let release = () => {}
    let held = false
    around = (advance) => async (input) => {
      if (input.segment === 1 && !held) {
        held = true
        const blocked = new Promise<void>((resolve) => {
          release = resolve
        })
        late = blocked.then(() => advance(input))
        return late as ReturnType<Advance>
      }
      return advance(input)
    }
    const id = await queueRun(db, organizationId, {
      nodes: [delay('a', '50ms'), delay('b', '1h')],
      edges: [edge('a', 'b')],
    })
    await until(async () => held)
    const newest = await reset(id, 0)
    await until(async () => (await nodes(id)).b === 'waiting')
    assert.equal((await run(id)).temporal_run_id, newest)
    release()
    const answer = (await late) as Awaited<ReturnType<Advance>>
    assert.deepEqual(answer.commands, [{ type: 'end', status: 'terminated' }])
    const row = await run(id)
    assert.deepEqual([row.status, row.temporal_run_id], ['running', newest])
    assert.deepEqual(await nodes(id), { a: 'completed', b: 'waiting' })
    await new Sweep({ db, client: worker.client, taskQueue: worker.taskQueue, log: testLog }).once(
      '0 seconds',
    )
    assert.equal((await run(id)).status, 'running')
    await worker.client.workflow.getHandle(`run:${id}`).terminate()
  })
})
