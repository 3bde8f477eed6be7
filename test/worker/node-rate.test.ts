import { deepEqual, equal, match, ok } from 'node:assert/strict'
import type { HttpClient } from '../../activities/http/client.ts'
import { cancelRun } from '../../db/runs/moves/ends.ts'
import { CHAIN_START, createRun } from '../../db/runs/runs.ts'
import { getRunNodes } from '../../db/runs/views.ts'
import type { NodeRate, NodeSpec } from '../../workflows/language/definition.ts'
import { testActor } from '../support/database.ts'
import { httpResponse } from '../support/http-response.ts'
import { each } from '../support/nodes.ts'
import { until } from '../support/until.ts'
import { withWorker } from '../support/with-worker.ts'
import { queueRun, saveWorkflow, untilRun } from '../support/worker.ts'

describe('the rate of a node', () => {
  /** The runs of the calls. */
  let calls: string[] = []
  let broken = false
  const http: HttpClient['call'] = async ({ headers }) => {
    calls.push(headers?.['X-Run'] ?? '')
    return httpResponse({ status: broken ? 503 : 200, body: {} })
  }
  const suite = withWorker({ http })
  beforeEach(() => {
    calls = []
    broken = false
  })

  const limited = (rate: NodeRate, more: Partial<NodeSpec> = {}): NodeSpec => ({
    id: 'ask',
    type: 'api_request',
    config: { method: 'POST', url: 'https://example.com/', headers: { 'X-Run': '{{ run.id }}' } },
    rate,
    ...more,
  })
  const start = (workflow: { id: string; version: number; name: string }, inputs = {}) =>
    suite.db.tenant(suite.organizationId, testActor, (tx) =>
      createRun(tx, { workflow, trigger: { type: 'api' }, inputs, chain: CHAIN_START }),
    )
  const row = (run_id: string) => suite.db.system('run_nodes').where({ run_id, node_id: 'ask' }).first()
  /** The number of the run's last attempt among all of the node: each that begins is numbered within the rate. */
  const turnsOf = async (run_id: string): Promise<number> => {
    const { rows } = await suite.db.system.raw('select max(turn) as last from node_turns where run_id = ?', [
      run_id,
    ])
    return Number(rows[0].last)
  }

  it('holds over all runs of the workflow and the items of their loops, and loses none', async () => {
    const workflow = await saveWorkflow(suite.db, suite.organizationId, {
      inputs: { items: { type: 'array' } },
      nodes: [each({ concurrency: 10 }), limited({ limit: 3, per: '1s' })],
      edges: [{ from: 'each', handle: 'item', to: 'ask' }],
    })
    const items = [1, 2, 3, 4]
    const ids = [await start(workflow, { items }), await start(workflow, { items })]
    for (const id of ids) equal((await untilRun(suite.db, id)).status, 'completed')
    equal(calls.length, 8)
    const attempts = await suite.db.system('run_nodes').whereIn('run_id', ids).pluck('attempt')
    ok(attempts.every((attempt) => attempt === 1))
  })

  it('is shown by the node that waits, whose run is not active and can be cancelled', async () => {
    const workflow = await saveWorkflow(suite.db, suite.organizationId, {
      nodes: [limited({ limit: 1, per: '1h' })],
    })
    equal((await untilRun(suite.db, await start(workflow))).status, 'completed')
    const id = await start(workflow)
    await until(async () => (await row(id))?.error)
    const [node] = await suite.db.tenant(suite.organizationId, testActor, (tx) => getRunNodes(tx, id))
    deepEqual([node?.waiting_for, node?.attempt, node?.attempts], ['rate', 1, []])
    match(node!.error!.message, /`rate` lets 1 begin within 3600 s, and 0 calls are before it/)
    const minutes = (node!.next_attempt_at!.getTime() - Date.now()) / 60_000
    ok(minutes > 58 && minutes <= 60, String(minutes))
    await until(async () => (await suite.db.system('runs').where({ id }).first()).sleeps_until)
    await suite.db.tenant(suite.organizationId, testActor, (tx) => cancelRun(tx, id))
    equal((await untilRun(suite.db, id)).status, 'cancelled')
    equal(calls.length, 1)
  })

  it('counts each attempt of its retries', async () => {
    broken = true
    const retry = { max_attempts: 3, initial_interval: '1ms' }
    const id = await queueRun(suite.db, suite.organizationId, {
      nodes: [limited({ limit: 1, per: '1s' }, { retry })],
    })
    equal((await untilRun(suite.db, id)).status, 'failed')
    equal(calls.length, 3)
    equal(await turnsOf(id), 3)
  })

  it('gives the turn of a cancelled run to the next one, in their order', async () => {
    // Long enough that all wait before the second has its turn, also on a busy machine.
    const workflow = await saveWorkflow(suite.db, suite.organizationId, {
      nodes: [limited({ limit: 1, per: '6s' })],
    })
    const ids: string[] = []
    for (let n = 0; n < 4; n++) {
      ids.push(await start(workflow))
      await until(async () => (await row(ids[n]!)) && (n === 0 || (await row(ids[n]!)).error))
    }
    await suite.db.tenant(suite.organizationId, testActor, (tx) => cancelRun(tx, ids[1]!))
    for (const id of [ids[2]!, ids[3]!]) equal((await untilRun(suite.db, id)).status, 'completed')
    deepEqual(calls, [ids[0], ids[2], ids[3]])
    equal(await turnsOf(ids[3]!), 3)
  })
})
