import assert from 'node:assert/strict'
import { randomUUID } from 'node:crypto'
import type { Tenant } from '../../db/postgres/tenancy.ts'
import { createRetry, prepareRetryOf, type RetryOptions } from '../../db/runs/retry.ts'
import { testActor } from '../support/database.ts'
import type { PartialDefinition } from '../support/definition.ts'
import { httpResponse } from '../support/http-response.ts'
import { withWorker } from '../support/with-worker.ts'
import { queueRun, untilRun } from '../support/worker.ts'

const edge = (from: string, to: string, handle = 'success') => ({ from, handle, to })
const node = (id: string, type: string, config: Record<string, unknown>) => ({ id, type, config })

/** Each turn asks a service, which names the next page. */
const pages = (config: Record<string, unknown> = {}): PartialDefinition => ({
  nodes: [
    node('pages', 'repeat', {
      initial: { next: '0' },
      until: '{{ nodes.get.output.body.next == null }}',
      output: { next: '{{ nodes.get.output.body.next }}', seen: '{{ nodes.get.output.body.path }}' },
      ...config,
    }),
    node('get', 'api_request', { method: 'POST', url: 'https://x.test/{{ previous.next }}' }),
  ],
  edges: [edge('pages', 'get', 'turn')],
  outputs: { all: '{{ nodes.pages.output }}' },
})
const LAST = 3

describe('runs with a repeat', () => {
  let calls: { path: string; key: string }[] = []
  let broken = new Set<string>()
  let filler = ''
  const suite = withWorker({
    http: async (request) => {
      const path = new URL(request.url).pathname.slice(1)
      calls.push({ path, key: request.headers?.['Idempotency-Key'] ?? '' })
      const next = Number(path) < LAST ? String(Number(path) + 1) : null
      return httpResponse({ status: broken.has(path) ? 400 : 200, body: { path: `${path}!`, next, filler } })
    },
  })
  const tenant = <T>(work: (tx: Tenant) => Promise<T>) =>
    suite.db.tenant(suite.organizationId, testActor, work)
  const start = async (definition: PartialDefinition, broke: string[] = []) => {
    broken = new Set(broke)
    calls = []
    const id = await queueRun(suite.db, suite.organizationId, definition, {})
    const run = await untilRun(suite.db, id)
    broken = new Set()
    return run
  }
  const retry = (id: string, options: Partial<RetryOptions> = {}) =>
    tenant(async (tx) => {
      const planned = await prepareRetryOf(tx, id, { version: 'same', ...options })
      return { planned, id: await createRetry(tx, planned, 0) }
    })
  const results = [0, 1, 2, 3].map((n) => ({ next: n < LAST ? String(n + 1) : null, seen: `${n}!` }))
  const all = { turns: 4, ended_by: 'until', last: results[3], results }

  it('follow a service from page to page, with pauses that are timers', async () => {
    const run = await start(pages({ pause: '20ms' }))
    assert.deepEqual(run.outputs, { all })
    assert.deepEqual(
      calls.map(({ path }) => path),
      ['0', '1', '2', '3'],
    )
    assert.equal(calls[2]!.key, `${run.id}:pages:2/get`)
    const { events } = await suite.worker.client.workflow.getHandle(`run:${run.id}`).fetchHistory()
    assert.equal(events!.filter((event) => event.timerStartedEventAttributes).length, 3)
  })

  it('are retried from the turn that failed, which reads what the turn before returned', async () => {
    const failed = await start(pages(), ['2'])
    assert.equal(failed.error?.code, 'turn_failed')
    calls = []
    const { planned, id } = await retry(failed.id)
    assert.deepEqual(planned.loops, [{ node_id: 'pages', kept: 2, again: 1 }])
    assert.deepEqual((await untilRun(suite.db, id)).outputs, { all })
    assert.deepEqual(
      calls.map(({ path, key }) => [path, key]),
      [
        ['2', `${failed.id}:pages:2/get`],
        ['3', `${failed.id}:pages:3/get`],
      ],
    )
  })

  it('run all turns after a named one again', async () => {
    const done = await start(pages())
    calls = []
    const { planned, id } = await retry(done.id, { from_node: 'get', items: ['pages:1'] })
    assert.deepEqual(planned.loops, [{ node_id: 'pages', kept: 1, again: 3 }])
    assert.deepEqual((await untilRun(suite.db, id)).outputs, { all })
    assert.deepEqual(
      calls.map(({ path }) => path),
      ['1', '2', '3'],
    )
  })

  it('make no further turn in a retry after the condition held, but the results were too large', async () => {
    filler = 'x'.repeat(300_000)
    const failed = await start(pages({ output: '{{ nodes.get.output.body }}' }))
    assert.deepEqual([failed.error?.code, calls.length], ['output_too_large', 4])
    calls = []
    const { id } = await retry(failed.id)
    const again = await untilRun(suite.db, id)
    assert.deepEqual([again.error?.code, calls], ['output_too_large', []])
    // The last turn runs again by name, and is again the last one.
    filler = ''
    const named = await untilRun(suite.db, (await retry(id, { from_node: 'get', items: ['pages:3'] })).id)
    assert.deepEqual([named.status, calls.map(({ path }) => path)], ['completed', ['3']])
  })

  it('fail at the limit, and fail at it again where it stays', async () => {
    const failed = await start(pages({ max_turns: 2 }))
    assert.equal(failed.error?.code, 'turn_limit')
    const { id } = await retry(failed.id)
    assert.equal((await untilRun(suite.db, id)).error?.code, 'turn_limit')
    assert.deepEqual(
      calls.map(({ path }) => path),
      ['0', '1'],
    )
  })

  it('are repeated by a reset in Temporal without making a call twice', async () => {
    const run = await start(pages({ pause: '10ms' }))
    const handle = suite.worker.client.workflow.getHandle(`run:${run.id}`)
    await handle.result()
    const keys = calls.map(({ key }) => key)
    const tasks = (await handle.fetchHistory()).events!.filter(
      (event) => event.workflowTaskCompletedEventAttributes,
    )
    const { runId } = await suite.worker.client.workflowService.resetWorkflowExecution({
      namespace: 'default',
      workflowExecution: { workflowId: handle.workflowId },
      reason: 'test',
      requestId: randomUUID(),
      workflowTaskFinishEventId: tasks[3]!.eventId!,
    })
    await suite.worker.client.workflow.getHandle(`run:${run.id}`, runId).result()
    const again = await suite.db.system('runs').where({ id: run.id }).first()
    assert.deepEqual([again.temporal_run_id, again.status, again.outputs], [runId, 'completed', { all }])
    // A reset repeats calls with their keys.
    assert.deepEqual(new Set(calls.map(({ key }) => key)), new Set(keys))
  })

  it('make 1,000 turns with a bounded history', async () => {
    const run = await start({
      nodes: [
        node('count', 'repeat', {
          initial: 0,
          max_turns: 1_000,
          until: '{{ nodes.add.output.n >= 1000 }}',
          output: '{{ nodes.add.output.n }}',
        }),
        node('add', 'set_fields', { fields: { n: '{{ previous | plus: 1 }}' } }),
      ],
      edges: [edge('count', 'add', 'turn')],
      outputs: { last: '{{ nodes.count.output.last }}', turns: '{{ nodes.count.output.turns }}' },
    })
    assert.deepEqual(run.outputs, { last: 1_000, turns: 1_000 })
    const { events } = await suite.worker.client.workflow.getHandle(`run:${run.id}`).fetchHistory()
    assert.ok(events!.length < 100, `${events!.length} events`)
  })
})
