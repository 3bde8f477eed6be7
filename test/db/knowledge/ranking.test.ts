import { deepEqual, ok } from 'node:assert/strict'
import { createOrganization, createTestDatabase, type TestDatabase } from '../../support/database.ts'
import { fillWithSet, measure, RANKINGS, type Ranking, SET } from '../../support/knowledge-ranking.ts'

/** Part of what `npm run bench -- knowledge` measures. */
const QUESTIONS = SET.questions.slice(0, 80)

describe('the rankings of a labelled set', function () {
  this.timeout(120_000)
  let db: TestDatabase
  const found = new Map<Ranking, { ndcg: number; recall: number }>()
  before(async () => {
    db = await createTestDatabase()
    const organizationId = await createOrganization(db)
    const collection = await fillWithSet(db, organizationId)
    await db.asOwner((client) => client.query('vacuum analyze'))
    for (const ranking of RANKINGS)
      found.set(ranking, await measure(db, organizationId, collection, ranking, QUESTIONS))
  })
  after(() => db.drop())

  it('has 500 passages and at least 200 questions, each answered by one of them', () => {
    deepEqual([SET.passages.length, SET.questions.length >= 200], [500, true])
    const ids = new Set(SET.passages.map(({ id }) => id))
    deepEqual(
      SET.questions.filter(({ best }) => !ids.has(best)),
      [],
    )
  })

  it('find the answer more often by words and vectors than by words, and by words no less than by ts_rank', () => {
    const [plain, text, , hybrid] = RANKINGS.map((ranking) => found.get(ranking)!)
    const shown = JSON.stringify(Object.fromEntries(found))
    ok(text!.ndcg >= plain!.ndcg && text!.recall >= plain!.recall, shown)
    ok(hybrid!.ndcg > text!.ndcg && hybrid!.recall > text!.recall, shown)
  })
})
