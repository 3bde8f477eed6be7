import assert from 'node:assert/strict'
import type { Client } from '@temporalio/client'
import { createList } from '../../../db/records/lists/lists.ts'
import { listChangesQueue } from '../../../worker/queues/list-changes.ts'
import { Relay } from '../../../worker/relay.ts'
import { untilBlocked } from '../../support/blocked.ts'
import { createOrganization, createTestDatabase, type TestDatabase } from '../../support/database.ts'
import { matchAll, memberEvents, settleLists } from '../../support/record-lists.ts'
import { filtersOf, recordsOf } from '../../support/records.ts'
import { until } from '../../support/until.ts'
import { testLog } from '../../support/worker.ts'

const QUERY = { stage: 'won' }
const FILTER = {
  query: QUERY,
  selection: {
    sort: 'created_at',
    order: 'desc' as const,
    match: 'all' as const,
    filters: filtersOf('deals', QUERY),
  },
}

describe('changes for lists of several organizations', () => {
  let db: TestDatabase
  before(async () => {
    db = await createTestDatabase()
  })
  after(() => db?.drop())

  const withList = async () => {
    const organizationId = await createOrganization(db)
    const records = recordsOf(db, organizationId)
    const { id } = await records.tenant((tx) =>
      createList(tx, { entity: 'deals', name: 'Won', description: null, filter: FILTER }),
    )
    const win = async () => {
      await records.create('deals', { name: 'A', stage: 'won' })
      await matchAll(db)
    }
    return { id, win, entered: async () => (await memberEvents(db, id)).length }
  }

  it('do not wait for one whose lists are slow, which has one worker at a time', async () => {
    const [slow, quick] = [await withList(), await withList()]
    await settleLists(db)
    const queues = [listChangesQueue({ db, log: testLog }), listChangesQueue({ db, log: testLog })]
    const relays = queues.map(
      (queue) => new Relay({ db, client: {} as Client, log: testLog, pollMs: 20, queues: [queue] }),
    )
    const held = await db.system.transaction()
    try {
      await held('lists').where({ id: slow.id }).forNoKeyUpdate().first('id')
      await slow.win()
      for (const relay of relays) await relay.start()
      await untilBlocked(db)
      // Further changes of the slow one, which another worker could take.
      await slow.win()
      await quick.win()
      await until(async () => (await quick.entered()) === 1, 'the entry of the other organization', 20)
      const { rows } = await db.asOwner((client) =>
        client.query<{ n: number }>(
          "select count(*)::integer as n from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock'",
        ),
      )
      assert.equal(rows[0]!.n, 1, 'one transaction waits')
      assert.equal(await slow.entered(), 0)
    } finally {
      await held.rollback()
      await until(async () => (await slow.entered()) === 2, 'the entries of the slow one').finally(() =>
        Promise.all(relays.map((relay) => relay.close())),
      )
    }
  })
})
