import assert from 'node:assert/strict'
import { CallSlots } from '../../activities/slots/call-slots.ts'
import { getRun, getRunNodes } from '../../db/runs/views.ts'
import { Sweep } from '../../worker/sweep.ts'
import { OPEN_CALLS } from '../../workflows/shared/limits.ts'
import { createOrganization, testActor } from '../support/database.ts'
import { httpResponse } from '../support/http-response.ts'
import { call, each, edge } from '../support/nodes.ts'
import { until } from '../support/until.ts'
import { withWorker } from '../support/with-worker.ts'
import { queueRun, testLog, untilRun } from '../support/worker.ts'

const to = (id: string, host: string) =>
  call(id, { config: { method: 'GET', url: `https://${host}/{{ item }}` } })
const one = (host: string) => ({
  nodes: [call('call', { config: { method: 'GET', url: `https://${host}/` } })],
})

/** A service that does not answer until `answer` is called, beside services that answer at once. */
class Hanging {
  /** The calls in progress, and how often each URL was called. */
  open = 0
  readonly made = new Map<string, number>()
  private waiting: (() => void)[] = []
  private isAnswering = false

  readonly http = async ({ url }: { url: string }) => {
    this.made.set(url, (this.made.get(url) ?? 0) + 1)
    if (!new URL(url).hostname.startsWith('hangs') || this.isAnswering) return httpResponse()
    this.open += 1
    await new Promise<void>((resolve) => this.waiting.push(resolve))
    this.open -= 1
    return httpResponse()
  }

  answer(): void {
    this.isAnswering = true
    for (const resolve of this.waiting.splice(0)) resolve()
  }
}

const loop = {
  nodes: [each({ concurrency: 50 }), to('call', 'hangs.example')],
  edges: [edge('each', 'call', 'item')],
  inputs: { items: { type: 'array' as const } },
}
const items = (from: number, count: number) => ({ items: Array.from({ length: count }, (_, n) => from + n) })

/** More calls than the activities that a worker executes at once, before slots were shared. */
const RUNS = 5

describe('calls of one organization that hang', () => {
  const hanging = new Hanging()
  // Before the hook that stops the worker.
  after(() => hanging.answer())
  const suite = withWorker({ http: hanging.http as never })

  it('leave slots to another organization, and to other services of their own', async () => {
    const other = await createOrganization(suite.db)
    for (let n = 0; n < RUNS; n++)
      await queueRun(suite.db, suite.organizationId, loop, items(n * OPEN_CALLS, OPEN_CALLS))
    const wanted = async () => {
      const rows = suite.db.system('run_nodes').where({ status: 'running', node_type: 'api_request' })
      return Number((await rows.count())[0]!.count)
    }
    await until(async () => (await wanted()) === RUNS * OPEN_CALLS, 'the calls')
    const before = await until(async () => hanging.open >= 50 && hanging.open, 'calls that hang')
    const ids = [
      await queueRun(suite.db, other, one('answers.example')),
      await queueRun(suite.db, other, {
        nodes: [{ id: 'it', type: 'code', config: { code: 'return 1' } }],
      }),
      await queueRun(suite.db, suite.organizationId, one('answers.example')),
    ]
    for (const id of ids) assert.equal((await untilRun(suite.db, id)).status, 'completed')
    assert.ok(hanging.open >= before, 'no call has ended')
  })
})

describe('a call that hangs', () => {
  const hanging = new Hanging()
  after(() => hanging.answer())
  const suite = withWorker({ http: hanging.http as never })

  it('ends at the longest timeout of the plan, also in a workflow of a greater one', async () => {
    await suite.db.system('organizations').update({ limits: JSON.stringify({ max_call_seconds: 1 }) })
    const nodes = [{ ...one('hangs.example').nodes[0]!, timeout: '1d', retry: { max_attempts: 1 } }]
    const { error } = await untilRun(suite.db, await queueRun(suite.db, suite.organizationId, { nodes }))
    assert.deepEqual(
      [error?.code, error?.message],
      ['timeout', 'The node exceeded the longest timeout that the plan allows, 1000 ms.'],
    )
  })
})

describe('a call without a free slot', () => {
  const hanging = new Hanging()
  after(() => hanging.answer())
  // Two for a service that hangs, and two that wait in the worker.
  const slots = new CallSlots({ all: 6, firsts: 0, waiting: 4 })
  const suite = withWorker({ http: hanging.http as never, slots })
  const ask = async (id: string) =>
    suite.db.tenant(suite.organizationId, testActor, async (tx) => {
      const nodes = []
      for (let n = 0; n < 6; n++) nodes.push(...(await getRunNodes(tx, id, `each:${n}`)))
      return { run: await getRun(tx, id), nodes }
    })

  it('says that it waits, is not stuck, and is made once, as soon as one is free', async () => {
    const id = await queueRun(suite.db, suite.organizationId, loop, items(0, 6))
    const waiting = await until(async () => {
      const { run, nodes } = await ask(id)
      const waits = nodes.filter(({ waiting_for }) => waiting_for === 'slot')
      return hanging.open === 2 && waits.length === 4 && run.waiting_for === 'slot' ? run : undefined
    }, 'waits that are shown')
    assert.equal(waiting.status, 'running')
    const { client, taskQueue } = suite.worker
    await new Sweep({ db: suite.db, client, taskQueue, log: testLog }).once('0 seconds')
    assert.equal((await ask(id)).run.stuck_reason, null)
    hanging.answer()
    assert.equal((await untilRun(suite.db, id)).status, 'completed')
    assert.deepEqual([...hanging.made.values()], Array(6).fill(1))
    const { run, nodes } = await ask(id)
    assert.deepEqual([run.waiting_for, nodes.filter((node) => node.waiting_for)], [null, []])
    assert.equal(slots.use.held + slots.use.waiting, 0)
  })
})
