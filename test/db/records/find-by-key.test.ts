import assert from 'node:assert/strict'
import { finderBy } from '../../../db/records/find-by-key.ts'
import { lockExisting } from '../../../db/records/lock.ts'
import { updateMany } from '../../../db/records/update.ts'
import {
  createOrganization,
  createTestDatabase,
  type TestDatabase,
  testActor,
} from '../../support/database.ts'

const CONTACTS = 3_000

describe('the look-up and update of contacts by a key', () => {
  let db: TestDatabase

  beforeEach(async () => {
    db = await createTestDatabase()
    // ANALYZE would create the statistics that are missing here.
    await db.asOwner((client) => client.query('alter table contacts set (autovacuum_enabled = false)'))
  })
  afterEach(() => db.drop())

  for (const by of ['email', 'external_id'])
    it(`reads only those that have it, before the first ANALYZE (${by})`, async () => {
      const rows = await rowsReadBy(by, await organizationWithContacts())
      assert.ok(rows < 500, `${rows} rows`)
    })

  for (const by of ['email', 'external_id'])
    it(`reads only those that have it, of an organization without statistics (${by})`, async () => {
      for (let n = 0; n < 3; n++) await organizationWithContacts()
      await db.asOwner((client) => client.query('analyze contacts'))
      const rows = await rowsReadBy(by, await organizationWithContacts())
      assert.ok(rows < 500, `${rows} rows`)
    })

  async function organizationWithContacts(): Promise<string> {
    const id = await createOrganization(db)
    await db.asOwner((client) =>
      client.query(
        `insert into contacts (organization_id, id, email, external_id, do_not_contact, tags, custom_fields, version,
           created_at, updated_at, created_by, updated_by, search_text)
         select $1, gen_random_uuid(), n || '@x.test', n || '@x.test', false, '{}', '{}', 1,
           now() + n * interval '1 ms', now(), '{}', '{}', '' from generate_series(1, $2) n`,
        [id, CONTACTS],
      ),
    )
    return id
  }

  async function rowsReadBy(by: string, organizationId: string): Promise<number> {
    const keys = Array.from({ length: 20 }, (_, n) => `${CONTACTS - n}@x.test`)
    return db.tenant(organizationId, testActor, async (tx) => {
      const found = await (await finderBy(tx, 'contacts', by)).find([...keys, 'nobody@x.test'])
      const ids = [...found.values()].flat()
      assert.equal(ids.length, keys.length)
      assert.equal((await lockExisting(tx, 'contacts', ids)).size, keys.length)
      const updates = ids.map((id) => ({ id, patch: { first_name: 'Ada' } }))
      const changed = await updateMany(tx, 'contacts', updates)
      assert.ok(changed.every((outcome) => !('error' in outcome)))
      const { rows } = await tx.trx.raw<{ rows: { read: number }[] }>(
        `select seq_tup_read + idx_tup_fetch as read from pg_stat_xact_user_tables where relname = 'contacts'`,
      )
      return rows[0]!.read
    })
  }
})
