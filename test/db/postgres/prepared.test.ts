import assert from 'node:assert/strict'
import { setTimeout } from 'node:timers/promises'
import pg from 'pg'
import { PLANNED_ANEW, preparedStatements } from '../../../db/postgres/prepared.ts'
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

  /** The texts of the statements that stay prepared on the connection after `work`. */
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

  it('are planned anew after a while, because the tables may have grown', async () => {
    const connection = new pg.Client({ connectionString: db.url })
    await connection.connect()
    preparedStatements(1_000)(connection)
    const plan = async () => {
      const { rows } = await connection.query(`explain execute "grown" (1)`)
      return rows.map((row) => row['QUERY PLAN']).join('\n')
    }
    await connection.query('create temporary table grows (id integer primary key)')
    await connection.query('insert into grows values (1)')
    await connection.query('vacuum analyze grows')
    const read = () =>
      connection.query({ name: 'grown', text: 'select from grows where id = $1', values: [1] })
    // PostgreSQL makes a generic plan after five executions.
    for (let n = 0; n < 7; n++) await read()
    await connection.query('insert into grows select generate_series(2, 20000)')
    assert.match(await plan(), /Seq Scan/)
    await setTimeout(1_050)
    await read()
    assert.match(await plan(), /Index/)
    await connection.end()
  })
})
