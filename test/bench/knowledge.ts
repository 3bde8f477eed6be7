import type pg from 'pg'
import { searchPassages } from '../../db/knowledge/search.ts'
import { packed, signsOf } from '../../db/model/knowledge/vectors.ts'
import type { Database } from '../../db/postgres/connect.ts'
import type { SearchMode } from '../../workflows/shared/knowledge.ts'
import { createOrganization, type TestDatabase, testActor } from '../support/database.ts'
import { embeddingOf } from '../support/embedding.ts'
import { fillKnowledge } from '../support/knowledge.ts'
import { fillWithSet, measure, RANKINGS, SET, unit } from '../support/knowledge-ranking.ts'
import { withOwnPostgres } from './own-postgres.ts'

const DIMENSIONS = 256
const SEARCHES = 60

/**
 * The quality of each ranking on the labelled set, beside that of PostgreSQL's plain `ts_rank`; then the times of a
 * search of many passages.
 */
export function benchKnowledge(passages: number): Promise<void> {
  return withOwnPostgres(async (db, owner) => {
    const small = await createOrganization(db as TestDatabase)
    const labelled = await fillWithSet(db, small)
    await owner.query('vacuum analyze')
    for (const ranking of RANKINGS) {
      const { ndcg, recall } = await measure(db, small, labelled, ranking, SET.questions)
      say(`${ranking.padEnd(8)} nDCG@10 ${ndcg.toFixed(3)}   recall@10 ${recall.toFixed(3)}`)
    }
    const large = await createOrganization(db as TestDatabase)
    const collection = await fillKnowledge(owner, large, passages)
    await fillVectors(owner, large, collection)
    await owner.query('vacuum analyze')
    say(`\nrecall of the vectors that the signs select: ${await recallOfSigns(db, large, collection)}`)
    for (const mode of ['text', 'vector', 'hybrid'] as const)
      say(`${mode.padEnd(8)} ${passages} passages: ${await timesOf(db, large, collection, mode)}`)
  })
}

/** A random vector for each passage. */
async function fillVectors(owner: pg.Client, organizationId: string, collection: string): Promise<void> {
  const { rows } = await owner.query<{ document_id: string; position: number }>(
    'select document_id, position from knowledge_passages where organization_id = $1 and collection_id = $2',
    [organizationId, collection],
  )
  for (let from = 0; from < rows.length; from += 1_000)
    await owner.query(
      `insert into knowledge_vectors (organization_id, document_id, position, collection_id, generation, signs, vector)
       select $1, document_id, position, $2, 1, signs::bit varying, decode(vector, 'base64')
       from jsonb_to_recordset($3::jsonb) as m(document_id uuid, position integer, signs text, vector text)`,
      [
        organizationId,
        collection,
        JSON.stringify(
          rows.slice(from, from + 1_000).map((row) => {
            const vector = randomVector()
            return { ...row, signs: signsOf(vector), vector: packed(vector).toString('base64') }
          }),
        ),
      ],
    )
}

/** Around one of 200 centers, as texts of one subject are. */
const CENTERS = Array.from({ length: 200 }, () =>
  Array.from({ length: DIMENSIONS }, () => Math.random() - 0.5),
)
const randomVector = () => {
  const center = CENTERS[Math.floor(Math.random() * CENTERS.length)]!
  return unit(center.map((value) => value + (Math.random() - 0.5)))
}

const search = (
  db: Database,
  organizationId: string,
  collection: string,
  mode: SearchMode,
  vector: Float32Array,
) =>
  db.tenant(organizationId, testActor, (tx) =>
    searchPassages(
      tx,
      { q: 'rare half term12 term99', collection_id: collection, match: 'any', mode },
      { limit: 10, offset: 0 },
      mode === 'text' ? [] : [{ vector, collections: [{ id: collection, generation: 1 }] }],
    ),
  )

/** The part of the ten nearest of all vectors that a search finds. */
async function recallOfSigns(db: Database, organizationId: string, collection: string): Promise<string> {
  const { rows } = await db.system.raw<{ rows: { key: string; vector: Buffer }[] }>(
    `select document_id || ' ' || position as key, vector from knowledge_vectors where organization_id = ?`,
    [organizationId],
  )
  let found = 0
  const queries = 10
  for (let i = 0; i < queries; i++) {
    const query = randomVector()
    const scored = rows.map(({ key, vector }) => {
      let cosine = 0
      for (let d = 0; d < DIMENSIONS; d++) cosine += query[d]! * vector.readFloatLE(d * 4)
      return { key, cosine }
    })
    const nearest = new Set(
      scored
        .sort((a, b) => b.cosine - a.cosine)
        .slice(0, 10)
        .map(({ key }) => key),
    )
    const { data } = await search(db, organizationId, collection, 'vector', query)
    found += data.filter(({ document_id, position }) => nearest.has(`${document_id} ${position}`)).length
  }
  return (found / (queries * 10)).toFixed(2)
}

async function timesOf(
  db: Database,
  organizationId: string,
  collection: string,
  mode: SearchMode,
): Promise<string> {
  const times: number[] = []
  for (let i = 0; i < SEARCHES; i++) {
    const vector = unit(embeddingOf(`query ${i}`, DIMENSIONS))
    const start = performance.now()
    await search(db, organizationId, collection, mode, vector)
    times.push(performance.now() - start)
  }
  times.sort((a, b) => a - b)
  const at = (part: number) => times[Math.floor(part * (times.length - 1))]!.toFixed(0)
  return `p50 ${at(0.5)} ms, p95 ${at(0.95)} ms`
}

function say(line: string): void {
  process.stdout.write(`${line}\n`)
}
