import assert from 'node:assert/strict'
import { findByKey, finderBy } from '../../../db/records/find-by-key.ts'
import { lockExisting, lockRecords } from '../../../db/records/lock.ts'
import {
  createOrganization,
  createTestDatabase,
  type TestDatabase,
  testActor,
} from '../../support/database.ts'
import { planOf, statementsOf } from '../../support/plans.ts'

const CONTACTS = 3_000

describe('the look-up of a contact by a key', () => {
  let db: TestDatabase

  beforeEach(async () => {
    db = await createTestDatabase()
    // Its ANALYZE would make the statistics that are missing here.
    await db.asOwner((client) => client.query('alter table contacts set (autovacuum_enabled = false)'))
  })
  afterEach(() => db.drop())

  for (const by of ['email', 'external_id'])
    it(`reads only those that have it, before the first ANALYZE (${by})`, async () => {
      const rows = await rowsReadBy(by, await organizationWithContacts())
      assert.ok(rows < 10, `${rows} rows`)
    })

  for (const by of ['email', 'external_id'])
    it(`reads only those that have it, of an organization without statistics (${by})`, async () => {
      for (let n = 0; n < 3; n++) await organizationWithContacts()
      await db.asOwner((client) => client.query('analyze contacts'))
      const rows = await rowsReadBy(by, await organizationWithContacts())
      assert.ok(rows < 10, `${rows} rows`)
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
    const key = `${CONTACTS}@x.test`
    const statements = await statementsOf(db, (db) =>
      db.tenant(organizationId, testActor, async (tx) => {
        const ids = await findByKey(tx, 'contacts', by, { [by]: key })
        assert.equal(ids.length, 1)
        assert.equal((await lockRecords(tx, 'contacts', ids)).size, 1)
        assert.equal((await lockExisting(tx, 'contacts', ids)).size, 1)
        const finder = await finderBy(tx, 'contacts', by)
        await finder.peek([key, '1@x.test', 'nobody@x.test'])
      }),
    )
    let rows = 0
    for (const statement of statements) rows += (await db.asOwner((client) => planOf(client, statement))).rows
    return rows
  }
})
