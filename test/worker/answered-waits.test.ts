import assert from 'node:assert/strict'
import { randomUUID } from 'node:crypto'
import { insertEvents } from '../../db/events/outbox.ts'
import { answerApproval, getApproval } from '../../db/runs/approvals.ts'
import { cancelRun } from '../../db/runs/moves/ends.ts'
import { pauseRun, unpauseRun } from '../../db/runs/moves/pauses.ts'
import { resumeRun } from '../../db/runs/moves/starts.ts'
import { sendSignal } from '../../db/runs/signals.ts'
import { activate } from '../../db/workflows/workflows.ts'
import type { Definition, NodeSpec } from '../../workflows/language/definition.ts'
import { createOrganization, testActor } from '../support/database.ts'
import { edge, set } from '../support/nodes.ts'
import { until } from '../support/until.ts'
import { withWorker } from '../support/with-worker.ts'
import { historyOf, queueRun, saveWorkflow, startWorker, untilRun } from '../support/worker.ts'

const node = (type: string, config: Record<string, unknown>, id = 'wait'): NodeSpec => ({ id, type, config })

/** A node, and one node after each of its handles. */
const branches = (first: NodeSpec, handles: string[]): Pick<Definition, 'nodes' | 'edges' | 'outputs'> => ({
  nodes: [first, ...handles.map((handle) => set(handle, '{{ nodes.wait.output }}'))],
  edges: handles.map((handle) => edge('wait', handle, handle)),
  outputs: { handle: '{{ nodes.wait.handle }}', output: '{{ nodes.wait.output }}' },
})

describe('runs that wait for an answer', () => {
  const suite = withWorker()
  let organizationId: string

  beforeEach(async () => {
    organizationId = await createOrganization(suite.db)
  })

  const tenant = <T>(work: Parameters<typeof suite.db.tenant<T>>[2]) =>
    suite.db.tenant(organizationId, testActor, work)
  const run = (definition: Partial<Definition> & Pick<Definition, 'nodes'>, inputs = {}) =>
    queueRun(suite.db, organizationId, definition, inputs)
  const raise = (name: string, data: Record<string, unknown> = {}) =>
    tenant((tx) => insertEvents(tx, [{ name, data }]))
  // biome-ignore lint/suspicious/noExplicitAny: a row
  const untilWait = (id: string, nodeId = 'wait'): Promise<any> =>
    until(() => suite.db.system('run_waits').where({ run_id: id, node_id: nodeId }).first())
  const ended = async (id: string) => {
    const { status, outputs, error } = await untilRun(suite.db, id)
    assert.deepEqual([status, error], ['completed', null])
    return outputs as { handle: string; output: Record<string, unknown> }
  }
  const events = (name: string) =>
    suite.db.system('events').where({ organization_id: organizationId, name }).orderBy('id')
  const signal = (id: string, name: string, payload: unknown = null) =>
    tenant((tx) => sendSignal(tx, id, { name, payload }))
  const decide = (runId: string, id: string, decision: 'approved' | 'rejected') =>
    tenant((tx) =>
      answerApproval(tx, { run_id: runId, id }, { decision, comment: 'ok' }, { type: 'key', id: null }),
    )
  const canceledTimers = async (id: string) => {
    // The row ends shortly before the workflow.
    await suite.worker.client.workflow.getHandle(`run:${id}`).result()
    const events = await historyOf(suite.worker.client, `run:${id}`)
    return events.filter((event) => event.timerCanceledEventAttributes).length
  }

  it('get it while they are paused, and go on with it when they are resumed', async () => {
    const id = await run({
      nodes: [
        set('start', 1),
        node('wait_for_signal', { name: 'a' }, 'signal'),
        node('wait_for_event', { event: 'invoice.paid' }, 'event'),
        node('approval', { title: 'May I?' }, 'ask'),
      ],
      edges: ['signal', 'event', 'ask'].map((to) => edge('start', to, 'success')),
      outputs: {
        all: ['{{ nodes.signal.output.payload }}', '{{ nodes.event.output.name }}', '{{ nodes.ask.handle }}'],
      },
    })
    const ask = await untilWait(id, 'ask')
    await tenant((tx) => pauseRun(tx, id))
    await untilRun(suite.db, id, ['paused'])
    assert.deepEqual(await signal(id, 'a', 1), { node_id: 'signal', path: '' })
    await raise('invoice.paid')
    await decide(id, ask.id, 'approved')
    await until(async () => (await untilWait(id, 'event')).answered_at)
    await tenant((tx) => unpauseRun(tx, id))
    const { outputs } = await untilRun(suite.db, id)
    assert.deepEqual(outputs, { all: [1, 'invoice.paid', 'approved'] })
  })

  describe('wait_for_event', () => {
    const wait = (config: Record<string, unknown>) =>
      branches(node('wait_for_event', config), [
        'received',
        ...(config.timeout === undefined ? [] : ['timeout']),
      ])

    it('continue with the first event that fits, and not with others', async () => {
      const record = randomUUID()
      const id = await run(
        {
          ...wait({
            event: ['invoice.paid', 'invoice.voided'],
            record_id: record,
            when: '{{ event.data.amount > inputs.least }}',
            timeout: '1h',
          }),
          inputs: { least: { type: 'number' } },
        },
        { least: 100 },
      )
      await untilWait(id)
      await raise('invoice.paid', { id: randomUUID(), amount: 500 })
      await raise('invoice.sent', { id: record, amount: 500 })
      await raise('invoice.paid', { id: record, amount: 50 })
      await raise('invoice.voided', { id: record, amount: 200 })
      const { handle, output } = await ended(id)
      assert.deepEqual(
        [handle, output.name, output.data, output.record],
        ['received', 'invoice.voided', { id: record, amount: 200 }, null],
      )
      assert.equal(await canceledTimers(id), 1, 'the timeout is cancelled')
    })

    it('leave by `timeout` if no event comes in time; later ones change nothing', async () => {
      const id = await run(wait({ event: 'invoice.paid', timeout: '1s' }))
      const { handle, output } = await ended(id)
      assert.deepEqual([handle, output.name], ['timeout', null])
      await raise('invoice.paid')
      await new Promise((resolve) => setTimeout(resolve, 300))
      assert.equal((await untilWait(id)).answer, null)
    })

    it('take an event that came before the wait only with `since: run_start`', async () => {
      const held = { id: 'hold', type: 'wait_for_signal', config: { name: 'go' } }
      const waits = (since: string) => ({
        nodes: [held, node('wait_for_event', { event: 'invoice.paid', since, timeout: '2s' })],
        edges: [edge('hold', 'wait', 'received')],
        outputs: { handle: '{{ nodes.wait.handle }}', output: '{{ nodes.wait.output }}' },
      })
      await raise('invoice.paid', { n: 'before the run' })
      const ids = [await run(waits('run_start')), await run(waits('now'))]
      for (const id of ids) await untilWait(id, 'hold')
      await raise('invoice.paid', { n: 1 })
      await until(async () => (await events('invoice.paid')).every((event) => event.matched_at))
      for (const id of ids) await signal(id, 'go')
      const [early, late] = [await ended(ids[0]!), await ended(ids[1]!)]
      assert.deepEqual([early.handle, early.output.data], ['received', { n: 1 }])
      assert.equal(late.handle, 'timeout')
    })

    it('take an event that came before the run was queued, but after the one that triggers it', async () => {
      const { id } = await saveWorkflow(suite.db, organizationId, {
        trigger: { type: 'event', events: ['order.opened'] },
        ...wait({ event: ['order.opened', 'order.closed'], since: 'run_start', timeout: '1h' }),
        outputs: { handle: '{{ nodes.wait.handle }}', output: '{{ nodes.wait.output }}' },
      })
      await tenant((tx) => activate(tx, id))
      // Before the events below.
      await suite.db
        .system('workflow_triggers')
        .where({ workflow_id: id })
        .update({ active_since: new Date(0) })
      await tenant(async (tx) => {
        const names = ['order.closed', 'order.opened', 'order.closed']
        await insertEvents(
          tx,
          names.map((name, n) => ({ name, data: { n } })),
        )
        // The relay sees all three at once: it is that late.
        for (const n of [0, 1, 2])
          await tx.trx.raw(
            `update events set created_at = created_at - ? * interval '1 second' where organization_id = ? and data -> 'n' = ?`,
            [3 - n, organizationId, String(n)],
          )
      })
      const [started] = await until(async () => {
        const rows = await suite.db.system('runs').where({ workflow_id: id })
        return rows.length > 0 ? rows : undefined
      })
      const { output } = await ended(started.id)
      assert.deepEqual([output.name, output.data], ['order.closed', { n: 2 }])
    })

    it('take an event of the transaction that triggers the run, if it follows the one that does', async () => {
      const { id } = await saveWorkflow(suite.db, organizationId, {
        trigger: { type: 'event', events: ['shop.opened'] },
        ...wait({ event: ['shop.opened', 'shop.closed'], since: 'run_start', timeout: '1h' }),
        outputs: { handle: '{{ nodes.wait.handle }}', output: '{{ nodes.wait.output }}' },
      })
      await tenant((tx) => activate(tx, id))
      const names = ['shop.closed', 'shop.opened', 'shop.closed']
      await tenant((tx) =>
        insertEvents(
          tx,
          names.map((name, n) => ({ name, data: { n } })),
        ),
      )
      const started = await until(() => suite.db.system('runs').where({ workflow_id: id }).first())
      const { output } = await ended(started.id)
      assert.deepEqual([output.name, output.data], ['shop.closed', { n: 2 }])
    })

    it('show why a filter fails, and go on waiting', async () => {
      const id = await run(wait({ event: 'invoice.paid', when: '{{ event.data.amount.value > 1 }}' }))
      await untilWait(id)
      await raise('invoice.paid', { total: 5 })
      const { problem } = await until(async () => {
        const row = await untilWait(id)
        return row.problem ? row : undefined
      })
      assert.match(problem.message, /undefined variable: event.data.amount/)
      await raise('invoice.paid', { amount: { value: 2 } })
      assert.equal((await ended(id)).handle, 'received')
    })

    it('fail if a value that the filter reads is missing when the wait begins', async () => {
      const id = await run(wait({ event: 'invoice.paid', when: '{{ event.data.n > trigger.record.n }}' }))
      const { status, error } = await untilRun(suite.db, id)
      assert.deepEqual([status, error?.code], ['failed', 'placeholder_error'])
    })

    it('wait in parallel branches, each for its own event', async () => {
      const id = await run({
        nodes: [
          set('start', 1),
          node('wait_for_event', { event: 'invoice.paid' }, 'paid'),
          node('wait_for_event', { event: 'invoice.sent' }, 'sent'),
          set('both', 1),
        ],
        edges: [
          edge('start', 'paid', 'success'),
          edge('start', 'sent', 'success'),
          edge('paid', 'both', 'received'),
          edge('sent', 'both', 'received'),
        ],
        outputs: { names: ['{{ nodes.paid.output.name }}', '{{ nodes.sent.output.name }}'] },
      })
      await untilWait(id, 'sent')
      await raise('invoice.sent')
      await until(async () => (await untilWait(id, 'sent')).answered_at)
      assert.equal((await untilWait(id, 'paid')).answered_at, null)
      await raise('invoice.paid')
      const { outputs } = await untilRun(suite.db, id)
      assert.deepEqual(outputs, { names: ['invoice.paid', 'invoice.sent'] })
    })
  })

  describe('wait_for_signal', () => {
    const wait = (config: Record<string, unknown>) =>
      branches(node('wait_for_signal', config), [
        'received',
        ...(config.timeout === undefined ? [] : ['timeout']),
      ])

    it('continue with the payload, from before the wait or after its beginning', async () => {
      const id = await run({
        nodes: [
          node('wait_for_signal', { name: 'a' }, 'first'),
          node('wait_for_signal', { name: 'b' }, 'second'),
        ],
        edges: [edge('first', 'second', 'received')],
        outputs: { all: ['{{ nodes.first.output.payload }}', '{{ nodes.second.output.payload }}'] },
      })
      await untilWait(id, 'first')
      assert.deepEqual(await signal(id, 'b', { n: 2 }), { node_id: null, path: null })
      assert.deepEqual(await signal(id, 'a', 1), { node_id: 'first', path: '' })
      const { outputs } = await untilRun(suite.db, id)
      assert.deepEqual(outputs, { all: [1, { n: 2 }] })
      await assert.rejects(signal(id, 'a'), { type: 'conflict', message: /has ended: it is completed/ })
    })

    it('leave by `timeout`', async () => {
      assert.equal((await ended(await run(wait({ name: 'a', timeout: '1s' })))).handle, 'timeout')
    })

    it('give each signal to one of two nodes that wait for it', async () => {
      const id = await run({
        nodes: [
          set('start', 1),
          node('wait_for_signal', { name: 'a' }, 'one'),
          node('wait_for_signal', { name: 'a' }, 'two'),
        ],
        edges: [edge('start', 'one', 'success'), edge('start', 'two', 'success')],
        outputs: { all: ['{{ nodes.one.output.payload }}', '{{ nodes.two.output.payload }}'] },
      })
      await untilWait(id, 'two')
      await signal(id, 'a', 1)
      await signal(id, 'a', 2)
      assert.deepEqual(((await untilRun(suite.db, id)).outputs!.all as number[]).sort(), [1, 2])
    })

    it('are kept up to a number, and refused above it', async () => {
      const id = await run(wait({ name: 'never' }))
      await untilWait(id)
      await suite.db.system.raw(
        `insert into run_signals (organization_id, run_id, id, name, actor)
         select ?, ?, gen_random_uuid(), 'x', '{}' from generate_series(1, 100)`,
        [organizationId, id],
      )
      await assert.rejects(signal(id, 'x'), {
        type: 'conflict',
        message: /100 signals that no node has received/,
      })
      await signal(id, 'never')
      await untilRun(suite.db, id)
    })
  })

  describe('approval', () => {
    const ask = (config: Record<string, unknown> = {}) =>
      branches(node('approval', { title: 'May I?', ...config }), [
        'approved',
        'rejected',
        ...(config.timeout === undefined ? [] : ['expired']),
      ])

    it('continue by the decision; the second one is refused', async () => {
      for (const decision of ['approved', 'rejected'] as const) {
        const id = await run(ask({ timeout: '1h', assignees: ['ann@example.com'] }))
        const wait = await untilWait(id)
        const answered = await decide(id, wait.id, decision)
        assert.equal(answered.status, decision)
        await assert.rejects(decide(id, wait.id, 'approved'), {
          type: 'conflict',
          message: new RegExp(`was already ${decision}`),
        })
        const { handle, output } = await ended(id)
        assert.deepEqual([handle, output.decision, output.comment], [decision, decision, 'ok'])
      }
      const [requested] = await events('approval.requested')
      assert.equal(requested.data.assignees[0], 'ann@example.com')
      assert.match(requested.data.link, /^http:\/\/localhost:8080\/approvals\/[\w-]{107}$/)
      assert.equal(requested.cause, requested.data.run_id)
      assert.deepEqual(
        (await events('approval.answered')).map(({ data }) => [data.status, data.link]),
        [
          ['approved', null],
          ['rejected', null],
        ],
      )
    })

    it('leave by `expired` if nobody decides in time; later decisions are refused', async () => {
      const id = await run(ask({ timeout: '1s' }))
      const { handle, output } = await ended(id)
      assert.deepEqual([handle, output.decision], ['expired', 'expired'])
      const wait = await untilWait(id)
      await assert.rejects(decide(id, wait.id, 'approved'), { type: 'gone', message: /it has expired/ })
    })

    it('remind and escalate once each, until there is a decision', async () => {
      const id = await run(ask({ reminders: ['1s', '2s', '1h'], escalate_after: '1s', timeout: '2h' }))
      const wait = await untilWait(id)
      await until(async () => (await events('approval.reminder'))[1])
      assert.equal((await events('approval.escalated')).length, 1)
      const [{ data }] = await events('approval.reminder')
      assert.deepEqual([data.id, data.status], [wait.id, 'waiting'])
      assert.match(data.link, /\/approvals\//)
      await decide(id, wait.id, 'approved')
      await ended(id)
      assert.equal((await events('approval.reminder')).length, 2)
    })

    it('are closed when their run is cancelled', async () => {
      const id = await run(ask())
      const wait = await untilWait(id)
      await untilRun(suite.db, id, ['running'])
      await tenant((tx) => cancelRun(tx, id))
      await untilRun(suite.db, id, ['cancelled'])
      await assert.rejects(decide(id, wait.id, 'approved'), { type: 'gone' })
      const { status } = await tenant((tx) => getApproval(tx, { run_id: id, id: wait.id }))
      assert.equal(status, 'closed')
    })

    it('show that the run waits for a person in Temporal, only as long as it does', async () => {
      const id = await run({
        nodes: [node('approval', { title: 'May I?' }), node('wait_for_signal', { name: 'go' }, 'hold')],
        edges: [edge('wait', 'hold', 'approved')],
      })
      const wait = await untilWait(id)
      const state = async () => {
        const { searchAttributes } = await suite.worker.client.workflow.getHandle(`run:${id}`).describe()
        return searchAttributes.AgxState?.[0] ?? undefined
      }
      await until(async () => (await state()) === 'waiting_for_person')
      await decide(id, wait.id, 'approved')
      await until(async () => (await state()) === undefined)
      await signal(id, 'go')
      await untilRun(suite.db, id)
      const upserts = (await historyOf(suite.worker.client, `run:${id}`)).filter(
        (event) => event.upsertWorkflowSearchAttributesEventAttributes,
      )
      assert.equal(upserts.length, 2)
    })
  })

  it('sleep: they take no slot of their organization', async () => {
    await suite.db
      .system('organizations')
      .where({ id: organizationId })
      .update({ limits: JSON.stringify({ max_running: 1 }) })
    const ids = await Promise.all(
      ['wait_for_signal', 'approval'].map((type) =>
        run({ nodes: [node(type, type === 'approval' ? { title: 'a', timeout: '1h' } : { name: 'a' })] }),
      ),
    )
    for (const id of ids) await untilWait(id)
    const sleeps = async (id: string) => (await suite.db.system('runs').where({ id }).first()).sleeps_until
    assert.equal(String(await sleeps(ids[0]!)), 'Infinity')
    assert.ok((await sleeps(ids[1]!)).getTime() > Date.now() + 3_000_000)
    assert.equal((await untilRun(suite.db, await run({ nodes: [set('a', 1)] }))).status, 'completed')
    await Promise.all(ids.map((id) => tenant((tx) => cancelRun(tx, id))))
  })

  it('continue when their worker comes back after the answer', async () => {
    const other = await startWorker(suite.db)
    await other.stop()
    const id = await run({
      nodes: [node('wait_for_signal', { name: 'a', timeout: '1h' }), set('after', 1)],
      edges: [edge('wait', 'after', 'received')],
      outputs: { payload: '{{ nodes.wait.output.payload }}' },
    })
    await untilWait(id)
    const { taskQueue } = suite.worker
    await suite.worker.stop()
    await signal(id, 'a', 7)
    suite.worker = await startWorker(suite.db, {}, taskQueue)
    assert.deepEqual((await untilRun(suite.db, id)).outputs, { payload: 7 })
  })

  it('take an answer that is recorded while the timeout fires, and whose signal was not sent', async () => {
    const id = await run({
      nodes: [node('wait_for_signal', { name: 'a', timeout: '1s' })],
      outputs: { handle: '{{ nodes.wait.handle }}' },
    })
    await untilWait(id)
    await signal(id, 'a')
    // Simulates that the relay does not work: the timer alone wakes the workflow.
    await suite.db.system('run_waits').where({ run_id: id }).update({ notified_at: new Date() })
    const { outputs } = await untilRun(suite.db, id)
    assert.deepEqual(outputs, { handle: 'received' })
  })

  it('go on after Temporal has lost their workflow, whether the answer comes before or after', async () => {
    for (const when of ['before', 'after']) {
      const id = await run({
        nodes: [node('approval', { title: 'May I?', timeout: '1h' })],
        outputs: { handle: '{{ nodes.wait.handle }}' },
      })
      const wait = await untilWait(id)
      await untilRun(suite.db, id, ['running'])
      const { temporal_run_id } = await suite.db.system('runs').where({ id }).first()
      await suite.worker.client.workflow.getHandle(`run:${id}`).terminate()
      if (when === 'before') await decide(id, wait.id, 'approved')
      await tenant((tx) => resumeRun(tx, id, temporal_run_id))
      if (when === 'after') {
        await untilRun(suite.db, id, ['running'])
        await decide(id, wait.id, 'approved')
      }
      assert.deepEqual((await untilRun(suite.db, id)).outputs, { handle: 'approved' }, when)
    }
  })

  it('have their answer again after a reset, and ask again if the reset is before the wait', async () => {
    const id = await run({
      nodes: [
        node('delay', { for: '50ms' }, 'pause'),
        node('approval', { title: 'May I?', timeout: '1h' }),
        node('wait_for_signal', { name: 'a', timeout: '1h' }, 'hold'),
      ],
      edges: [edge('pause', 'wait', 'success'), edge('wait', 'hold', 'approved')],
      outputs: { payload: '{{ nodes.hold.output.payload }}' },
    })
    const first = await untilWait(id)
    await decide(id, first.id, 'approved')
    await untilWait(id, 'hold')
    await signal(id, 'a', 7)
    await untilRun(suite.db, id)
    const workflow = suite.worker.client.workflow.getHandle(`run:${id}`)
    await workflow.result()
    const reset = async (task: number) => {
      const tasks = (await workflow.fetchHistory()).events?.filter(
        (event) => event.workflowTaskCompletedEventAttributes,
      )
      await suite.worker.client.workflowService.resetWorkflowExecution({
        namespace: 'default',
        workflowExecution: { workflowId: workflow.workflowId },
        workflowTaskFinishEventId: tasks![task]!.eventId!,
        requestId: randomUUID(),
        reason: 'test',
      })
    }
    // A reset after the approval: its answer is kept.
    await reset(2)
    await workflow.result()
    assert.deepEqual((await untilRun(suite.db, id)).outputs, { payload: 7 })
    // A reset to before the approval: a new one is requested, and the signal is available again.
    await reset(0)
    const second = await until(async () => {
      const wait = await untilWait(id)
      return wait.id === first.id ? undefined : wait
    })
    await assert.rejects(decide(id, first.id, 'approved'), { type: 'not_found' })
    await decide(id, second.id, 'approved')
    await workflow.result()
    assert.deepEqual((await untilRun(suite.db, id)).outputs, { payload: 7 })
  })
})
