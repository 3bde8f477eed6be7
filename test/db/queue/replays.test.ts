import { randomUUID } from 'node:crypto'
import * as incoming from '../../../db/incoming/replays.ts'
import { REPLAY_STATUSES } from '../../../db/model/replays/statuses.ts'
import * as outgoing from '../../../db/outgoing/replays.ts'
import {
  createOrganization,
  createTestDatabase,
  type TestDatabase,
  testActor,
} from '../../support/database.ts'
import { describeMoves, type Fixture, readTable } from '../../support/moves.ts'
import { INCOMING_ROW, OUTGOING_ROW } from '../../support/webhook-rows.ts'

interface ReplayFixture extends Fixture {
  organization_id: string
  webhook_id: string
  id: string
}

const SORTS = {
  incoming: { moves: incoming, webhook: INCOMING_ROW },
  outgoing: { moves: outgoing, webhook: OUTGOING_ROW },
}

describe('the moves of replays', () => {
  let db: TestDatabase
  before(async () => {
    db = await createTestDatabase()
  })
  after(() => db?.drop())

  for (const [name, { moves, webhook }] of Object.entries(SORTS))
    describe(`of ${name} webhooks`, () => {
      const table = `${name}_replays`

      async function fixture(status: string): Promise<ReplayFixture> {
        const organization_id = await createOrganization(db)
        const [id, webhook_id] = [randomUUID(), randomUUID()]
        const row = () => db.system(table).where({ organization_id, id })
        await db.system(`${name}_webhooks`).insert({
          organization_id,
          id: webhook_id,
          name: 'Test',
          ...webhook,
        })
        await db.system(table).insert({
          organization_id,
          id,
          webhook_id,
          include: ['failed'],
          since: new Date(),
          until: new Date(),
          status,
          total: 1,
          created_by: testActor,
          ended_at: ['stopped', 'completed'].includes(status) ? new Date() : null,
        })
        return {
          organization_id,
          webhook_id,
          id,
          status: async () => (await row().first('status')).status,
          snapshot: () => row().first(),
          remove: () => db.system('organizations').where({ id: organization_id }).delete(),
        }
      }

      describeMoves<ReplayFixture>({
        table: readTable('db/model/replays/statuses.ts'),
        statuses: REPLAY_STATUSES,
        fixture,
        drivers: {
          setReplayStatus: {
            act: ({ organization_id, webhook_id, id }, to) =>
              db.tenant(organization_id, testActor, async (tx) =>
                Boolean(
                  await moves.setReplayStatus(tx, webhook_id, id, to as 'running' | 'paused' | 'stopped'),
                ),
              ),
          },
          recordPage: {
            act: ({ organization_id, id }, to) =>
              db.tenant(organization_id, testActor, (tx) =>
                moves.recordPage(tx, id, {
                  position: randomUUID(),
                  counts: { created: 1 },
                  ...(to !== 'running' && { status: to as 'paused' | 'completed' }),
                }),
              ),
          },
        },
      })
    })
})
