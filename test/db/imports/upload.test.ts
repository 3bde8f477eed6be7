import assert from 'node:assert/strict'
import { createImport } from '../../../db/imports/imports.ts'
import { receiveFile } from '../../../db/imports/upload.ts'
import type { AppError } from '../../../db/model/errors.ts'
import type { Tenant } from '../../../db/postgres/tenancy.ts'
import {
  createOrganization,
  createTestDatabase,
  type TestDatabase,
  testActor,
} from '../../support/database.ts'

describe('the file of an import', () => {
  let db: TestDatabase
  let tenant: <T>(work: (tx: Tenant) => Promise<T>) => Promise<T>
  before(async () => {
    db = await createTestDatabase()
    const organizationId = await createOrganization(db)
    tenant = (work) => db.tenant(organizationId, testActor, work)
  })
  after(() => db?.drop())

  it('is refused above the row limit, and nothing of it is stored', async () => {
    const row = await tenant((tx) =>
      createImport(tx, { entity: 'contacts', mode: 'create', dry_run: false, mapping: {} }),
    )
    const receive = (rows: number) => {
      async function* file() {
        yield Buffer.from(`email\n${'a@x.example\n'.repeat(rows)}`)
      }
      return receiveFile(tenant, row, file(), undefined, 1_000)
    }
    await assert.rejects(receive(1_001), ({ details }: AppError) => {
      assert.deepEqual(details.issues, [
        {
          loc: ['body', 'rows'],
          msg: 'the file has more than 1,000 rows',
          type: 'too_many_rows',
          hint: 'split it into several files, each with the header',
        },
      ])
      return true
    })
    assert.deepEqual(await db.system('import_pieces'), [])
    assert.equal((await receive(1_000)).status, 'ready')
  })
})
