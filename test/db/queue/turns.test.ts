import assert from 'node:assert/strict'
import { randomUUID } from 'node:crypto'
import { incomingReplays } from '../../../db/incoming/replays.ts'
import { outgoingReplays } from '../../../db/outgoing/replays.ts'
import { runBatches } from '../../../db/runs/batches.ts'
import {
  createOrganization,
  createTestDatabase,
  type TestDatabase,
  testActor,
} from '../../support/database.ts'
import { INCOMING_ROW, OUTGOING_ROW } from '../../support/webhook-rows.ts'

const REPLAY = { include: ['failed'], since: new Date(), until: new Date(), total: 9, created_by: testActor }

/** Long jobs: they wait again after each turn, with the time at which they were made. */
const JOBS = {
  run_batches: {
    jobs: runBatches,
    webhook: undefined,
    row: { action: 'cancel', filter: {}, options: {}, total: 9, created_by: testActor },
  },
  incoming_replays: { jobs: incomingReplays, webhook: INCOMING_ROW, row: REPLAY },
  outgoing_replays: { jobs: outgoingReplays, webhook: OUTGOING_ROW, row: REPLAY },
}

describe('the turns of long jobs', () => {
  let db: TestDatabase
  before(async () => {
    db = await createTestDatabase()
  })
  after(() => db?.drop())

  for (const [table, { jobs, webhook, row }] of Object.entries(JOBS))
    it(`of ${table} come to an organization, although another one has older jobs that do not end`, async () => {
      const add = async (organization_id: string, hoursAgo: number) => {
        const id = randomUUID()
        const webhook_id = randomUUID()
        if (webhook)
          await db
            .system(table.replace('replays', 'webhooks'))
            .insert({ organization_id, id: webhook_id, name: 'Test', ...webhook })
        const created_at = new Date(Date.now() - hoursAgo * 3_600_000)
        await db.system(table).insert({
          organization_id,
          id,
          created_at,
          ...row,
          ...(webhook && { webhook_id }),
        })
        return id
      }
      const [many, few] = [await createOrganization(db), await createOrganization(db)]
      for (let hours = 9; hours > 1; hours--) await add(many, hours)
      const wanted = await add(few, 1)
      // A worker with places for two, which are given back after each turn.
      const had: string[] = []
      for (let turn = 0; turn < 4 && !had.includes(wanted); turn++) {
        const claimed = await jobs.claim(db.system, 2)
        had.push(...claimed.map(({ id }) => id))
        for (const job of claimed) await jobs.takeTurn(db.system, job as never, async () => false)
      }
      assert.ok(had.includes(wanted), `the turns were those of ${had.length} others`)
    })
})
