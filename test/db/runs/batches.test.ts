import { randomUUID } from 'node:crypto'
import { isDeepStrictEqual } from 'node:util'
import { BATCH_ITEM_STATUSES, BATCH_STATUSES } from '../../../db/model/runs/batch-statuses.ts'
import { advanceBatch, type ClaimedBatch } from '../../../db/runs/batches.ts'
import { CHAIN_START, createRun } from '../../../db/runs/runs.ts'
import {
  createOrganization,
  createTestDatabase,
  type TestDatabase,
  testActor,
} from '../../support/database.ts'
import { describeMoves, type Fixture, readTable } from '../../support/moves.ts'
import { createEmptyWorkflow } from '../../support/workflows.ts'

const TABLES = 'db/model/runs/batch-statuses.ts'

interface BatchFixture extends Fixture {
  batch: ClaimedBatch
  run_id: string
}

describe('the moves of batches of runs', () => {
  let db: TestDatabase
  before(async () => {
    db = await createTestDatabase()
  })
  after(() => db?.drop())

  /** A batch that cancels a queued run, which is its only item. */
  async function create(ended: boolean, itemStatus: string) {
    const organization_id = await createOrganization(db)
    const run_id = await db.tenant(organization_id, testActor, async (tx) => {
      const { id } = await createEmptyWorkflow(tx)
      const workflow = { id, version: 1, name: 'Test' }
      return createRun(tx, { workflow, trigger: { type: 'api' }, inputs: {}, chain: CHAIN_START })
    })
    const key = { organization_id, id: randomUUID() }
    const values = { action: 'cancel', options: { version: 'same' }, created_by: testActor } as const
    const ended_at = ended ? new Date() : null
    await db.system('run_batches').insert({ ...key, ...values, filter: {}, total: 1, ended_at })
    const item = { organization_id, batch_id: key.id, run_id }
    await db.system('run_batch_items').insert({ ...item, status: itemStatus })
    return {
      batch: { ...key, ...values },
      run_id,
      row: () => db.system('run_batches').where(key).first(),
      item: () => db.system('run_batch_items').where(item).first(),
      remove: async () => void (await db.system('organizations').where({ id: organization_id }).delete()),
    }
  }

  /** Makes a page of so many items. @returns whether it changed the fixture. */
  const advance = async (fixture: BatchFixture, limit: number) => {
    const before = await fixture.snapshot()
    await db.tenant(fixture.batch.organization_id, testActor, (tx) => advanceBatch(tx, fixture.batch, limit))
    return !isDeepStrictEqual(await fixture.snapshot(), before)
  }

  describe('batches', () => {
    describeMoves<BatchFixture>({
      table: readTable(TABLES, 'batches'),
      statuses: BATCH_STATUSES,
      async fixture(status) {
        const { row, item, ...made } = await create(status === 'ended', 'pending')
        return {
          ...made,
          status: async () => ((await row()).ended_at ? 'ended' : 'open'),
          snapshot: async () => [await row(), await item()],
        }
      },
      drivers: {
        advanceBatch: {
          // A page that is full may be followed by another.
          act: (fixture, to) => advance(fixture, to === 'open' ? 1 : 2),
        },
      },
    })
  })

  describe('items', () => {
    describeMoves<BatchFixture>({
      table: readTable(TABLES, 'items'),
      statuses: BATCH_ITEM_STATUSES,
      async fixture(status) {
        const { item, row: _, ...made } = await create(false, status)
        return { ...made, status: async () => (await item()).status, snapshot: item }
      },
      drivers: {
        advanceBatch: {
          async arrange({ run_id }, to) {
            if (to === 'refused') await db.system('runs').where({ id: run_id }).delete()
          },
          act: (fixture) => advance(fixture, 1),
        },
      },
    })
  })
})
