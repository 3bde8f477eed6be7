import assert from 'node:assert/strict'
import { connect, type Database } from '../../db/postgres/connect.ts'
import { getRunNodes } from '../../db/runs/views.ts'
import type { NodeSpec } from '../../workflows/language/definition.ts'
import { NodeError } from '../../workflows/language/node-error.ts'
import { createOrganization, createTestDatabase, type TestDatabase, testActor } from '../support/database.ts'
import { httpResponse } from '../support/http-response.ts'
import { set } from '../support/nodes.ts'
import { createOutage, type Outage } from '../support/outage.ts'
import { until } from '../support/until.ts'
import { historyOf, queueRun, startWorker, type TestWorker, untilRun } from '../support/worker.ts'

const ok = httpResponse()
const UNAVAILABLE = '"message":"The database is unavailable."'

describe('runs while something is broken', () => {
  let db: TestDatabase
  let throughOutage: Database
  let outage: Outage
  let worker: TestWorker
  let organizationId: string
  let answer: (attempt: number) => Promise<typeof ok>
  let calls = 0

  before(async () => {
    db = await createTestDatabase()
    organizationId = await createOrganization(db)
    outage = await createOutage(db.url)
    throughOutage = connect({ url: outage.url, poolSize: 8 })
    worker = await startWorker(throughOutage, {
      http: async () => {
        calls += 1
        return answer(calls)
      },
    })
  })
  after(async () => {
    await outage?.end()
    await worker?.stop()
    await throughOutage?.close()
    await outage?.begin()
    await db?.drop()
  })
  beforeEach(() => {
    calls = 0
    answer = async () => ok
  })

  it('fail with a reduced record after five attempts that no retry can help', async () => {
    const other = await createOrganization(db, { limits: { max_running: 0 } })
    const id = await queueRun(db, other, { nodes: [set('a')] })
    await db
      .system('workflow_versions')
      .where({ organization_id: other })
      .update({ program: '{"engine": 1}' })
    await db.system('organizations').where({ id: other }).update({ limits: '{}' })
    const reason = await until(async () => (await db.system('runs').where({ id }).first()).stuck_reason)
    assert.match(reason, /^An unexpected error occurred \(TypeError\)/)
    const run = await untilRun(db, id)
    const error = { code: 'internal_error', message: 'The run failed unexpectedly.' }
    assert.deepEqual([run.status, run.error], ['failed', error])
    const row = await db.system('runs').where({ id }).first('stuck_reason', 'failures')
    assert.deepEqual(row, { stuck_reason: null, failures: 0 })
    const [event] = await db.system('events').where({ subject_id: id })
    assert.deepEqual([event.name, event.data.error], ['workflow.failed', error])
  })

  it('take the timeout of a statement as the error of the node', async () => {
    await db.asOwner(async (owner) => {
      await owner.query(`create function time_out() returns trigger language plpgsql as
        $$ begin raise exception 'canceling statement' using errcode = '57014'; end $$`)
      await owner.query(
        'create trigger slow before insert on contacts for each row execute function time_out()',
      )
    })
    try {
      const config = { operation: 'create', entity: 'contacts', fields: { email: 'slow@example.com' } }
      const id = await queueRun(db, organizationId, {
        nodes: [{ id: 'save', type: 'crm_manager', config }, set('why', '{{ nodes.save.error.code }}')],
        edges: [{ from: 'save', handle: 'error', to: 'why' }],
        outputs: { why: '{{ nodes.why.output.value }}' },
      })
      const run = await untilRun(db, id)
      assert.deepEqual([run.status, run.outputs], ['completed', { why: 'timeout' }])
    } finally {
      await db.asOwner((owner) => owner.query('drop trigger slow on contacts'))
    }
  })

  it('wait for a newer worker, and say so, if they need one', async () => {
    const paused = { nodes: [{ id: 'pause', type: 'delay', config: { for: '300ms' } }] }
    const other = await createOrganization(db, { limits: { max_running: 0 } })
    const queued = await queueRun(db, other, paused)
    await db.system('runs').where({ id: queued }).update({ engine: 1_000 })
    await db.system('organizations').where({ id: other }).update({ limits: '{}' })
    const id = await queueRun(db, organizationId, paused)
    await untilRun(db, id, ['running'])
    await db.system('runs').where({ id }).update({ engine: 1_000 })
    const reason = async () => (await db.system('runs').where({ id }).first('stuck_reason')).stuck_reason
    assert.equal(await until(reason), 'The run needs a newer version of the worker.')
    const row = await db.system('runs').where({ id: queued }).first('status')
    assert.deepEqual(row, { status: 'queued' })
    assert.deepEqual(await db.system('run_claims').where({ run_id: queued }), [])
    await db.system('runs').whereIn('id', [id, queued]).update({ engine: 1 })
    for (const one of [id, queued]) assert.equal((await untilRun(db, one)).status, 'completed')
  })

  const call = (retry?: NodeSpec['retry']): NodeSpec => ({
    id: 'call',
    type: 'api_request',
    config: { method: 'POST', url: 'https://example.com/' },
    ...(retry && { retry }),
  })

  it('make one call although the database is away before and after it', async () => {
    answer = async () => {
      await outage.begin()
      setTimeout(() => outage.end(), 1_000)
      return ok
    }
    const id = await queueRun(db, organizationId, {
      nodes: [{ id: 'pause', type: 'delay', config: { for: '300ms' } }, call({ max_attempts: 1 })],
      edges: [{ from: 'pause', handle: 'success', to: 'call' }],
    })
    const run = await untilRun(db, id)
    assert.deepEqual([run.status, run.error, calls], ['completed', null, 1])
    const row = await db.system('run_nodes').where({ run_id: id, node_id: 'call' }).first()
    assert.equal(row.attempt, 1)
  })

  it('read for a language model once the database is back, in the same attempt', async () => {
    const asks = { id: 'c1', function: { name: 'search_records', arguments: '{"entity":"contacts"}' } }
    const says = (message: object) => httpResponse({ body: { choices: [{ message }] } })
    answer = async (attempt) => {
      if (attempt > 1) return says({ content: 'There is nobody.' })
      await outage.begin()
      setTimeout(() => outage.end(), 3_000)
      return says({ content: null, tool_calls: [asks] })
    }
    const id = await queueRun(db, organizationId, {
      nodes: [
        {
          id: 'ask',
          type: 'ai_prompt',
          config: {
            model: 'local',
            prompt: 'Who is there?',
            tools: [{ tool: 'search_records', entities: ['contacts'] }],
          },
          retry: { max_attempts: 1 },
          // Less than the outage: the wait for the database does not count.
          timeout: '2s',
        },
      ],
      outputs: { text: '{{ nodes.ask.output.text }}', calls: '{{ nodes.ask.output.tool_calls }}' },
    })
    const run = await untilRun(db, id)
    assert.deepEqual([run.status, run.error, calls], ['completed', null, 2])
    const made = { tool: 'search_records', arguments: { entity: 'contacts' }, error: null }
    assert.deepEqual(run.outputs, { text: 'There is nobody.', calls: [made] })
  })

  it('count only the attempts of a call that failed', async () => {
    answer = async (attempt) => {
      if (attempt === 3) return ok
      if (attempt === 2) return httpResponse({ status: 503, body: 'later' })
      throw new NodeError('connection_refused', 'Nobody there.', { retryable: true })
    }
    const retry = { max_attempts: 3, initial_interval: '10ms' }
    const id = await queueRun(db, organizationId, { nodes: [call(retry)] })
    assert.equal((await untilRun(db, id)).status, 'completed')
    const [node] = await db.tenant(organizationId, testActor, (tx) => getRunNodes(tx, id))
    assert.deepEqual([node!.attempt, calls], [3, 3])
    assert.deepEqual(
      node!.attempts.map((one) => [one.number, one.error?.code, one.response_status, one.in_progress]),
      [
        [1, 'connection_refused', null, false],
        [2, 'unexpected_status', 503, false],
        [3, undefined, 200, false],
      ],
    )
    const [first, second, third] = node!.attempts
    assert.deepEqual(second!.error!.details, { status: 503, body: 'later' })
    assert.ok(first!.next_attempt_at! <= second!.started_at, JSON.stringify(node!.attempts))
    assert.equal(third!.next_attempt_at, null)
    assert.ok(
      node!.attempts.every((one) => one.duration_ms! >= 0 && one.ended_at! <= node!.ended_at!.toISOString()),
    )
  })

  it('ignore an attempt that comes back after another has taken over', async () => {
    let release = () => {}
    const held = new Promise<void>((resolve) => {
      release = resolve
    })
    answer = async (attempt) => {
      if (attempt === 1) await held
      return httpResponse({ body: `call ${attempt}` })
    }
    const id = await queueRun(db, organizationId, {
      nodes: [call()],
      outputs: { body: '{{ nodes.call.output.body }}' },
    })
    const key = { run_id: id, node_id: 'call' }
    await until(() => calls > 0)
    const taken = '019a0000-0000-7000-8000-000000000009'
    await db.system('run_nodes').where(key).update({ attempt_token: taken })
    release()
    const run = await untilRun(db, id)
    assert.deepEqual([run.outputs, calls], [{ body: 'call 2' }, 2])
  })

  it('wait for a database that is away, and say so in Temporal without an address', async () => {
    const id = await queueRun(db, organizationId, {
      nodes: [{ id: 'pause', type: 'delay', config: { for: '500ms' } }, set('after')],
      edges: [{ from: 'pause', handle: 'success', to: 'after' }],
    })
    await untilRun(db, id, ['running'])
    const history = async () => JSON.stringify(await historyOf(worker.client, `run:${id}`))
    await outage.begin()
    await until(async () => (await history()).includes(UNAVAILABLE), history)
    await outage.end()
    assert.equal((await untilRun(db, id)).status, 'completed')
    assert.doesNotMatch(await history(), /ECONNREFUSED|127\.0\.0\.1|\.ts:\d/)
  })
})
