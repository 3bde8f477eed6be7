import assert from 'node:assert/strict'
import { randomUUID } from 'node:crypto'
import type { AppError } from '../../db/model/errors.ts'
import type { Tenant } from '../../db/postgres/tenancy.ts'
import { createRetry, prepareRetryOf, type RetryOptions } from '../../db/runs/retry.ts'
import { lockWorkflow, updateWorkflow } from '../../db/workflows/workflows.ts'
import { compile } from '../../workflows/authoring/compile.ts'
import { testActor } from '../support/database.ts'
import type { PartialDefinition } from '../support/definition.ts'
import { httpResponse } from '../support/http-response.ts'
import { withWorker } from '../support/with-worker.ts'
import { queueRun, untilRun } from '../support/worker.ts'

const edge = (from: string, to: string, handle = 'success') => ({ from, handle, to })
const node = (id: string, type: string, config: Record<string, unknown>) => ({ id, type, config })
const save = (name: string) =>
  node('save', 'crm_manager', { operation: 'create', entity: 'companies', fields: { name } })
const call = (url: string) => node('call', 'api_request', { method: 'POST', url: `https://x.test/${url}` })
const PATHS = '{{ nodes.each.output.items | map: "output" }}'

/** Each item saves a company, then calls a service. */
const flat = (config: Record<string, unknown> = {}): PartialDefinition => ({
  nodes: [
    node('each', 'for_each', {
      items: '{{ inputs.items }}',
      concurrency: 2,
      output: '{{ nodes.call.output.body.path }}',
      ...config,
    }),
    save('{{ run.id }} {{ item }}'),
    call('{{ item }}'),
    node('last', 'set_fields', { fields: { paths: PATHS } }),
  ],
  edges: [edge('each', 'save', 'item'), edge('save', 'call'), edge('each', 'last', 'done')],
  inputs: { items: { type: 'array' } },
  outputs: { paths: '{{ nodes.last.output.paths }}' },
})

/** Items of items: `[['a', 'b'], ['c', 'd']]`. */
const nested: PartialDefinition = {
  nodes: [
    node('each', 'for_each', {
      items: '{{ inputs.items }}',
      concurrency: 2,
      output: '{{ nodes.inner.output.items | map: "output" }}',
    }),
    node('inner', 'for_each', { items: '{{ item }}', output: '{{ nodes.call.output.body.path }}' }),
    save('{{ run.id }} {{ item }}'),
    call('{{ item }}'),
  ],
  edges: [edge('each', 'inner', 'item'), edge('inner', 'save', 'item'), edge('save', 'call')],
  inputs: { items: { type: 'array' } },
  outputs: { paths: PATHS },
}

describe('retries of runs with loops', () => {
  let calls: { path: string; key: string }[] = []
  let broken = new Set<string>()
  let [open, most] = [0, 0]
  const suite = withWorker({
    http: async (request) => {
      const path = new URL(request.url).pathname.slice(1)
      calls.push({ path, key: request.headers?.['Idempotency-Key'] ?? '' })
      open += 1
      most = Math.max(most, open)
      await new Promise((resolve) => setTimeout(resolve, 20))
      open -= 1
      return httpResponse({ status: broken.has(path) ? 400 : 200, body: { path: `${path}!` } })
    },
  })
  const tenant = <T>(work: (tx: Tenant) => Promise<T>) =>
    suite.db.tenant(suite.organizationId, testActor, work)
  const plan = (id: string, options: Partial<RetryOptions>) =>
    tenant((tx) => prepareRetryOf(tx, id, { version: 'same', ...options }))
  const retry = async (id: string, options: Partial<RetryOptions> = {}) => {
    const planned = await plan(id, options)
    return tenant((tx) => createRetry(tx, planned, 0))
  }
  const start = async (definition: PartialDefinition, items: unknown[], broke: string[] = []) => {
    broken = new Set(broke)
    const id = await queueRun(suite.db, suite.organizationId, definition, { items })
    await untilRun(suite.db, id)
    calls = []
    broken = new Set()
    ;[open, most] = [0, 0]
    return id
  }
  const called = () => calls.map(({ path }) => path).sort()
  const companies = (id: string) =>
    suite.db.system('companies').where('name', 'like', `${id} %`).orderBy('name').pluck('name')

  it('go on with the items that did not complete, each from where it stopped', async () => {
    const id = await start(flat(), [0, 1, 2, 3, 4, 5], ['3'])
    const before = await companies(id)
    const { loops } = await plan(id, {})
    const [kept] = loops
    assert.ok(kept && kept.kept >= 2 && kept.kept <= 4 && kept.kept + kept.again === 6, JSON.stringify(loops))
    const run = await untilRun(suite.db, await retry(id))
    assert.deepEqual(run.outputs, { paths: ['0!', '1!', '2!', '3!', '4!', '5!'] })
    // A call may have ended while its item was cancelled: its output is reused.
    assert.ok(calls.length <= kept.again)
    assert.ok(!called().includes('0') && called().includes('3') && called().includes('5'))
    assert.equal(calls.find(({ path }) => path === '3')?.key, `${id}:each:3/call`)
    // The company of item 3 is that of the first run.
    assert.deepEqual([await companies(id), before.length < 6], [before, true])
    assert.deepEqual(
      await companies(run.id),
      [0, 1, 2, 3, 4, 5]
        .map((n) => `${run.id} ${n}`)
        .filter((name) => !before.includes(name.replace(run.id, id))),
    )
  })

  it('run the items again that failed, no more at a time than `concurrency`, and what comes after', async () => {
    const items = Array.from({ length: 12 }, (_, index) => index)
    const id = await start(flat({ on_item_error: 'continue' }), items, ['1', '3', '4', '8', '10'])
    const planned = await plan(id, { from_node: 'call' })
    assert.deepEqual(planned.loops, [{ node_id: 'each', kept: 7, again: 5 }])
    assert.deepEqual([planned.reused, planned.again], [[], ['each', 'save', 'call', 'last']])
    const run = await untilRun(suite.db, await retry(id, { from_node: 'call' }))
    assert.deepEqual(run.outputs, { paths: items.map((item) => `${item}!`) })
    assert.deepEqual(called(), ['1', '10', '3', '4', '8'])
    assert.ok(most <= 2, `${most} calls at a time`)
    assert.deepEqual(await companies(run.id), [])
    const rows = await suite.db.system('run_nodes').where({ run_id: run.id, node_id: 'save' })
    assert.equal(rows.length, 12)
  })

  it('run named items again, also those that completed, and leave others as they are', async () => {
    const id = await start(flat({ on_item_error: 'continue' }), [0, 1, 2, 3], ['1', '3'])
    const run = await untilRun(suite.db, await retry(id, { from_node: 'call', items: ['each:0', 'each:3'] }))
    assert.deepEqual([run.outputs, called()], [{ paths: ['0!', null, '2!', '3!'] }, ['0', '3']])
    assert.deepEqual(
      calls.map(({ key }) => key).sort(),
      [0, 3].map((index) => `${id}:each:${index}/call`),
    )
    // The retry starts with an earlier node, which finds the objects that it created.
    calls = []
    const again = await untilRun(suite.db, await retry(run.id, { from_node: 'save', items: ['each:2'] }))
    assert.deepEqual(
      [again.outputs?.paths, calls],
      [['0!', null, '2!', '3!'], [{ path: '2', key: `${id}:each:2/call` }]],
    )
    assert.deepEqual([await companies(run.id), await companies(again.id)], [[], []])
  })

  it('in loops in loops run only what did not complete', async () => {
    const id = await start(nested, [['a', 'b'], ['c', 'd', 'e'], ['f']], ['d'])
    const { loops } = await plan(id, {})
    assert.deepEqual(
      loops.map(({ node_id }) => node_id),
      ['each', 'inner'],
    )
    const run = await untilRun(suite.db, await retry(id))
    assert.deepEqual(run.outputs, { paths: [['a!', 'b!'], ['c!', 'd!', 'e!'], ['f!']] })
    assert.ok(!called().includes('c') && called().includes('d') && called().includes('e'))
    assert.equal(calls.find(({ path }) => path === 'd')?.key, `${id}:each:1/inner:1/call`)
    calls = []
    const named = await retry(run.id, { from_node: 'call', items: ['each:0/inner:1'] })
    const { outputs } = await untilRun(suite.db, named)
    assert.deepEqual(outputs, run.outputs)
    assert.deepEqual(calls, [{ path: 'b', key: `${id}:each:0/inner:1/call` }])
  })

  it('have the body of the newest version', async () => {
    const id = await start(flat(), [0, 1, 2], ['1'])
    const { workflow_id } = await suite.db.system('runs').where({ id }).first()
    await tenant(async (tx) => {
      const before = await lockWorkflow(tx, workflow_id, undefined)
      const nodes = before.definition.nodes.map((one) => (one.id === 'call' ? call('new{{ item }}') : one))
      const definition = { ...before.definition, nodes }
      await updateWorkflow(tx, before, { content: { spec: null, definition, program: compile(definition) } })
    })
    const run = await untilRun(suite.db, await retry(id, { version: 'latest' }))
    const [first, second] = run.outputs!.paths as string[]
    assert.deepEqual([run.status, first, second], ['completed', '0!', 'new1!'])
  })

  it('that fail again can be retried again, from the start as well', async () => {
    const id = await start(flat(), [0, 1, 2, 3], ['2'])
    broken = new Set(['2'])
    const second = await retry(id)
    assert.equal((await untilRun(suite.db, second)).error?.code, 'item_failed')
    broken = new Set()
    calls = []
    const third = await untilRun(suite.db, await retry(second))
    assert.deepEqual(third.outputs?.paths, ['0!', '1!', '2!', '3!'])
    assert.ok(!called().includes('0'))
    calls = []
    const whole = await untilRun(suite.db, await retry(third.id, { from_start: true }))
    assert.deepEqual([whole.status, called()], ['completed', ['0', '1', '2', '3']])
    assert.ok(calls.every(({ path, key }) => key === `${id}:each:${path}/call`))
    assert.deepEqual(await companies(whole.id), [])
  })

  it('are repeated by a reset in Temporal with the results that they keep', async () => {
    const id = await start(flat({ on_item_error: 'continue' }), [0, 1, 2, 3], ['1'])
    const retried = await retry(id, { from_node: 'call' })
    const first = await untilRun(suite.db, retried)
    const handle = suite.worker.client.workflow.getHandle(`run:${retried}`)
    await handle.result()
    calls = []
    const events = (await handle.fetchHistory()).events!
    const task = events.find((event) => event.workflowTaskCompletedEventAttributes)!
    const { runId } = await suite.worker.client.workflowService.resetWorkflowExecution({
      namespace: 'default',
      workflowExecution: { workflowId: handle.workflowId },
      reason: 'test',
      requestId: randomUUID(),
      workflowTaskFinishEventId: task.eventId!,
    })
    await suite.worker.client.workflow.getHandle(`run:${retried}`, runId).result()
    const again = await suite.db.system('runs').where({ id: retried }).first()
    assert.deepEqual(
      [again.temporal_run_id, again.status, again.outputs],
      [runId, 'completed', first.outputs],
    )
    assert.deepEqual(calls, [{ path: '1', key: `${id}:each:1/call` }])
    const loop = await suite.db.system('run_loops').where({ run_id: retried }).first()
    assert.deepEqual([loop.succeeded, loop.failed, loop.open], [4, 0, false])
  })

  it('are refused with what to do instead', async () => {
    const id = await start(flat(), [0, 1])
    const refused = (options: Partial<RetryOptions>, param: string, message: RegExp) =>
      assert.rejects(plan(id, options), (error: AppError) => {
        assert.deepEqual([error.type, error.details.param], ['conflict', param])
        assert.match(error.message, message)
        return true
      })
    await refused({ from_node: 'call' }, 'from_node', /all items of the loop around call have completed/)
    await refused(
      { from_node: 'call', items: ['each:7', 'x'] },
      'items',
      /each:7, x: the run has started no such item/,
    )
    await refused(
      { from_node: 'last', items: ['each:1'] },
      'items',
      /items requires a from_node that is in a loop/,
    )
    await refused({ items: ['each:1'] }, 'items', /items requires from_node/)
  })
})
