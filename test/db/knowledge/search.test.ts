import { deepEqual, equal, ok } from 'node:assert/strict'
import { type PassageSearch, searchPassages } from '../../../db/knowledge/search.ts'
import {
  createOrganization,
  createTestDatabase,
  type TestDatabase,
  testActor,
} from '../../support/database.ts'
import { fillKnowledge } from '../../support/knowledge.ts'
import { planInTenant, statementsOf } from '../../support/plans.ts'

const PASSAGES = 20_000
/** Number of passages of another organization. */
const OTHERS = 2_000

describe('a search of 20,000 passages', () => {
  let db: TestDatabase
  let mine: string
  let other: string
  before(async () => {
    db = await createTestDatabase()
    mine = await createOrganization(db)
    other = await createOrganization(db)
    await db.asOwner(async (client) => {
      await fillKnowledge(client, mine, PASSAGES)
      await fillKnowledge(client, other, OTHERS)
      await client.query('vacuum analyze')
    })
  })
  after(() => db.drop())

  const search = (q: string, more: Partial<PassageSearch>, limit: number) =>
    db.tenant(mine, testActor, (tx) => searchPassages(tx, { q, match: 'any', ...more }, { limit, offset: 0 }))

  it('reads the text index behind row-level security, and no more than what matches', async () => {
    for (const [q, most] of [
      ['rare', 300],
      ['rare -common', 300],
      ['"common half"', OTHERS + 300],
      ['rare half', OTHERS + 300],
    ] as const) {
      const statements = await statementsOf(db, (listened) =>
        listened.tenant(other, testActor, (tx) =>
          searchPassages(tx, { q, match: 'any' }, { limit: 10, offset: 0 }),
        ),
      )
      const searches = statements.filter(({ sql }) => sql.includes('@@'))
      ok(searches.length > 0)
      for (const statement of searches) {
        const plan = await db.asOwner((client) => planInTenant(client, other, statement))
        deepEqual(plan.scanned, [], statement.sql)
        ok(plan.nodes.includes('Bitmap Index Scan knowledge_passages_search'), plan.nodes.join(', '))
        ok(plan.rows <= most, `${q}: ${plan.rows} rows`)
      }
    }
  })

  it('ranks passages without reading them from another table', async () => {
    const { rows } = await db.system.raw(
      "select pg_relation_size(reltoastrelid) as bytes from pg_class where relname = 'knowledge_passages'",
    )
    deepEqual(rows, [{ bytes: 0 }])
  })

  it('finds the same as a scan of all passages', async () => {
    for (const [q, word] of [
      ['rare', '%rare%'],
      ['rare half', '%rare %'],
    ] as const) {
      const { data } = await search(q, { match: 'all' }, 200)
      const expected = await db.asOwner((client) =>
        client.query(
          'select document_id, position from knowledge_passages where organization_id = $1 and text like $2 order by 1, 2',
          [mine, word],
        ),
      )
      const key = (one: { document_id: string; position: number }) => `${one.document_id} ${one.position}`
      deepEqual(data.map(key).sort(), expected.rows.map(key).sort())
      equal(expected.rows.length, PASSAGES / 1_000)
    }
    equal((await search('rare', { tags: ['billing'] }, 200)).data.length, PASSAGES / 1_000 / 2)
  })
})
