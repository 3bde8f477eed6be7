import assert from 'node:assert/strict'
import { randomUUID } from 'node:crypto'
import { takesLock } from '../../../db/queue/queue-lock.ts'
import { claimRuns, releaseRuns, repairClaims } from '../../../db/runs/claims.ts'
import { cancelRun } from '../../../db/runs/moves/ends.ts'
import { markRunsStarted, resumeRuns } from '../../../db/runs/moves/starts.ts'
import { lookUpSoon } from '../../../db/runs/queue.ts'
import { endRelay, type RelayCapacity, seeRelay } from '../../../db/runs/relays.ts'
import { CHAIN_START, createRun, createRuns } from '../../../db/runs/runs.ts'
import {
  createOrganization,
  createTestDatabase,
  type TestDatabase,
  testActor,
} from '../../support/database.ts'
import { createEmptyWorkflow } from '../../support/workflows.ts'

describe('claims of runs', () => {
  let db: TestDatabase
  before(async () => {
    db = await createTestDatabase()
  })
  after(() => db?.drop())
  beforeEach(async () => {
    await db.system('runs').delete()
    await db.system('relays').delete()
  })

  const relayOf = (values: Partial<RelayCapacity> = {}): RelayCapacity => ({
    id: randomUUID(),
    starts: 100,
    active: 100,
    ...values,
  })

  /** A relay that has reported itself. */
  async function startRelay(values?: Partial<RelayCapacity>): Promise<RelayCapacity> {
    const relay = relayOf(values)
    await seeRelay(db.system, relay)
    return relay
  }

  /** Queues runs of a new organization. */
  async function queue(count: number, values: { limits?: object } = {}): Promise<string> {
    const organizationId = await createOrganization(db, values)
    await db.tenant(organizationId, testActor, async (tx) => {
      const { id } = await createEmptyWorkflow(tx)
      const workflow = { id, version: 1, name: 'Test' }
      for (let i = 0; i < count; i++)
        await createRun(tx, { workflow, trigger: { type: 'api' }, inputs: {}, chain: CHAIN_START })
    })
    return organizationId
  }

  const claim = (relay: RelayCapacity, limit = 100) => claimRuns(db.system, relay, limit)
  const start = (runs: { organization_id: string; id: string; resumes: number }[]) =>
    markRunsStarted(db.system, runs)
  const claimsOf = (id: string) => db.system('run_claims').where({ run_id: id })
  const age = (table: string, column: string, seconds: number) =>
    db.system(table).update({ [column]: db.system.raw(`${column} - make_interval(secs => ?)`, [seconds]) })

  it('take a run that a client may wait for before older ones that triggers started', async () => {
    const organizationId = await createOrganization(db)
    const [asked, flooded] = await db.tenant(organizationId, testActor, async (tx) => {
      const { id } = await createEmptyWorkflow(tx)
      const create = (workflowId: string, type: 'api' | 'event') =>
        createRun(tx, {
          workflow: { id: workflowId, version: 1, name: 'Test' },
          trigger: { type },
          inputs: {},
          chain: CHAIN_START,
        })
      for (let i = 0; i < 200; i++) await create(id, 'event')
      const other = await createEmptyWorkflow(tx)
      return [[await create(id, 'api'), await create(other.id, 'api')], id]
    })
    const relay = await startRelay()
    const claimed = await claim(relay, 2)
    assert.deepEqual(claimed.map((run) => run.id).sort(), asked.sort())
    const [next] = await claim(relay, 1)
    assert.deepEqual([next?.workflow_id, next?.trigger_type], [flooded, 'event'])
  })

  it('are made by one relay at a time', async () => {
    await queue(40)
    const relays = await Promise.all(Array.from({ length: 4 }, () => startRelay()))
    const claimed: string[] = []
    while (claimed.length < 40) {
      const all = await Promise.all(relays.map((relay) => claim(relay, 3)))
      claimed.push(...all.flat().map(({ id }) => id))
    }
    assert.equal(new Set(claimed).size, 40)
    assert.equal(claimed.length, 40)
  })

  it('are none while another relay holds the lock', async () => {
    await queue(1)
    const relay = await startRelay()
    const other = await db.system.transaction()
    await other.raw(`select ${takesLock('runs')}`)
    assert.deepEqual(await claim(relay), [])
    await other.rollback()
    assert.equal((await claim(relay)).length, 1)
  })

  it('belong to their relay as long as it lives', async () => {
    await queue(3)
    const first = await startRelay()
    const second = await startRelay()
    assert.equal((await claim(first, 2)).length, 2)
    assert.equal((await claim(second)).length, 1)
    assert.deepEqual(await claim(second), [])
    assert.deepEqual(await claim(first), [])
    await age('relays', 'seen_at', 4)
    assert.deepEqual(await claim(second), [])
    await age('relays', 'seen_at', 2)
    await seeRelay(db.system, second)
    assert.equal((await claim(second)).length, 2)
  })

  it('of a relay that leaves are free at once', async () => {
    await queue(1)
    const first = await startRelay()
    const second = await startRelay()
    assert.equal((await claim(first)).length, 1)
    await endRelay(db.system, first)
    assert.equal((await claim(second)).length, 1)
  })

  it('whose start failed are free after a backoff, which grows', async () => {
    await queue(1)
    const relay = await startRelay()
    const waits: number[] = []
    for (let attempt = 0; attempt < 2; attempt++) {
      const [run] = await claim(relay)
      await releaseRuns(db.system, relay, [run!])
      const [{ wait }] = await claimsOf(run!.id).select(
        db.system.raw('extract(epoch from retry_at - now())::float8 as wait'),
      )
      waits.push(wait)
      assert.deepEqual(await claim(relay), [])
      await db.system('run_claims').update({ retry_at: new Date(Date.now() - 1) })
    }
    assert.ok(waits[0]! > 0.2 && waits[0]! < 1 && waits[1]! > waits[0]! && waits[1]! < 2, `${waits}`)
    assert.equal((await claim(relay)).length, 1)
  })

  it('end when the start is recorded, by the relay or by the first segment', async () => {
    await queue(2)
    const relay = await startRelay()
    const [one, two] = await claim(relay)
    assert.equal(await start([one!]), 1)
    assert.deepEqual(await claimsOf(one!.id), [])
    await db.system('runs').where({ id: two!.id }).update({ status: 'completed' })
    assert.equal(await start([two!]), 0)
    assert.deepEqual(await claimsOf(two!.id), [])
  })

  it('that their relay does not know are repaired', async () => {
    await queue(3)
    const relay = await startRelay()
    const [known, lost, started] = await claim(relay)
    await db.system('runs').where({ id: started!.id }).update({ status: 'running' })
    await repairClaims(db.system, relay, [known!.id])
    assert.equal((await db.system('run_claims')).length, 3, 'a claim may be on its way to the relay')
    await age('run_claims', 'claimed_at', 6)
    await repairClaims(db.system, relay, [known!.id])
    assert.deepEqual(await claimsOf(started!.id), [])
    assert.deepEqual(
      (await claim(relay)).map(({ id }) => id),
      [lost!.id],
    )
  })

  it('of a dead relay on runs that have started are deleted by another', async () => {
    await queue(1)
    const [run] = await claim(await startRelay())
    await db.system('runs').where({ id: run!.id }).update({ status: 'running' })
    await age('relays', 'seen_at', 6)
    await age('run_claims', 'claimed_at', 6)
    await repairClaims(db.system, await startRelay(), [])
    assert.deepEqual(await claimsOf(run!.id), [])
  })

  it('leave a cancellation to Temporal, also those of dead relays; without one the run ends at once', async () => {
    const organizationId = await queue(2)
    const [run] = await claim(await startRelay(), 1)
    await db.system('relays').delete()
    const statuses = []
    for (const { id } of await db.system('runs').orderBy('id'))
      statuses.push([id === run!.id, await db.tenant(organizationId, testActor, (tx) => cancelRun(tx, id))])
    assert.deepEqual(statuses, [
      [true, 'queued'],
      [false, 'cancelled'],
    ])
  })

  it('go to the organization with the fewest runs in progress first', async () => {
    const many = await queue(20)
    const relay = await startRelay({ starts: 4 })
    const first = await claim(relay)
    assert.deepEqual(
      first.map(({ organization_id }) => organization_id),
      Array(4).fill(many),
    )
    await start(first)
    const few = await queue(2)
    const fewer = await queue(1)
    const next = await claim(relay)
    assert.deepEqual(
      next.map(({ organization_id }) => organization_id).sort(),
      [few, few, fewer, many].sort(),
    )
  })

  it('are limited by the first segments of the relay, but for one run of each organization', async () => {
    const many = await queue(5)
    const relay = await startRelay({ starts: 2 })
    const first = await claim(relay)
    assert.equal(first.length, 2)
    const other = await queue(2)
    assert.deepEqual(
      (await claim(relay)).map(({ organization_id }) => organization_id),
      [other],
    )
    assert.deepEqual(await claim(relay), [])
    await start(first)
    const next = await claim(relay)
    assert.deepEqual(next.map(({ organization_id }) => organization_id).sort(), [many, other].sort())
  })

  it('are limited by the active runs of all live workers, but for ten runs of each organization', async () => {
    const many = await queue(40)
    const one = await startRelay({ active: 15 })
    const two = await startRelay({ active: 10 })
    const first = await claim(one)
    assert.equal(first.length, 25)
    await start(first)
    assert.deepEqual(await claim(two), [])
    const other = await queue(12)
    const reserved = await claim(two)
    assert.deepEqual(
      reserved.map(({ organization_id }) => organization_id),
      Array(10).fill(other),
    )
    // Sleeping runs use nothing.
    await db
      .system('runs')
      .whereIn(
        'id',
        first.map(({ id }) => id),
      )
      .update({ sleeps_until: 'infinity' })
    const organizations = (await claim(two)).map(({ organization_id }) => organization_id)
    assert.equal(organizations.length, 15)
    assert.ok(organizations.includes(many) && organizations.filter((id) => id === other).length === 2)
  })

  it('count runs whose time has come as active: Temporal has work for them', async () => {
    await queue(30)
    const relay = await startRelay({ active: 12 })
    await start(await claim(relay))
    assert.deepEqual(await claim(relay), [])
    const wake = (at: string) => db.system('runs').where({ status: 'running' }).update({ sleeps_until: at })
    await wake('2020-01-01')
    assert.deepEqual(await queue(30).then(() => claim(relay).then((runs) => runs.length)), 10)
    assert.ok((await seeRelay(db.system, relay)) >= 1)
    await wake('infinity')
    assert.ok((await seeRelay(db.system, relay)) < 1)
  })

  it('never exceed the limit of the organization', async () => {
    await queue(5, { limits: { max_running: 2 } })
    const relay = await startRelay()
    const first = await claim(relay)
    assert.equal(first.length, 2)
    await start(first.slice(0, 1))
    assert.deepEqual(await claim(relay), [])
  })

  it('start runs that Temporal has lost after all others, those first that wake first', async () => {
    const organizationId = await queue(5)
    const ids: string[] = await db.system('runs').orderBy('id').pluck('id')
    const [year, days, hours, soon, cancelled] = ids as [string, string, string, string, string]
    const wake = (id: string, after: string) =>
      db
        .system('runs')
        .where({ id })
        .update({
          status: 'running',
          temporal_run_id: 'lost',
          sleeps_until: db.system.raw('now() + cast(? as interval)', [after]),
        })
    await wake(year, '1 year')
    await wake(days, '3 days')
    await wake(hours, '5 hours')
    await wake(soon, '10 minutes')
    // Its cancellation was requested before anybody knew that its workflow is lost.
    await wake(cancelled, '2 years')
    await db.tenant(organizationId, testActor, (tx) => cancelRun(tx, cancelled))
    const lost = ids.map((id) => ({ organization_id: organizationId, id, temporal_run_id: 'lost' }))
    assert.equal((await resumeRuns(db.system, lost)).size, 5)
    const relay = await startRelay()
    const order = async () => {
      const claimed: string[] = []
      for (let next = await claim(relay, 1); next[0]; next = await claim(relay, 1)) claimed.push(next[0].id)
      await db.system('run_claims').delete()
      return claimed
    }
    assert.deepEqual(await order(), [cancelled, soon, hours, days, year])

    // What a person asks for overtakes; so does a new run.
    await db.tenant(organizationId, testActor, (tx) => cancelRun(tx, year))
    await lookUpSoon(db.system, { organization_id: organizationId, id: days })
    const [added] = await db.tenant(organizationId, testActor, async (tx) => {
      const { workflow_id } = await tx.trx('runs').first('workflow_id')
      const workflow = { id: workflow_id, version: 1, name: 'Test' }
      return createRuns(tx, [{ workflow, trigger: { type: 'api' }, inputs: {}, chain: CHAIN_START }])
    })
    const claimed = await order()
    assert.deepEqual(claimed.slice(0, 3).sort(), [year, days, cancelled].sort())
    assert.deepEqual(claimed.slice(3), [added, soon, hours])
  })
})
