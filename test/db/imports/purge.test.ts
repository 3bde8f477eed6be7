import assert from 'node:assert/strict'
import { createExport } from '../../../db/exports/exports.ts'
import { createImport, getImport } from '../../../db/imports/imports.ts'
import { receiveFile } from '../../../db/imports/upload.ts'
import type { Tenant } from '../../../db/postgres/tenancy.ts'
import {
  createOrganization,
  createTestDatabase,
  type TestDatabase,
  testActor,
} from '../../support/database.ts'
import { purgeAll } from '../../support/purge.ts'

describe('the retention of imports and exports', () => {
  let db: TestDatabase
  let tenant: <T>(work: (tx: Tenant) => Promise<T>) => Promise<T>
  before(async () => {
    db = await createTestDatabase()
    const organizationId = await createOrganization(db)
    tenant = (work) => db.tenant(organizationId, testActor, work)
  })
  after(() => db?.drop())

  const count = async (table: string) =>
    Number((await db.system(table).count<{ count: number }[]>())[0]!.count)

  it('is 30 days for files of imports, with their failed rows', async () => {
    const row = await tenant((tx) =>
      createImport(tx, { entity: 'contacts', mode: 'create', dry_run: false, mapping: {} }),
    )
    async function* file() {
      yield Buffer.from('email\na@x.example\n')
    }
    await receiveFile(tenant, row, file())
    await db.system('import_errors').insert({
      organization_id: (await db.system('imports').first('organization_id')).organization_id,
      import_id: row.id,
      row_number: 1,
      line: 2,
      issues: '[]',
      cells: '[]',
    })
    // A piece of an aborted upload.
    await db.system.raw(
      "insert into import_pieces select organization_id, gen_random_uuid(), 0, '', now() - interval '2 days' from imports",
    )
    await purgeAll(db)
    assert.deepEqual([await count('import_pieces'), await count('import_errors')], [1, 1])

    const old = { updated_at: db.system.raw("now() - interval '31 days'") }
    await db.system('imports').update(old)
    await db.system('import_pieces').update({ created_at: db.system.raw("now() - interval '31 days'") })
    await purgeAll(db)
    assert.deepEqual([await count('import_pieces'), await count('import_errors')], [0, 0])
    assert.equal((await tenant((tx) => getImport(tx, row.id))).upload_id, null)
  })

  it('is 7 days for files of exports', async () => {
    const { id } = await tenant((tx) =>
      createExport(tx, {
        entity: 'contacts',
        query: {},
        list_query: { sort: 'created_at', order: 'desc', match: 'all', q: undefined, filters: [] },
        fields: null,
        bom: false,
        options: {},
      }),
    )
    await db.system.raw("insert into export_pieces select organization_id, id, 0, 'id' from exports")
    const ended = (days: number) =>
      db
        .system('exports')
        .where({ id })
        .update({
          status: 'completed',
          pieces: 1,
          ended_at: db.system.raw('now() - make_interval(days => ?)', [days]),
        })
    await ended(6)
    await purgeAll(db)
    assert.equal(await count('export_pieces'), 1)
    await ended(8)
    await purgeAll(db)
    assert.deepEqual(
      [await count('export_pieces'), (await db.system('exports').first()).status],
      [0, 'expired'],
    )
  })
})
