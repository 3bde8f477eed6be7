import { deepEqual, equal, ok } from 'node:assert/strict'
import { MOST_WAITING_COUNTED, takeNodeTurn } from '../../../db/runs/node-turns.ts'
import { createTestDatabase, type TestDatabase, testActor } from '../../support/database.ts'
import { insertManyRuns } from '../../support/many-runs.ts'
import { planInTenant, statementsOf } from '../../support/plans.ts'

const CALLS = 11_000
/** No test takes as long. */
const RATE = { limit: 10, per_ms: 3_600_000 }
/** The calls before it, and a page at the front with the node and the run of each. */
const MOST_READ = MOST_WAITING_COUNTED + 500

describe('the queue of the calls of a node with a rate', function () {
  this.timeout(120_000)
  let db: TestDatabase
  let organizationId: string
  let workflow_id: string
  /** The runs, in the order in which their calls came. */
  let runs: string[]
  before(async () => {
    db = await createTestDatabase()
    const many = await insertManyRuns(db, CALLS, { sleepsUntil: 'null' })
    organizationId = many.organizationId
    workflow_id = many.workflow.id
    runs = await db.system('runs').orderBy('id').pluck('id')
    await db.asOwner((client) =>
      client.query(
        `insert into run_nodes (organization_id, run_id, node_id, node_type, title, segment, position, status, started_at)
         select organization_id, id, 'ask', 'api_request', 'Ask', 1, 0, 'running', now() from runs`,
      ),
    )
  })
  beforeEach(async () => {
    await db.system('node_turns').delete()
    await db.asOwner((client) =>
      client.query(
        `insert into node_turns (organization_id, workflow_id, node_id, run_id, path)
         select organization_id, workflow_id, 'ask', id, '' from runs order by id`,
      ),
    )
  })
  after(() => db?.drop())

  const ask = (call: number, rate = RATE, on: Pick<TestDatabase, 'tenant'> = db) =>
    on.tenant(organizationId, testActor, (tx) =>
      takeNodeTurn(tx, { workflow_id, node_id: 'ask', run_id: runs[call]!, path: '' }, rate),
    )
  const fill = async () => {
    for (let call = 0; call < RATE.limit; call++) deepEqual(await ask(call), { begun: true })
  }

  const readBy = async (call: number) => {
    const statements = await statementsOf(db, (listened) => ask(call, RATE, listened))
    let read = 0
    for (const statement of statements)
      read += (await db.asOwner((client) => planInTenant(client, organizationId, statement))).rows
    return read
  }

  it('is asked with a bounded number of rows, however many calls wait', async () => {
    await fill()
    const read = await readBy(CALLS - 1)
    ok(read <= MOST_READ, `${read} rows`)
  })

  it('passes over many ended runs once', async () => {
    await fill()
    const ended = runs.slice(RATE.limit, 3_000)
    const nodes = () => db.system('run_nodes').whereIn('run_id', ended)
    await nodes().update({ status: 'cancelled', ended_at: new Date() })
    try {
      equal(waits(await ask(3_000)).before, 0)
      const read = await readBy(3_001)
      ok(read <= 200, `${read} rows`)
    } finally {
      await nodes().update({ status: 'running', ended_at: null })
    }
  })

  it('keeps the place of a call whose run is paused', async () => {
    await fill()
    const paused = runs[RATE.limit]!
    await db.system('runs').where({ id: paused }).update({ pause_requested_at: new Date() })
    equal(waits(await ask(RATE.limit + 1)).before, 0)
    await db.system('runs').where({ id: paused }).update({ pause_requested_at: null })
    equal(waits(await ask(RATE.limit)).before, 0)
    equal(waits(await ask(RATE.limit + 1)).before, 1)
  })

  it('lets no more calls begin than its rate, however many ask at once, and each as soon as it may', async () => {
    const turns = await Promise.all(Array.from({ length: 40 }, (_, call) => ask(call)))
    // Calls that met another one that began ask again in a moment.
    for (let call = 0; call < RATE.limit; call++) if (!turns[call]!.begun) turns[call] = await ask(call)
    equal(turns.filter(({ begun }) => begun).length, RATE.limit)
    const begun = await db.system('node_turns').whereNotNull('begun_at').orderBy('turn')
    deepEqual(
      begun.map(({ turn }) => Number(turn)),
      Array.from({ length: RATE.limit }, (_, n) => n + 1),
    )
    const due = waits(await ask(RATE.limit)).waitMs
    ok(due > RATE.per_ms - 120_000 && due <= RATE.per_ms, `${due} ms`)
    // One place is free when the first call has left the window.
    const left = new Date(Date.now() - RATE.per_ms)
    await db.system('node_turns').where({ turn: 1 }).update({ begun_at: left })
    ok(!(await ask(RATE.limit + 1)).begun)
    ok((await ask(RATE.limit)).begun)
    ok(!(await ask(RATE.limit + 1)).begun)
    equal((await db.system('node_turns').whereNotNull('begun_at')).length, RATE.limit)
  })

  it('is not waited for while another call begins', async () => {
    await db.tenant(organizationId, testActor, async (tx) => {
      ok((await takeNodeTurn(tx, { workflow_id, node_id: 'ask', run_id: runs[0]!, path: '' }, RATE)).begun)
      const { waitMs } = waits(await ask(1))
      ok(waitMs <= 200, `${waitMs} ms`)
    })
    ok((await ask(1)).begun)
  })

  it('is asked some 11 times a second by 10,000 calls together', async () => {
    await fill()
    let perSecond = 0
    for (let call = RATE.limit; call < MOST_WAITING_COUNTED; call += 185) {
      const { waitMs } = waits(await ask(call))
      if (call > 20 * RATE.limit) perSecond += (185 * 1_000) / waitMs
    }
    ok(perSecond > 5 && perSecond < 13, `${perSecond} asks a second`)
  })
})

function waits(turn: Awaited<ReturnType<typeof takeNodeTurn>>) {
  if (turn.begun) throw new Error('it has begun')
  return turn
}
