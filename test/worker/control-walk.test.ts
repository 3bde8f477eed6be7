import assert from 'node:assert/strict'
import { setTimeout as sleep } from 'node:timers/promises'
import type { HttpRequest } from '../../workflows/effects/http.ts'
import { liftLimits } from '../bench/setup.ts'
import type { Answer } from '../support/answer.ts'
import { startApi, type TestApi } from '../support/api.ts'
import { createTestDatabase, type TestDatabase } from '../support/database.ts'
import { httpResponse } from '../support/http-response.ts'
import { random } from '../support/random.ts'
import { until } from '../support/until.ts'
import { startWorker, type TestWorker } from '../support/worker.ts'

const RUNS = 24
/** Two clients control each run. */
const CLIENTS = 2
const STEPS = 6
const ITEMS = [1, 2, 3, 4]
const ONCE = ['charge', 'refund', 'on_cancel', 'finally', ...ITEMS.map((item) => `item ${item}`)]
const REQUESTS = ['pause', 'resume', 'resume', 'signal', 'migrate', 'wait', 'wait', 'wait']
/** The last requests of the clients. Terminating is the rarest: it leaves nothing to see. */
const LAST = ['cancel', 'cancel', 'cancel', 'terminate', 'pause', 'resume', 'wait', 'wait']

interface Controlled {
  id: string
  /** What was requested, and the answers. */
  log: string[]
  terminated: boolean
  cancelled: boolean
}

interface Made {
  run: string
  what: string
  key: string
}

/**
 * Requests on runs in an order that nobody has thought of, by several clients at once. What was accepted holds in the
 * end. Repeat a failure by its seed: `CONTROL_SEED=7`.
 */
describe('runs that are paused, resumed, signalled, migrated, cancelled and terminated in any order', () => {
  const seed = Number(process.env.CONTROL_SEED ?? Math.floor(Math.random() * 1_000_000))
  const { next, pick } = random(seed)
  const made: Made[] = []
  let db: TestDatabase
  let api: TestApi
  let worker: TestWorker
  let workflow: string

  /** Answers after up to a second, as other services do, so that requests meet calls in progress. */
  async function answer({ body, headers = {} }: HttpRequest) {
    const { run, what } = body as { run: string; what: string }
    made.push({ run, what, key: headers['Idempotency-Key'] ?? headers['idempotency-key'] ?? 'none' })
    await sleep(next() * 1_000)
    return httpResponse()
  }

  const call = (what: string) =>
    `{type: api_request, config: {method: POST, url: "https://other.example/", body: {run: "{{ run.id }}", what: "${what}"}}`
  const specOf = (more = '') => `name: Walk
settings:
  on_cancel: ${call('on_cancel')}}
  finally: ${call('finally')}}
nodes:
  charge: ${call('charge')}, undo: {id: refund, ${call('refund').slice(1)}}}
  each: {type: for_each, config: {items: [${ITEMS}], concurrency: 2}, next: {item: one, done: pause}}
  one: ${call('item {{ item }}')}}
  pause: {type: delay, config: {for: 1s}}
  go: {type: wait_for_signal, config: {name: go}, next: {received: last}}
  last: {type: set_fields, config: {fields: {a: 1}}}
${more}`

  before(async () => {
    db = await createTestDatabase()
    api = await startApi(db)
    worker = await startWorker(db, { secretsKey: api.secretsKey, http: answer })
    await liftLimits(db)
    workflow = (await api.request('POST', '/v1/workflows', { body: { spec: specOf() } })).body.workflow_id
    const more = '  more: {type: set_fields, config: {fields: {b: 1}}}\n'
    const saved = await api.request('PATCH', `/v1/workflows/${workflow}`, { body: { spec: specOf(more) } })
    assert.equal(saved.status, 200, JSON.stringify(saved.body))
  })
  after(async () => {
    await worker?.stop()
    await api?.close()
    await db?.drop()
  })

  const post = (path: string, body?: object) =>
    api.request('POST', `/v1/runs/${path}`, body === undefined ? {} : { body })

  async function request(run: Controlled, requests: string[]): Promise<void> {
    const what = pick(requests)
    if (what === 'wait') return sleep(next() * 800)
    const given = { signal: { name: 'go' }, migrate: { version: pick([1, 2]) } }[what]
    const { status, body }: Answer = await post(`${run.id}/${what}`, given)
    run.log.push(`${what}: ${status} ${body.status ?? body.error?.type}`)
    assert.ok([200, 201, 409].includes(status), `${what}: ${status} ${JSON.stringify(body)}`)
    if (status !== 200) return
    if (what === 'terminate' && body.status === 'terminated') run.terminated = true
    // A run whose outcome was decided before ends with that.
    if (what === 'cancel' && ['queued', 'running', 'cancelled'].includes(body.status) && !body.ending)
      run.cancelled = true
  }

  async function end(id: string) {
    return until(async () => {
      const { body } = await api.request('GET', `/v1/runs/${id}`)
      if (body.ended_at) return body
      await post(
        `${id}/${body.status === 'paused' ? 'resume' : 'signal'}`,
        body.status === 'paused' ? undefined : { name: 'go' },
      )
      await sleep(100)
    })
  }

  it('end as the last request that was accepted says, with each call and its undo made as one', async () => {
    const runs = await Promise.all(
      Array.from({ length: RUNS }, async (): Promise<Controlled> => {
        const body = { confirm: true, version: pick([1, 2]) }
        const { body: started } = await api.request('POST', `/v1/workflows/${workflow}/run`, { body })
        return { id: started.run_id, log: [], terminated: false, cancelled: false }
      }),
    )
    const clients = runs.flatMap((run) => Array.from({ length: CLIENTS }, () => run))
    await Promise.all(
      clients.map(async (run) => {
        for (let step = 0; step < STEPS; step++) await request(run, REQUESTS)
        await request(run, LAST)
      }),
    )
    const ended = await Promise.all(runs.map(async (run) => ({ ...run, end: await end(run.id) })))
    for (const { id, log, terminated, cancelled, end } of ended) {
      const message = `seed ${seed}: ${end.status} after ${log.join(', ')}`
      const keysOf = (what: string) =>
        made.filter((one) => one.run === id && one.what === what).map(({ key }) => key)
      const isMade = (...names: string[]) => names.map((name) => keysOf(name).length > 0)
      if (terminated) assert.equal(end.status, 'terminated', message)
      else if (cancelled) assert.equal(end.status, 'cancelled', message)
      else assert.ok(['completed', 'cancelled', 'terminated'].includes(end.status), message)
      for (const what of ONCE)
        assert.ok(new Set(keysOf(what)).size <= 1, `${what} has several keys: ${message}`)
      if (end.status === 'completed') {
        assert.ok(isMade('charge', 'finally', ...ITEMS.map((item) => `item ${item}`)).every(Boolean), message)
        assert.deepEqual(isMade('refund', 'on_cancel'), [false, false], message)
      }
      if (end.status === 'cancelled' && keysOf('charge').length > 0)
        assert.deepEqual(isMade('refund', 'on_cancel', 'finally'), [true, true, true], message)
      const open = await db
        .system('run_nodes')
        .where({ run_id: id })
        .whereIn('status', ['running', 'waiting'])
      assert.deepEqual(
        open.map(({ node_id }) => node_id),
        [],
        message,
      )
      const { body } = await api.request('GET', `/v1/runs/${id}`)
      assert.equal(body.status, end.status, message)
    }
  })
})
