import assert from 'node:assert/strict'
import { PLANNED_ANEW } from '../../../db/postgres/prepared.ts'
import type { Tenant } from '../../../db/postgres/tenancy.ts'
import {
  createOrganization,
  createTestDatabase,
  type TestDatabase,
  testActor,
} from '../../support/database.ts'

describe('prepared statements', () => {
  let db: TestDatabase
  let organization: string
  before(async () => {
    db = await createTestDatabase()
    organization = await createOrganization(db)
  })
  after(() => db.drop())

  /** The texts of those that the connection keeps after `work`. */
  const preparedBy = (work: (tx: Tenant) => Promise<unknown>): Promise<string[]> =>
    db.tenant(organization, testActor, async (tx) => {
      await work(tx)
      const { rows } = await tx.trx.raw('select statement from pg_prepared_statements')
      return rows.map(({ statement }: { statement: string }) => statement)
    })

  it('are all statements with parameters, raw or built', async () => {
    const texts = await preparedBy(async ({ trx }) => {
      await trx.raw('select ? as raw', ['x'])
      await trx('organizations').where({ id: organization }).first('id')
    })
    assert.ok(texts.includes('select $1 as raw'))
    assert.ok(texts.includes('select "id" from "organizations" where "id" = $1 limit $2'))
  })

  it('are not those without parameters, those to plan anew, and long ones', async () => {
    const texts = await preparedBy(async ({ trx }) => {
      await trx.raw("select 'without'")
      await trx.raw('select ? as anew', ['x']).options(PLANNED_ANEW)
      await trx.raw(`select ? as long ${' '.repeat(8_000)}`, ['x'])
    })
    assert.deepEqual(
      texts.filter((text) => /without|anew|long/.test(text)),
      [],
    )
  })
})
