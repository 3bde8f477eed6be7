import assert from 'node:assert/strict'
import { listRuns } from '../../db/runs/views.ts'
import { createTestDatabase, type TestDatabase, testActor } from '../support/database.ts'
import { planOf, statementsOf } from '../support/plans.ts'
import { fillVolume, VOLUME_TABLES } from '../support/volume.ts'
import { volumeWork } from '../support/volume-statements.ts'

const ROWS = 40_000
/** Maximum number of rows that a statement may read: a batch of a claim, a page or a purge, with related rows. */
const MOST_READ = 12_000

describe('growing tables', () => {
  let db: TestDatabase
  let organizations: string[]
  before(async () => {
    db = await createTestDatabase()
    organizations = await db.asOwner((client) => fillVolume(client, ROWS))
  })
  after(() => db.drop())

  it('are read by index and in bounded numbers, by purges, claims, the sweep and lists', async () => {
    const wrong: string[] = []
    for (const [name, work] of Object.entries(volumeWork(organizations)))
      for (const statement of await statementsOf(db, work)) {
        const plan = await db.asOwner((client) => planOf(client, statement))
        const scanned = plan.scanned.filter((table) => VOLUME_TABLES.includes(table))
        if (scanned.length > 0 || plan.rows > MOST_READ)
          wrong.push(`${name}: scans ${scanned}, reads ${plan.rows} rows: ${statement.sql} (${plan.nodes})`)
      }
    assert.deepEqual(wrong, [])
  })

  it('are counted exactly up to 10,000, and estimated above', async () => {
    const total = (status?: 'queued') =>
      db.tenant(organizations[0]!, testActor, async (tx) => {
        const page = await listRuns(
          tx,
          status ? { status: [status] } : {},
          { limit: 1, offset: 0 },
          { order: 'desc', count: 'estimated' },
        )
        const [{ count }] = await tx
          .trx('runs')
          .where({ organization_id: tx.organizationId, kind: 'run', ...(status && { status }) })
          .count<{ count: number }[]>()
          .then((rows) => rows as [{ count: number }])
        return { ...page, count }
      })
    const all = await total()
    assert.ok(all.count > 10_000)
    assert.equal(all.total_is_estimate, true)
    assert.ok(Math.abs(all.total! - all.count) < all.count / 5, `${all.total} of ${all.count}`)
    const queued = await total('queued')
    assert.deepEqual([queued.total, queued.total_is_estimate], [queued.count, false])
  })
})
