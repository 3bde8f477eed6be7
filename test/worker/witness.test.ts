import assert from 'node:assert/strict'
import { randomUUID } from 'node:crypto'
import { readDatabaseId } from '../../db/postgres/database-id.ts'
import type { Tenant } from '../../db/postgres/tenancy.ts'
import { readWitness } from '../../db/queue/witness.ts'
import { sendSignal } from '../../db/runs/signals.ts'
import { Sweep } from '../../worker/sweep.ts'
import { requireOwnQueue } from '../../worker/witness.ts'
import type { SegmentInput } from '../../workflows/bundle/protocol.ts'
import type { NodeSpec } from '../../workflows/language/definition.ts'
import { createOrganization, createTestDatabase, type TestDatabase, testActor } from '../support/database.ts'
import { httpResponse } from '../support/http-response.ts'
import { call } from '../support/nodes.ts'
import { type OwnTemporal, startOwnTemporal } from '../support/own-temporal.ts'
import { until } from '../support/until.ts'
import { queueRun, startWorker, type TestWorker, testLog, untilRun } from '../support/worker.ts'

/** No run is idle for this long. */
const NEVER = '1 day'

describe('the witness in Temporal', () => {
  let temporal: OwnTemporal
  let db: TestDatabase
  let worker: TestWorker
  let organizationId: string
  let calls = 0
  let reachable = true
  const taskQueue = `test-${randomUUID()}`
  const start = (on = db, advance = (_input: unknown) => {}) =>
    startWorker(
      on,
      {
        address: temporal.address,
        http: async () => {
          calls += 1
          return httpResponse({ status: reachable ? 200 : 503 })
        },
        advance: (real) => (input) => {
          advance(input)
          return real(input)
        },
      },
      taskQueue,
    )

  before(async () => {
    temporal = await startOwnTemporal()
    db = await createTestDatabase()
    organizationId = await createOrganization(db)
    worker = await start()
  })
  after(async () => {
    await worker?.stop()
    await db?.drop()
    await temporal?.stop()
  })

  const tenant = <T>(work: (tx: Tenant) => Promise<T>) => db.tenant(organizationId, testActor, work)
  const wait: NodeSpec = { id: 'wait', type: 'wait_for_signal', config: { name: 'go' } }
  const row = (id: string) => db.system('runs').where({ id }).first()
  const state = () => readWitness(db.system, taskQueue)
  const witness = (on = db, adopt = false) =>
    requireOwnQueue({ system: on.system, client: worker.client, taskQueue, log: testLog }, adopt)
  const sweeper = () => new Sweep({ db, client: worker.client, taskQueue, log: testLog })
  const sweep = () => sweeper().once(NEVER)
  const memo = async () => (await worker.client.workflow.getHandle(`witness:${taskQueue}`).describe()).memo
  /** A run that sleeps, and that the sweep has compared with Temporal just now. */
  async function sleeper(): Promise<string> {
    const id = await queueRun(db, organizationId, { nodes: [wait] })
    await until(async () => (await row(id)).sleeps_until !== null, 'sleeps')
    await db.system('runs').where({ id }).update({ checked: true, updated_at: db.system.fn.now() })
    return id
  }
  const lostAt = async () => (await db.system('sweep_state').first('lost_at')).lost_at
  const go = (id: string) => tenant((tx) => sendSignal(tx, id, { name: 'go', payload: null }))

  it('remembers the database of the task queue, and a number that grows', async () => {
    assert.equal(await witness(), false)
    assert.equal((await memo())?.database, await readDatabaseId(db.system))
    const seen = []
    for (let passes = 0; passes < 3; passes++) {
      await sweep()
      seen.push((await state()).seen)
    }
    const { sequence } = await state()
    assert.equal(seen.at(-1), sequence)
    assert.deepEqual(seen, [...seen].sort())
    assert.equal(new Set(seen).size, 3)
    assert.equal(await lostAt(), null)
  })

  it('shows that Temporal was restored to an earlier moment: all that sleeps is compared with it', async () => {
    const [told, quiet] = [await sleeper(), await sleeper()]
    temporal.copy()
    // It is told of the answer, which Temporal forgets.
    const ago = db.system.raw("now() - interval '2 minutes'")
    await db
      .system('run_waits')
      .where({ run_id: told })
      .update({ answer: '{"payload": 1}', answered_by: '{}', answered_at: ago, notified_at: ago })
    await sweep()
    assert.equal((await row(told)).status, 'running')
    await worker.stop()
    await temporal.restore()
    worker = await start()
    const elected = sweeper()
    await elected.glance()
    assert.notEqual(await lostAt(), null)
    await elected.once(NEVER)
    assert.equal((await untilRun(db, told)).status, 'completed')
    const at = await lostAt()
    for (let passes = 0; passes < 2; passes++) await sweep()
    assert.deepEqual(await lostAt(), at)
    assert.ok((await row(quiet)).updated_at > at)
    await go(quiet)
    assert.equal((await untilRun(db, quiet)).status, 'completed')
  })

  it('shows that Temporal was emptied: open runs have a workflow again', async () => {
    const ids = await Promise.all([sleeper(), sleeper(), sleeper()])
    // As one that is in a call.
    await db.system('runs').where({ id: ids[0]! }).update({ sleeps_until: null })
    const before = await lostAt()
    await worker.stop()
    await temporal.restore()
    worker = await start()
    assert.equal(await witness(), true)
    assert.ok((await lostAt()) > before)
    await sweep()
    for (const id of ids)
      await until(async () => {
        const handle = worker.client.workflow.getHandle(`run:${id}`)
        return handle.describe().then(
          ({ status }) => status.name === 'RUNNING',
          () => false,
        )
      }, 'has a workflow')
    for (const id of ids) await go(id)
    for (const id of ids) assert.equal((await untilRun(db, id)).status, 'completed')
  })

  describe('with another database, such as a copy', () => {
    let other: TestDatabase
    before(async () => {
      other = await createTestDatabase()
    })
    after(() => other?.drop())

    it('refuses its workers with what to do', async () => {
      await assert.rejects(witness(other), {
        name: 'ConfigError',
        message:
          /belongs to another database .*TEMPORAL_NAMESPACE or TEMPORAL_TASK_QUEUE.*TEMPORAL_ADOPT=true$/,
      })
    })

    it('ends no run of the one that owns the task queue, even if its worker polls', async () => {
      const id = await sleeper()
      await worker.stop()
      const calls: unknown[] = []
      const stranger = await start(other, (input) => calls.push(input))
      try {
        const workflow = stranger.client.workflow.getHandle(`run:${id}`)
        await workflow.signal('refresh')
        await until(() => calls.length > 1, 'the stranger tries')
        assert.equal((await workflow.describe()).status.name, 'RUNNING')
      } finally {
        await stranger.stop()
        worker = await start()
      }
      await go(id)
      assert.equal((await untilRun(db, id)).status, 'completed')
    })

    it('makes no call of the one that owns the task queue, and fails no node of it', async () => {
      reachable = false
      const id = await queueRun(db, organizationId, {
        nodes: [call('call', { retry: { max_attempts: 2, initial_interval: '1s' } })],
      })
      await until(() => calls === 1, 'the first attempt')
      await worker.stop()
      let told = false
      const stranger = await start(other, (input) => {
        told ||= (input as SegmentInput).happened.some(({ type }) => type === 'failed')
      })
      await until(() => told, 'the call is refused').finally(() => stranger.stop())
      reachable = true
      worker = await start()
      const { status, error } = await untilRun(db, id)
      assert.deepEqual([status, error, calls], ['completed', null, 2])
    })

    it('refuses one that cannot be told from it as long as it works', async () => {
      await sweep()
      // As a copy of the files: it knows the numbers up to the moment of the copy.
      await db.system('witnesses').update({ sequence: db.system.raw('sequence - 1') })
      await assert.rejects(witness(), /another copy of this database works on the task queue/)
      await db.system('witnesses').update({ sequence: db.system.raw('sequence + 1') })
      assert.equal(await witness(), false)
    })

    it('ends no run of one that was away: it cannot be told whether this is a copy or was restored', async () => {
      const [known, unknown] = [await sleeper(), await sleeper()]
      await sweep()
      const { sequence } = await state()
      // As a copy of the files, whose original has told the witness more and is silent for two minutes.
      const testimony = {
        database: await readDatabaseId(db.system),
        sequence: sequence + 1,
        at: new Date(Date.now() - 120_000).toISOString(),
      }
      const handle = worker.client.workflow.getHandle(`witness:${taskQueue}`)
      await handle.signal('witnessed', testimony)
      await until(async () => (await memo())?.sequence === sequence + 1, 'it remembers')
      await worker.stop()
      let tries = 0
      worker = await start(db, (input) => {
        if ((input as { run_id: string }).run_id === unknown) tries += 1
      })
      assert.equal(await witness(), false)
      // The original has started it since.
      await db.system('runs').where({ id: unknown }).delete()
      const workflow = worker.client.workflow.getHandle(`run:${unknown}`)
      await workflow.signal('refresh')
      await until(() => tries > 1, 'it is tried again')
      assert.equal((await workflow.describe()).status.name, 'RUNNING')
      await go(known)
      assert.equal((await untilRun(db, known)).status, 'completed')
      // The operator says that it was restored.
      assert.equal(await witness(db, true), false)
      await until(async () => (await workflow.describe()).status.name !== 'RUNNING', 'it ends')
      const { cause } = await workflow.result().then(assert.fail, (error) => error)
      assert.match(cause.message, /does not know this run/)
    })

    it('becomes its own if it is adopted; the runs of the one before are its own then', async () => {
      await witness(other, true)
      assert.equal(await witness(other), false)
      const ids = await other.system('database_ids').pluck('id')
      assert.deepEqual(
        ids.sort(),
        [await readDatabaseId(db.system), await readDatabaseId(other.system)].sort(),
      )
      await assert.rejects(witness(), /belongs to another database/)
    })
  })
})
