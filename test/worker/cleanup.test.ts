import assert from 'node:assert/strict'
import type { HttpClient } from '../../activities/http/client.ts'
import type { AppError } from '../../db/model/errors.ts'
import { createKeyedRun } from '../../db/runs/keyed-runs.ts'
import { cancelRun, terminateRun } from '../../db/runs/moves/ends.ts'
import { pauseRun, unpauseRun } from '../../db/runs/moves/pauses.ts'
import { createRetry, prepareRetryOf } from '../../db/runs/retry.ts'
import { CHAIN_START } from '../../db/runs/runs.ts'
import { getRunNodes } from '../../db/runs/views.ts'
import type { RunError } from '../../workflows/interpret/run-state.ts'
import type { CleanupNode, NodeSpec } from '../../workflows/language/definition.ts'
import { testActor } from '../support/database.ts'
import type { PartialDefinition } from '../support/definition.ts'
import { httpResponse } from '../support/http-response.ts'
import { delay, edge } from '../support/nodes.ts'
import { until } from '../support/until.ts'
import { withWorker } from '../support/with-worker.ts'
import { nodeStatuses, queueRun, saveWorkflow, untilRun } from '../support/worker.ts'

/** A node that posts to a path of its name, with what the placeholder reads. */
const post = (path: string, reads = '{{ run.id }}'): CleanupNode => ({
  type: 'api_request',
  config: { method: 'POST', url: `https://example.com/${path}`, headers: { 'X-Reads': reads } },
  retry: { max_attempts: 2, initial_interval: '1ms' },
})
const call = (id: string, more: Partial<NodeSpec> = {}): NodeSpec => ({ ...post(id), id, ...more })
const undoable = (id: string, more: Partial<NodeSpec> = {}) =>
  call(id, { undo: post(`undo-${id}`, `{{ nodes.${id}.output.body.n }} {{ run.error.code }}`), ...more })

/** charge → ship → close, of which the first two can be undone. */
const order: PartialDefinition = {
  nodes: [undoable('charge'), undoable('ship'), call('close', { retry: { max_attempts: 1 } })],
  edges: [edge('charge', 'ship'), edge('ship', 'close')],
}
const always = {
  on_cancel: post('on-cancel', '{{ run.error.code }}'),
  finally: post('finally', '{{ run.status }}'),
}

describe('the cleanup of a run', () => {
  let calls: { path: string; key: string; reads: unknown }[] = []
  let broken = new Set<string>()
  /** The calls that wait, by path. */
  let held = new Map<string, () => void>()
  let hold = new Set<string>()
  const http: HttpClient['call'] = async (request, options) => {
    const path = new URL(request.url).pathname.slice(1)
    const { 'Idempotency-Key': key = '', 'X-Reads': reads } = request.headers ?? {}
    calls.push({ path, key, reads })
    if (hold.has(path))
      await new Promise<void>((resolve, reject) => {
        held.set(path, resolve)
        options?.signal?.addEventListener('abort', () => reject(new Error('aborted')))
      })
    return httpResponse({ status: broken.has(path) ? 400 : 200, body: { n: calls.length } })
  }
  const suite = withWorker({ http })
  beforeEach(() => {
    calls = []
    broken = new Set()
    held = new Map()
    hold = new Set()
  })

  const start = (definition: PartialDefinition) => queueRun(suite.db, suite.organizationId, definition)
  const move = (work: (tx: never, id: string) => Promise<unknown>, id: string) =>
    suite.db.tenant(suite.organizationId, testActor, (tx) => work(tx as never, id))
  const row = (id: string) => suite.db.system('runs').where({ id }).first()
  const paths = () => calls.map(({ path }) => path)
  const retry = (id: string) =>
    suite.db.tenant(suite.organizationId, testActor, async (tx) =>
      createRetry(tx, await prepareRetryOf(tx, id, { version: 'same' }), 0),
    )
  const temporal = (id: string) => suite.worker.client.workflow.getHandle(`run:${id}`).describe()

  it('undoes what completed in reverse order, with the outputs and the error, then runs finally', async () => {
    broken = new Set(['close'])
    const id = await start({ ...order, settings: always })
    const run = await untilRun(suite.db, id)
    assert.equal(run.status, 'failed')
    assert.equal(run.error?.code, 'unexpected_status', JSON.stringify(run))
    assert.equal(run.error?.node_id, 'close')
    assert.deepEqual(
      calls.map(({ path, reads }) => [path, reads]),
      [
        ['charge', id],
        ['ship', id],
        ['close', id],
        ['undo-ship', '2 unexpected_status'],
        ['undo-charge', '1 unexpected_status'],
        ['finally', 'failed'],
      ],
    )
    const nodes = await suite.db.tenant(suite.organizationId, testActor, (tx) => getRunNodes(tx, id))
    assert.deepEqual(
      nodes
        .slice(3)
        .map(({ node_id, role, undoes, status, attempt }) => [node_id, role, undoes, status, attempt]),
      [
        ['ship_undo', 'undo', 'ship', 'completed', 1],
        ['charge_undo', 'undo', 'charge', 'completed', 1],
        ['finally', 'finally', null, 'completed', 1],
      ],
    )
    await until(async () => (await temporal(id)).status.name === 'FAILED')
  })

  it('runs only finally after success, which fails the run if it fails', async () => {
    const id = await start({ ...order, settings: always, outputs: { n: '{{ nodes.close.output.body.n }}' } })
    assert.deepEqual((await untilRun(suite.db, id)).outputs, { n: 3 })
    assert.deepEqual(paths(), ['charge', 'ship', 'close', 'finally'])
    broken = new Set(['finally'])
    const failed = await untilRun(suite.db, await start({ ...order, settings: always }))
    assert.deepEqual([failed.status, failed.error?.code], ['failed', 'cleanup_failed'])
    assert.match(failed.error!.message, /^Failed at the end of the run: finally \(/)
  })

  it('runs the others after a failing undo, with its own retries, and adds it to the error of the run', async () => {
    broken = new Set(['close', 'undo-ship'])
    const { error } = await untilRun(suite.db, await start({ ...order, settings: always }))
    assert.deepEqual(paths(), ['charge', 'ship', 'close', 'undo-ship', 'undo-charge', 'finally'])
    assert.equal(error?.node_id, 'close')
    assert.match(error!.message, /\. Failed at the end of the run: ship_undo \(/)
    const [one] = (error as RunError).details!.cleanup as { node_id: string; role: string }[]
    assert.deepEqual([one!.node_id, one!.role], ['ship_undo', 'undo'])
  })

  it('undoes a cancelled run, awaits the call that is being made, and is not stopped by another cancellation', async () => {
    hold = new Set(['ship', 'undo-charge'])
    const id = await start({ ...order, settings: always })
    await until(() => held.has('ship'))
    await move(cancelRun as never, id)
    await until(async () => (await row(id)).ending !== null)
    assert.deepEqual(paths(), ['charge', 'ship'])
    held.get('ship')!()
    await until(() => held.has('undo-charge'))
    await move(cancelRun as never, id)
    await new Promise((resolve) => setTimeout(resolve, 300))
    assert.equal((await row(id)).status, 'running')
    held.get('undo-charge')!()
    const run = await untilRun(suite.db, id)
    assert.deepEqual([run.status, run.error?.code], ['cancelled', 'cancelled'])
    assert.deepEqual(paths(), ['charge', 'ship', 'undo-ship', 'undo-charge', 'on-cancel', 'finally'])
    assert.equal(calls.at(-2)!.reads, 'cancelled')
    await until(async () => (await temporal(id)).status.name === 'CANCELLED')
  })

  it('aborts a call without undo when the run is cancelled', async () => {
    hold = new Set(['close'])
    const id = await start({ ...order, settings: always })
    await until(() => held.has('close'))
    await move(cancelRun as never, id)
    assert.equal((await untilRun(suite.db, id)).status, 'cancelled')
    assert.equal((await nodeStatuses(suite.db, id)).close, 'cancelled')
    assert.deepEqual(paths().slice(3), ['undo-ship', 'undo-charge', 'on-cancel', 'finally'])
  })

  it('makes no further attempt of a call when the run has begun to end', async () => {
    broken = new Set(['other'])
    hold = new Set(['other'])
    const slow = undoable('other', {
      retry: { max_attempts: 5, initial_interval: '1h' },
    })
    const id = await start({ nodes: [undoable('charge'), slow], edges: [edge('charge', 'other')] })
    await until(() => held.has('other'))
    await move(cancelRun as never, id)
    await until(async () => (await row(id)).ending !== null)
    held.get('other')!()
    assert.equal((await untilRun(suite.db, id)).status, 'cancelled')
    assert.deepEqual(paths(), ['charge', 'other', 'undo-charge'])
  })

  it('is not run by a termination', async () => {
    hold = new Set(['undo-ship'])
    broken = new Set(['close'])
    const id = await start({ ...order, settings: always })
    await until(() => held.has('undo-ship'))
    await move(terminateRun as never, id)
    assert.equal((await row(id)).status, 'terminated')
    await until(async () => (await temporal(id)).status.name === 'TERMINATED')
    assert.equal(paths().at(-1), 'undo-ship')
  })

  it('is paused and resumed in the middle', async () => {
    hold = new Set(['undo-ship'])
    broken = new Set(['close'])
    const id = await start({ ...order, settings: always })
    await until(() => held.has('undo-ship'))
    await move(pauseRun as never, id)
    held.get('undo-ship')!()
    await untilRun(suite.db, id, ['paused'])
    assert.equal(paths().at(-1), 'undo-ship')
    await move(unpauseRun as never, id)
    assert.equal((await untilRun(suite.db, id)).status, 'failed')
    assert.deepEqual(paths().slice(3), ['undo-ship', 'undo-charge', 'finally'])
  })

  it('is done for a paused run that is cancelled', async () => {
    const id = await start({
      nodes: [undoable('charge'), delay('wait', '1h')],
      edges: [edge('charge', 'wait')],
      settings: always,
    })
    await until(async () => (await row(id)).sleeps_until !== null)
    await move(pauseRun as never, id)
    await untilRun(suite.db, id, ['paused'])
    await move(cancelRun as never, id)
    assert.equal((await untilRun(suite.db, id)).status, 'cancelled')
    assert.deepEqual(paths(), ['charge', 'undo-charge', 'on-cancel', 'finally'])
  })

  it('follows the timeout of the run, and has a time limit of its own', async () => {
    hold = new Set(['undo-charge'])
    const id = await start({
      nodes: [undoable('charge'), delay('wait', '1h')],
      edges: [edge('charge', 'wait')],
      settings: { ...always, timeout: '1s', cleanup_timeout: '700ms' },
    })
    const run = await untilRun(suite.db, id)
    assert.deepEqual([run.status, run.error?.code], ['failed', 'timeout'])
    assert.deepEqual(paths(), ['charge', 'undo-charge'])
    assert.match(run.error!.message, /Not done within the time limit of its end: charge_undo, finally\.$/)
    calls = []
    hold = new Set()
    const other = await untilRun(
      suite.db,
      await start({
        nodes: [undoable('charge'), delay('wait', '1h')],
        edges: [edge('charge', 'wait')],
        settings: { ...always, timeout: '1s' },
      }),
    )
    assert.equal(other.error?.code, 'timeout')
    assert.deepEqual(paths(), ['charge', 'undo-charge', 'finally'])
  })

  it('names the undo of a call that was still being made when its time was over', async () => {
    hold = new Set(['ship'])
    const id = await start({ ...order, settings: { ...always, cleanup_timeout: '500ms' } })
    await until(() => held.has('ship'))
    await move(cancelRun as never, id)
    const run = await untilRun(suite.db, id)
    assert.equal(run.status, 'cancelled')
    assert.deepEqual(paths(), ['charge', 'ship'])
    const missed = (run.error as RunError).details!.cleanup as { node_id: string; message: string }[]
    assert.deepEqual(
      missed.map(({ node_id }) => node_id),
      ['ship_undo', 'charge_undo', 'on_cancel', 'finally'],
    )
    assert.match(missed[0]!.message, /ship may have had its effect/)
    assert.match(run.error!.message, /time limit of its end: ship_undo, charge_undo, on_cancel, finally\.$/)
  })

  it('has nothing to undo of nodes that were skipped, or failed', async () => {
    broken = new Set(['ship', 'close'])
    const id = await start({
      ...order,
      nodes: [
        undoable('charge', { when: '{{ false }}' }),
        undoable('ship', { on_error: 'continue' }),
        order.nodes[2]!,
      ],
    })
    assert.equal((await untilRun(suite.db, id)).status, 'failed')
    assert.deepEqual(paths(), ['ship', 'close'])
  })

  it('is repeated by a retry: undone nodes and those after them run again, with keys of their own', async () => {
    broken = new Set(['close'])
    const id = await start(order)
    await untilRun(suite.db, id)
    const again = await retry(id)
    await untilRun(suite.db, again)
    assert.deepEqual(
      calls.slice(5).map(({ path, key }) => [path, key]),
      [
        ['charge', `${again}:charge`],
        ['ship', `${again}:ship`],
        ['close', `${again}:close`],
        ['undo-ship', `${again}:ship_undo`],
        ['undo-charge', `${again}:charge_undo`],
      ],
    )
  })

  it('of a loop is repeated by a retry: all of its items run again, with keys of their own', async () => {
    broken = new Set(['close'])
    const id = await start({
      nodes: [
        { id: 'each', type: 'for_each', config: { items: [0, 1] }, undo: post('undo-each') },
        call('charge'),
        call('close', { retry: { max_attempts: 1 } }),
      ],
      edges: [edge('each', 'charge', 'item'), edge('each', 'close', 'done')],
    })
    await untilRun(suite.db, id)
    assert.deepEqual(paths(), ['charge', 'charge', 'close', 'undo-each'])
    calls = []
    const again = await retry(id)
    await untilRun(suite.db, again)
    assert.deepEqual(
      calls.slice(0, 3).map(({ path, key }) => [path, key.slice(0, 36)]),
      [
        ['charge', again],
        ['charge', again],
        ['close', again],
      ],
    )
  })

  it('of a loop that fails at an item undoes the items before it, and a retry runs all of them again', async () => {
    broken = new Set(['c'])
    const each: NodeSpec = {
      id: 'each',
      type: 'for_each',
      config: { items: ['a', 'b', 'c', 'd'] },
      undo: post(
        'undo-each',
        '{{ nodes.each.output.results | map: "body" | map: "n" | reverse | join: "," }}',
      ),
    }
    const reserve: NodeSpec = {
      ...post('{{ item }}', '{{ item }}'),
      id: 'reserve',
      retry: { max_attempts: 1 },
    }
    const id = await start({
      nodes: [undoable('charge'), each, reserve, call('close')],
      edges: [edge('charge', 'each'), edge('each', 'reserve', 'item'), edge('each', 'close', 'done')],
    })
    const run = await untilRun(suite.db, id)
    assert.deepEqual([run.status, run.error?.code, run.error?.node_id], ['failed', 'item_failed', 'each'])
    assert.deepEqual(paths(), ['charge', 'a', 'b', 'c', 'undo-each', 'undo-charge'])
    assert.equal(calls[4]!.reads, '3,2')
    await assert.rejects(
      suite.db.tenant(suite.organizationId, testActor, (tx) =>
        prepareRetryOf(tx, id, { version: 'same', from_node: 'reserve' }),
      ),
      /what each has done was undone/,
    )
    calls = []
    broken = new Set()
    const again = await retry(id)
    assert.equal((await untilRun(suite.db, again)).status, 'completed')
    assert.deepEqual(
      calls.map(({ path, key }) => [path, key.slice(0, 36)]),
      ['charge', 'a', 'b', 'c', 'd', 'close'].map((path) => [path, again]),
    )
  })

  it('of a loop undoes what its items have done if the run is cancelled meanwhile', async () => {
    hold = new Set(['b'])
    const id = await start({
      nodes: [
        {
          id: 'each',
          type: 'for_each',
          config: { items: ['a', 'b', 'c'] },
          undo: post('undo-each', '{{ nodes.each.output.items | map: "status" | join: "," }}'),
        },
        { ...post('{{ item }}'), id: 'reserve' },
      ],
      edges: [edge('each', 'reserve', 'item')],
    })
    await until(() => held.has('b'))
    await move(cancelRun as never, id)
    assert.equal((await untilRun(suite.db, id)).status, 'cancelled')
    assert.deepEqual([paths(), calls.at(-1)!.reads], [['a', 'b', 'undo-each'], 'completed,cancelled'])
  })

  it('is followed by one retry at a time: two would both have the effect', async () => {
    broken = new Set(['close'])
    const id = await start(order)
    await untilRun(suite.db, id)
    hold = new Set(['ship'])
    calls = []
    const twice = await Promise.allSettled([retry(id), retry(id)])
    const [made, ...others] = twice.flatMap((one) => (one.status === 'fulfilled' ? [one.value] : []))
    assert.deepEqual(others, [])
    await until(() => held.has('ship'))
    const refused = (run: string, why: RegExp) =>
      assert.rejects(retry(run), (error: AppError) => {
        assert.equal(error.type, 'conflict')
        assert.ok(error.message.includes(made!), error.message)
        assert.match(`${error.message}: ${error.details.hint}`, why)
        return true
      })
    await refused(id, /is running: .*cancel it/)
    broken = new Set(['close', 'undo-charge'])
    hold = new Set()
    held.get('ship')!()
    assert.equal((await untilRun(suite.db, made!)).status, 'failed')
    // Its charge stands.
    await refused(id, /has done charge again.*: retry run .* instead/)
    broken = new Set()
    const last = await retry(made!)
    assert.equal((await untilRun(suite.db, last)).status, 'completed')
    await assert.rejects(retry(id), new RegExp(`${last}.* has completed`))
    await assert.rejects(retry(made!), new RegExp(`${last}.* has completed`))
    assert.equal(paths().filter((path) => path === 'charge').length, 1)
  })

  it('that undid a retry too leaves the run to another retry', async () => {
    broken = new Set(['close'])
    const id = await start(order)
    await untilRun(suite.db, id)
    await untilRun(suite.db, await retry(id))
    broken = new Set()
    assert.equal((await untilRun(suite.db, await retry(id))).status, 'completed')
  })

  it('of a retry that undid what its run had done leaves the run to no other retry', async () => {
    hold = new Set(['close'])
    const id = await queueRun(suite.db, suite.organizationId, order)
    await until(async () => held.has('close'))
    await suite.db.tenant(suite.organizationId, testActor, (tx) => terminateRun(tx, id))
    hold = new Set()
    broken = new Set(['close'])
    const made = await retry(id)
    assert.equal((await untilRun(suite.db, made)).status, 'failed')
    broken = new Set()
    await assert.rejects(retry(id), (error: AppError) => {
      const text = `${error.message}: ${error.details.hint}`
      assert.match(text, new RegExp(`run ${made}.* has undone charge, ship: retry run ${made} instead`))
      return true
    })
    assert.equal((await untilRun(suite.db, await retry(made))).status, 'completed')
  })

  it('keeps what could not be undone in a retry', async () => {
    broken = new Set(['close', 'undo-charge'])
    const id = await start(order)
    await untilRun(suite.db, id)
    calls = []
    broken = new Set(['close'])
    await untilRun(suite.db, await retry(id))
    assert.deepEqual(
      calls.map(({ path, key }) => [path, key.slice(0, 36) === id]),
      [
        ['ship', false],
        ['close', false],
        ['undo-ship', false],
        ['undo-charge', true],
      ],
    )
  })

  it('of one that could not be undone leaves it its key, also after an undone node', async () => {
    broken = new Set(['close', 'undo-ship'])
    const id = await start(order)
    await untilRun(suite.db, id)
    calls = []
    broken = new Set()
    assert.equal((await untilRun(suite.db, await retry(id))).status, 'completed')
    assert.deepEqual(
      calls.map(({ path, key }) => [path, key.slice(0, 36) === id]),
      [
        ['charge', false],
        ['ship', true],
        ['close', false],
      ],
    )
  })

  it('of a cancelled run comes before the next run of its key', async () => {
    hold = new Set(['ship', 'undo-charge'])
    const { id: workflow } = await saveWorkflow(suite.db, suite.organizationId, order)
    const startKeyed = () =>
      suite.db.tenant(suite.organizationId, testActor, (tx) =>
        createKeyedRun(
          tx,
          {
            workflow: { id: workflow, version: 1, name: 'Test' },
            trigger: { type: 'api' },
            inputs: {},
            chain: CHAIN_START,
          },
          { key: 'order-1', onConflict: 'use_existing' },
        ),
      )
    const first = await startKeyed()
    await until(() => held.has('ship'))
    await move(cancelRun as never, first.id)
    const next = await startKeyed()
    assert.deepEqual([next.existing, next.id === first.id], [false, false])
    held.get('ship')!()
    await until(() => held.has('undo-charge'))
    assert.deepEqual(paths(), ['charge', 'ship', 'undo-ship', 'undo-charge'])
    hold = new Set()
    held.get('undo-charge')!()
    assert.equal((await untilRun(suite.db, next.id)).status, 'completed')
    assert.equal((await row(first.id)).status, 'cancelled')
    assert.deepEqual(paths().slice(4), ['charge', 'ship', 'close'])
  })

  it('cancels a child, which undoes its own nodes', async () => {
    hold = new Set(['close'])
    const child = await saveWorkflow(suite.db, suite.organizationId, {
      ...order,
      name: 'Order',
    })
    const id = await start({
      nodes: [
        { id: 'order', type: 'run_workflow', config: { workflow: child.id, wait: true } },
        delay('late', '1h'),
      ],
      edges: [edge('order', 'late')],
      settings: { finally: post('finally') },
    })
    await until(() => held.has('close'))
    await move(cancelRun as never, id)
    assert.equal((await untilRun(suite.db, id)).status, 'cancelled')
    await until(() => paths().includes('undo-charge'))
    assert.deepEqual(
      paths().filter((path) => path !== 'finally'),
      ['charge', 'ship', 'close', 'undo-ship', 'undo-charge'],
    )
  })
})
