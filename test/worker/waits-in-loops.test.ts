import assert from 'node:assert/strict'
import { insertEvents } from '../../db/events/outbox.ts'
import { answerApproval } from '../../db/runs/approvals.ts'
import { cancelRun, terminateRun } from '../../db/runs/moves/ends.ts'
import { pauseRun, unpauseRun } from '../../db/runs/moves/pauses.ts'
import { createRetry, prepareRetryOf } from '../../db/runs/retry.ts'
import { sendSignal } from '../../db/runs/signals.ts'
import type { NodeSpec } from '../../workflows/language/definition.ts'
import { NodeError } from '../../workflows/language/node-error.ts'
import { testActor } from '../support/database.ts'
import type { PartialDefinition } from '../support/definition.ts'
import { httpResponse } from '../support/http-response.ts'
import { edge } from '../support/nodes.ts'
import { until } from '../support/until.ts'
import { withWorker } from '../support/with-worker.ts'
import { queueRun, saveWorkflow, untilRun } from '../support/worker.ts'

const node = (id: string, type: string, config: Record<string, unknown>): NodeSpec => ({ id, type, config })
const each = (items: unknown, more: Record<string, unknown> = {}) =>
  node('each', 'for_each', { items, concurrency: 10, ...more })
const call = node('call', 'api_request', { method: 'POST', url: 'https://example.com/{{ item }}' })

/** Interactions of the engine's parts: waits, pauses, ends and retries of runs with loops. */
describe('runs with loops', () => {
  let urls: string[] = []
  let answer: (url: string) => Promise<void> = async () => {}
  const suite = withWorker({
    http: async ({ url }) => {
      urls.push(url.slice(-1))
      await answer(url)
      return httpResponse({ body: { url } })
    },
  })
  beforeEach(() => {
    urls = []
    answer = async () => {}
  })

  const move = <T>(work: Parameters<typeof suite.db.tenant<T>>[2]) =>
    suite.db.tenant(suite.organizationId, testActor, work)
  const run = (definition: PartialDefinition) => queueRun(suite.db, suite.organizationId, definition)
  const waitsOf = (id: string) => suite.db.system('run_waits').where({ run_id: id }).orderBy('path')
  const untilWaits = (id: string, count: number) =>
    until(async () => {
      const waits = await waitsOf(id)
      return waits.length === count ? waits : undefined
    }, `${count} waits`)
  const iterations = (id: string) =>
    suite.db.system('run_iterations').where({ run_id: id }).orderBy('index').pluck('status')
  const decide = (runId: string, id: string, decision: 'approved' | 'rejected') =>
    move((tx) =>
      answerApproval(tx, { run_id: runId, id }, { decision, comment: null }, { type: 'key', id: null }),
    )
  const openRows = async (id: string) => {
    const loops = await suite.db.system('run_loops').where({ run_id: id, open: true })
    const items = await suite.db.system('run_iterations').where({ run_id: id, status: 'running' })
    const nodes = await suite.db
      .system('run_nodes')
      .where({ run_id: id })
      .whereIn('status', ['running', 'waiting'])
    const waits = await suite.db.system('run_waits').where({ run_id: id, answered_at: null })
    return [loops.length, items.length, nodes.length, waits.length]
  }
  const held = () => {
    let release = () => {}
    const promise = new Promise<void>((resolve) => {
      release = resolve
    })
    return { promise, release: () => release() }
  }

  it('ask for each item, and each gets its own answer', async () => {
    const id = await run({
      nodes: [each(['a', 'b', 'c'], { output: '{{ nodes.ask.output.decision }}' }), ask],
      edges: [edge('each', 'ask', 'item')],
      outputs: { all: '{{ nodes.each.output.items | map: "output" }}' },
    })
    const waits = await untilWaits(id, 3)
    assert.deepEqual(
      waits.map(({ path, settings }) => [path, settings.title]),
      [
        ['each:0', 'a'],
        ['each:1', 'b'],
        ['each:2', 'c'],
      ],
    )
    await decide(id, waits[1]!.id, 'rejected')
    await until(async () => (await iterations(id))[1] === 'completed', 'the second item')
    assert.deepEqual(await iterations(id), ['running', 'completed', 'running'])
    await decide(id, waits[2]!.id, 'approved')
    await decide(id, waits[0]!.id, 'approved')
    assert.deepEqual((await untilRun(suite.db, id)).outputs, { all: ['approved', 'rejected', 'approved'] })
  })

  it('wait for an event in each item, and leave by `timeout` where none comes', async () => {
    const wait = node('wait', 'wait_for_event', {
      event: 'invoice.paid',
      when: '{{ event.data.n == item }}',
      timeout: '3s',
    })
    const id = await run({
      nodes: [each([1, 2, 3], { output: '{{ nodes.wait.output.data.n }}' }), wait],
      edges: [edge('each', 'wait', 'item')],
      outputs: { all: '{{ nodes.each.output.items | map: "output" }}' },
    })
    await untilWaits(id, 3)
    for (const n of [3, 1]) await move((tx) => insertEvents(tx, [{ name: 'invoice.paid', data: { n } }]))
    assert.deepEqual((await untilRun(suite.db, id)).outputs, { all: [1, null, 3] })
  })

  it('take one signal for each item', async () => {
    const id = await run({
      nodes: [
        each([1, 2], { concurrency: 1, output: '{{ nodes.wait.output.payload }}' }),
        node('wait', 'wait_for_signal', { name: 'go' }),
      ],
      edges: [edge('each', 'wait', 'item')],
      outputs: { all: '{{ nodes.each.output.items | map: "output" }}' },
    })
    await untilWaits(id, 1)
    for (const payload of ['x', 'y']) await move((tx) => sendSignal(tx, id, { name: 'go', payload }))
    assert.deepEqual((await untilRun(suite.db, id)).outputs, { all: ['x', 'y'] })
  })

  it('close the waits of items that are cancelled, and cancel their children; the run goes on', async () => {
    await saveWorkflow(suite.db, suite.organizationId, {
      name: 'Long',
      nodes: [node('long', 'delay', { for: '1h' })],
    })
    const fails = held()
    answer = async () => {
      await fails.promise
      throw new NodeError('connection_refused', 'Nobody there.')
    }
    const id = await run({
      nodes: [
        each(['ask', 'event', 'child', 'fail']),
        node('which', 'switch', {
          value: '{{ item }}',
          cases: { ask: 'ask', event: 'event', child: 'child', fail: 'fail' },
        }),
        ask,
        node('event', 'wait_for_event', { event: 'invoice.paid', timeout: '1h' }),
        node('child', 'run_workflow', { workflow: 'Long' }),
        call,
        node('hold', 'wait_for_signal', { name: 'end' }),
      ],
      edges: [
        edge('each', 'which', 'item'),
        ...[
          ['ask', 'ask'],
          ['event', 'event'],
          ['child', 'child'],
          ['fail', 'call'],
        ].map(([handle, to]) => edge('which', to!, handle)),
        edge('each', 'hold', 'error'),
      ],
    })
    const waits = await untilWaits(id, 3)
    const child = waits.find(({ type }) => type === 'child_run')!.subject_id
    const asked = waits.find(({ type }) => type === 'decision')!.id
    await untilRun(suite.db, child, ['running'])
    fails.release()
    await untilWaits(id, 4)
    assert.deepEqual(await iterations(id), ['cancelled', 'cancelled', 'cancelled', 'failed'])
    await assert.rejects(decide(id, asked, 'approved'), { type: 'gone' })
    assert.equal((await untilRun(suite.db, child)).status, 'cancelled')
    await move((tx) => insertEvents(tx, [{ name: 'invoice.paid', data: {} }]))
    await until(async () => (await openRows(id))[3] === 1, 'the wait of the child is closed')
    const { status } = await suite.db.system('runs').where({ id }).first()
    assert.equal(status, 'running')
    await move((tx) => sendSignal(tx, id, { name: 'end', payload: null }))
    assert.equal((await untilRun(suite.db, id)).status, 'completed')
    assert.deepEqual(await openRows(id), [0, 0, 0, 0])
  })

  it('ask nobody and take no signal for items that are cancelled at once', async () => {
    const id = await run({
      nodes: [
        node('hold', 'wait_for_signal', { name: 'start' }),
        each(['wait', 'ask', 'fail']),
        node('which', 'switch', { value: '{{ item }}', cases: { wait: 'wait', ask: 'ask' } }),
        node('wait', 'wait_for_signal', { name: 'kept' }),
        ask,
        node('fails', 'set_fields', { fields: { value: '{{ item.missing.member }}' } }),
        node('after', 'wait_for_signal', { name: 'kept', timeout: '10s' }),
      ],
      edges: [
        edge('hold', 'each', 'received'),
        edge('each', 'which', 'item'),
        edge('which', 'wait', 'wait'),
        edge('which', 'ask', 'ask'),
        edge('which', 'fails', 'default'),
        edge('each', 'after', 'error'),
      ],
      outputs: { payload: '{{ nodes.after.output.payload }}' },
    })
    await untilWaits(id, 1)
    await move((tx) => sendSignal(tx, id, { name: 'kept', payload: 1 }))
    await move((tx) => sendSignal(tx, id, { name: 'start', payload: null }))
    assert.deepEqual((await untilRun(suite.db, id)).outputs, { payload: 1 })
    assert.deepEqual(await iterations(id), ['cancelled', 'cancelled', 'failed'])
    const requests = await suite.db.system('events').where({ name: 'approval.requested', cause: id })
    assert.equal(requests.length, 0)
  })

  it('are paused in the middle of a loop: no further item starts, until they are resumed', async () => {
    const gate = held()
    answer = () => gate.promise
    const id = await run({
      nodes: [each([0, 1, 2, 3, 4], { concurrency: 2, output: '{{ item }}' }), call],
      edges: [edge('each', 'call', 'item')],
      outputs: { all: '{{ nodes.each.output.items | map: "output" }}' },
    })
    await until(() => urls.length === 2, 'two calls')
    await move((tx) => pauseRun(tx, id))
    gate.release()
    await untilRun(suite.db, id, ['paused'])
    assert.deepEqual(urls.sort(), ['0', '1'])
    await move((tx) => unpauseRun(tx, id))
    assert.deepEqual((await untilRun(suite.db, id)).outputs, { all: [0, 1, 2, 3, 4] })
    assert.deepEqual(urls.sort(), ['0', '1', '2', '3', '4'])
  })

  it('take answers and signals while they are paused', async () => {
    const id = await run({
      nodes: [
        each(['a', 'b'], { output: '{{ nodes.ask.output.decision }} {{ nodes.wait.output.payload }}' }),
        ask,
        node('wait', 'wait_for_signal', { name: 'go' }),
      ],
      edges: [edge('each', 'ask', 'item'), edge('ask', 'wait', 'approved')],
      outputs: { all: '{{ nodes.each.output.items | map: "output" }}' },
    })
    const [first, second] = await untilWaits(id, 2)
    await decide(id, first!.id, 'approved')
    await untilWaits(id, 3)
    await move((tx) => pauseRun(tx, id))
    await untilRun(suite.db, id, ['paused'])
    await decide(id, second!.id, 'approved')
    for (const payload of [1, 2]) await move((tx) => sendSignal(tx, id, { name: 'go', payload }))
    await move((tx) => unpauseRun(tx, id))
    assert.deepEqual((await untilRun(suite.db, id)).outputs, { all: ['approved 1', 'approved 2'] })
  })

  it('are cancelled and terminated with all that their items wait for', async () => {
    await saveWorkflow(suite.db, suite.organizationId, {
      name: 'Slow',
      nodes: [node('long', 'delay', { for: '1h' })],
    })
    for (const [work, status, paused] of [
      [cancelRun, 'cancelled', false],
      [cancelRun, 'cancelled', true],
      [terminateRun, 'terminated', false],
    ] as const) {
      const id = await run({
        nodes: [
          each([['x'], ['y']]),
          node('inner', 'for_each', { items: '{{ item }}' }),
          ask,
          node('child', 'run_workflow', { workflow: 'Slow' }),
        ],
        edges: [edge('each', 'inner', 'item'), edge('each', 'child', 'item'), edge('inner', 'ask', 'item')],
      })
      const waits = await untilWaits(id, 4)
      const children = waits.filter(({ type }) => type === 'child_run').map((row) => row.subject_id)
      if (paused) {
        await move((tx) => pauseRun(tx, id))
        await untilRun(suite.db, id, ['paused'])
      }
      await move<unknown>((tx) => work(tx, id))
      assert.equal((await untilRun(suite.db, id)).status, status)
      for (const child of children) assert.equal((await untilRun(suite.db, child)).status, 'cancelled')
      assert.deepEqual(await openRows(id), [0, 0, 0, 0], `${status}, paused: ${paused}`)
      assert.deepEqual(await iterations(id), Array(4).fill('cancelled'))
    }
  })

  describe('retried from a node', () => {
    const definition: PartialDefinition = {
      nodes: [
        each(['a', 'b'], { output: '{{ nodes.call.output.body.url }}' }),
        call,
        node('second', 'api_request', { method: 'POST', url: 'https://example.com/z' }),
      ],
      edges: [edge('each', 'call', 'item'), edge('each', 'second', 'done')],
      outputs: { all: '{{ nodes.each.output.items | map: "output" }}' },
    }
    const plan = (id: string, from_node: string) =>
      move((tx) => prepareRetryOf(tx, id, { version: 'same', from_node }))
    const failed = async () => {
      answer = async (url) => {
        if (url.endsWith('z')) throw new NodeError('connection_refused', 'Nobody there.')
      }
      const id = await run(definition)
      assert.equal((await untilRun(suite.db, id)).error?.node_id, 'second')
      answer = async () => {}
      urls = []
      return id
    }

    it('after a loop reuse its results', async () => {
      const id = await failed()
      const planned = await plan(id, 'second')
      assert.deepEqual([planned.reused, planned.again], [['each'], ['second']])
      const retried = await move((tx) => createRetry(tx, planned, 0))
      const { status, outputs } = await untilRun(suite.db, retried)
      assert.deepEqual(
        [status, outputs, urls],
        ['completed', { all: ['https://example.com/a', 'https://example.com/b'] }, ['z']],
      )
    })

    it('at a loop run all its items again', async () => {
      const planned = await plan(await failed(), 'each')
      assert.deepEqual([planned.reused, planned.again], [[], ['each', 'call', 'second']])
      assert.equal(
        (await untilRun(suite.db, await move((tx) => createRetry(tx, planned, 0)))).status,
        'completed',
      )
      assert.deepEqual(urls.sort(), ['a', 'b', 'z'])
    })
  })
})

const ask = node('ask', 'approval', { title: '{{ item }}' })
