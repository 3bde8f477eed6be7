import assert from 'node:assert/strict'
import { claimRuns, repairClaims } from '../../../db/runs/claims.ts'
import { listIdleRuns } from '../../../db/runs/queue.ts'
import { CHAIN_START, createRun } from '../../../db/runs/runs.ts'
import { getRun } from '../../../db/runs/views.ts'
import { createTestDatabase, type TestDatabase, testActor } from '../../support/database.ts'
import { insertManyRuns } from '../../support/many-runs.ts'
import { planOf, statementsOf } from '../../support/plans.ts'

const SLEEPING = 20_000
const CONCURRENCY = 50

describe(`${SLEEPING} sleeping runs`, () => {
  let db: TestDatabase
  let organizationId: string
  let queued: string
  const relay = { id: '00000000-0000-4000-8000-000000000000', starts: 100, active: 100 }

  before(async () => {
    db = await createTestDatabase()
    const made = await insertManyRuns(db, SLEEPING, {
      updatedAt: "now() - interval '1 hour'",
      sleepsUntil:
        "case when i <= 3 then now() - interval '1 minute' else now() + i * interval '1 minute' end",
    })
    organizationId = made.organizationId
    const { workflow } = made
    queued = await db.tenant(organizationId, testActor, (tx) =>
      createRun(tx, {
        workflow: { id: workflow.id, version: 1, name: 'Test' },
        trigger: { type: 'api' },
        inputs: {},
        chain: CHAIN_START,
      }),
    )
    await db.asOwner((client) => client.query('vacuum analyze'))
  })
  after(() => db?.drop())

  /** The number of rows that the statements of `work` read. */
  async function rowsRead(work: Parameters<typeof statementsOf>[1]): Promise<number> {
    let rows = 0
    for (const statement of await statementsOf(db, work))
      rows += (await db.asOwner((client) => planOf(client, statement))).rows
    return rows
  }

  it('cost the sweep nothing, but for those that are overdue', async () => {
    assert.equal((await listIdleRuns(db.system, '30 seconds', new Date(), 200)).length, 3)
    const rows = await rowsRead(({ system }) => listIdleRuns(system, '30 seconds', new Date(), 200))
    assert.ok(rows < 100, `${rows} rows`)
  })

  it('are looked up after six hours', async () => {
    await db
      .system('runs')
      .where({ id: queued })
      .update({ updated_at: new Date(0) })
    await db.asOwner((client) =>
      client.query(
        "update runs set updated_at = now() - interval '7 hours' where id in (select id from runs where sleeps_until > now() limit 5)",
      ),
    )
    assert.equal((await listIdleRuns(db.system, '30 seconds', new Date(), 200)).length, 8)
  })

  it('cost a claim and the view of a queued run no more than the concurrency of their workflow', async () => {
    for (const concurrency of [null, CONCURRENCY]) {
      await db.system('runs').where({ id: queued }).update({ concurrency })
      const claim = await rowsRead(({ system }) => claimRuns(system, relay, 100))
      await db.system('run_claims').delete()
      const view = await rowsRead((db) => db.tenant(organizationId, testActor, (tx) => getRun(tx, queued)))
      const repair = await rowsRead(({ system }) => repairClaims(system, relay, []))
      for (const rows of [claim, view, repair])
        assert.ok(rows < 100 + CONCURRENCY, `concurrency ${concurrency}: ${[claim, view, repair]} rows`)
    }
    assert.deepEqual(await claimRuns(db.system, relay, 100), [])
  })
})
