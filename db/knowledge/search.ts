import { NIL } from 'uuid'
import { escaped } from '../../workflows/shared/escape-html.ts'
import type { Language, SearchMode } from '../../workflows/shared/knowledge.ts'
import { KNOWLEDGE } from '../../workflows/shared/limits.ts'
import { invalid, notFound } from '../model/errors.ts'
import { MARKS } from '../model/knowledge/clean.ts'
import { parseQuery, type Query } from '../model/knowledge/query.ts'
import { fuse } from '../model/knowledge/vectors.ts'
import { decodeCursor, encodeCursor, queryHash } from '../model/lists/cursor.ts'
import type { Page } from '../model/lists/page.ts'
import { PLANNED_ANEW } from '../postgres/prepared.ts'
import type { Tenant } from '../postgres/tenancy.ts'
import { INDEXED } from './index-passages.ts'
import { nearestPassages, type QueryVector } from './nearest.ts'

export interface PassageSearch {
  q: string
  /** Default `text`. */
  mode?: SearchMode | undefined
  collection_id?: string | undefined
  /** A document must have all of these tags. */
  tags?: string[] | undefined
  match: 'all' | 'any'
}

/** A passage in the search results with its document, as in the API. */
export interface FoundPassage {
  document_id: string
  collection_id: string
  position: number
  title: string
  heading: string
  text: string
  /** HTML: the text with the words of the query in <mark>; everything else is escaped. */
  highlight: string
  /** From 0 to 1; of `text` above 0.5 if the passage contains every word of the query. */
  score: number
  /** `vector`: the text search does not find it. */
  match: 'all' | 'any' | 'vector'
  tags: string[]
  source_url: string | null
}

/** Maximum of `offset` plus `limit`: each page ranks all matches again. */
export const MAX_REACH = 1_000

/** Where a passage is, and its rank. */
interface Ranked {
  document_id: string
  position: number
  /** The index of the part whose query is highlighted. */
  part: number
  rank: number
  match: FoundPassage['match']
}

interface Fragment {
  sql: string
  bindings: unknown[]
}

/** The query of the collections of one language. */
interface Part extends Fragment {
  language: Language
  /** Undefined: all collections of the organization. */
  collections: string[] | undefined
}

/**
 * The best passages. By text: those with every word of the query, by cover density; then, with `match: any`, those with
 * some of the words, by their number and position. By `vector`: those nearest to the vectors of the query. `hybrid` fuses
 * both rankings. Throws `validation_error` for a query without a word, `not_found` for the collection, `invalid_request`
 * for a cursor of another search.
 * @param vectors of the query, for the modes that compare them.
 */
export async function searchPassages(
  tx: Tenant,
  search: PassageSearch,
  page: { limit: number; offset: number; cursor?: string | undefined },
  vectors: readonly QueryVector[] = [],
): Promise<Page<FoundPassage>> {
  const query = requireQuery(search.q)
  const hash = queryHash(['passages', search])
  const offset = page.cursor === undefined ? page.offset : offsetIn(hash, page.cursor)
  const languages = await languagesOf(tx, search.collection_id)
  const isText = (search.mode ?? 'text') === 'text'
  const wanted = Math.min(page.limit + 1, (isText ? MAX_REACH : KNOWLEDGE.fused) - offset)
  const strict = languages.map((one) => ({ ...one, ...tsquery(query.all, one.language) }))
  const searched = languages.length > 0 && wanted > 0
  const found = !searched
    ? []
    : isText
      ? await byText(tx, search, query, strict, offset, wanted)
      : (await byVector(tx, search, query, strict, vectors)).slice(offset, offset + wanted)
  const data = await shown(tx, found.slice(0, page.limit), strict)
  const has_more = found.length > page.limit
  return {
    data,
    limit: page.limit,
    offset,
    has_more,
    next_cursor: has_more ? encodeCursor(hash, { value: String(offset + data.length), id: NIL }) : null,
    total: null,
    total_is_estimate: false,
  }
}

async function byText(
  tx: Tenant,
  search: PassageSearch,
  query: Query,
  strict: Part[],
  offset: number,
  wanted: number,
): Promise<Ranked[]> {
  const all = await ranked(tx, search, strict, undefined, { offset, limit: wanted })
  if (all.length === wanted || search.match === 'all' || query.any === undefined) return all
  const loose = strict.map((one) => ({ ...one, ...looseQuery(query, one.language) }))
  const before = await countUpTo(tx, search, strict, offset, all.length)
  const rest = { offset: Math.max(0, offset - before), limit: wanted - all.length }
  return [...all, ...(await ranked(tx, search, loose, strict, rest))]
}

/** With `hybrid` fused with the ranking by text. */
async function byVector(
  tx: Tenant,
  search: PassageSearch,
  query: Query,
  strict: Part[],
  vectors: readonly QueryVector[],
): Promise<Ranked[]> {
  const partOf = (collection: string) =>
    strict.findIndex(({ collections }) => collections?.includes(collection) ?? true)
  const near = (await nearestPassages(tx, vectors, search.tags, KNOWLEDGE.fused)).map(
    ({ collection_id, cosine, ...place }): Ranked => ({
      ...place,
      part: partOf(collection_id),
      // Rounding can take it out of the range.
      rank: Math.min(1, Math.max(0, cosine)),
      match: 'vector',
    }),
  )
  if (search.mode === 'vector') return near
  const words = await byText(tx, search, query, strict, 0, KNOWLEDGE.fused)
  const keyOf = ({ document_id, position }: Ranked) => `${document_id} ${position}`
  return fuse([words, near], keyOf).map(([found, rank]) => ({ ...found, rank }))
}

/** The number of passages with every word, if the page starts after the last of them. */
async function countUpTo(
  tx: Tenant,
  search: PassageSearch,
  strict: Part[],
  offset: number,
  onPage: number,
): Promise<number> {
  if (onPage > 0 || offset === 0) return offset
  const found = matches(tx, search, strict, undefined)
  const { rows } = await tx.trx
    .raw<{ rows: { count: number }[] }>(
      `select count(*) as count from (select from (${found.sql}) found limit ?) counted`,
      [...found.bindings, offset] as never,
    )
    .options(PLANNED_ANEW)
  return rows[0]!.count
}

/** @param except excludes the passages that it matches. */
async function ranked(
  tx: Tenant,
  search: PassageSearch,
  parts: Part[],
  except: Part[] | undefined,
  { offset, limit }: { offset: number; limit: number },
): Promise<Ranked[]> {
  const found = matches(tx, search, parts, except)
  const { rows } = await tx.trx
    .raw<{ rows: Omit<Ranked, 'match'>[] }>(
      `select * from (${found.sql}) found order by rank desc, document_id, position limit ? offset ?`,
      [...found.bindings, limit, offset] as never,
    )
    .options(PLANNED_ANEW)
  return rows.map((row) => ({
    ...row,
    rank: row.rank / 2 + (except ? 0 : 0.5),
    match: except ? 'any' : 'all',
  }))
}

/** Passages as the search shows them, in their order. */
async function shown(tx: Tenant, found: readonly Ranked[], parts: Part[]): Promise<FoundPassage[]> {
  if (found.length === 0) return []
  const headline = `HighlightAll=true, StartSel="${MARKS.start}", StopSel="${MARKS.end}"`
  const cases = parts.map(
    ({ sql }, i) => `when ${i} then ts_headline(cast(? as regconfig), ${MARKED}, ${sql}, ?)`,
  )
  const { rows } = await tx.trx
    .raw<{ rows: (Omit<FoundPassage, 'score' | 'match'> & { i: number })[] }>(
      `select page.i, p.document_id, p.collection_id, p.position, d.title, p.heading, p.text, d.tags, d.source_url,
         case page.part ${cases.join(' ')} end as highlight
       from jsonb_to_recordset(cast(? as jsonb))
         as page(i integer, document_id uuid, position integer, part integer)
       join knowledge_passages p on p.organization_id = ? and p.document_id = page.document_id
         and p.position = page.position
       join knowledge_documents d on d.organization_id = ? and d.id = page.document_id
       order by page.i`,
      [
        ...parts.flatMap(({ language, bindings }) => [language, ...bindings, headline]),
        JSON.stringify(
          found.map(({ document_id, position, part }, i) => ({ i, document_id, position, part })),
        ),
        tx.organizationId,
        tx.organizationId,
      ] as never,
    )
    .options(PLANNED_ANEW)
  return rows.map(({ i, ...row }) => ({
    ...row,
    highlight: highlighted(row.highlight),
    score: Math.round(found[i]!.rank * 1e4) / 1e4,
    match: found[i]!.match,
  }))
}

/**
 * The matches with their ranks, unordered. The view allows PostgreSQL to use the text index behind row-level security.
 */
function matches(
  { organizationId }: Tenant,
  { tags }: PassageSearch,
  parts: Part[],
  except: Part[] | undefined,
): Fragment {
  const selects = parts.map(({ sql, bindings, collections }, i): Fragment => {
    const among = collections ? { sql: 'and collection_id = any(?::uuid[])', bindings: [collections] } : NONE
    const tagged = tags
      ? {
          sql: `and exists (select from knowledge_documents t
                 where t.organization_id = ? and t.id = document_id and t.tags @> ?::text[])`,
          bindings: [organizationId, tags],
        }
      : NONE
    const others = except
      ? { sql: `and not search @@ ${except[i]!.sql}`, bindings: except[i]!.bindings }
      : NONE
    const rank = except ? RANK.any : RANK.all
    return {
      sql: `select document_id, position, ${i} as part, ${rank}search, ${sql}, ${NORMALIZATION}) as rank
            from searched_knowledge_passages
            where organization_id = ? and search @@ ${sql} ${among.sql} ${others.sql} ${tagged.sql}`,
      bindings: [
        ...bindings,
        organizationId,
        ...bindings,
        ...among.bindings,
        ...others.bindings,
        ...tagged.bindings,
      ],
    }
  })
  return {
    sql: selects.map(({ sql }) => sql).join(' union all '),
    bindings: selects.flatMap(({ bindings }) => bindings),
  }
}

const NONE: Fragment = { sql: '', bindings: [] }

/**
 * The start of the call of the ranking function. `all` uses cover density: the distances and positions of the words.
 * `any` does not, because cover density counts occurrences of some of the words as if they were one word. The flat
 * weights of `any` (D, C, B, A) rank a passage with more of the words above one with a single word in its title.
 */
const RANK = { all: 'ts_rank_cd(', any: "ts_rank('{0.5, 0.6, 0.7, 1}', " } as const

/** Normalises the rank to rank / (rank + 1): from 0 to 1. */
const NORMALIZATION = 32

/** The text as it is indexed, with marks at the positions of `<` and `>`. */
const MARKED = `translate(p.text, '<>', '${MARKS.less}${MARKS.greater}')`

const tsquery = (text: string, language: Language): Fragment => ({
  sql: `websearch_to_tsquery(cast(? as regconfig), ${INDEXED('?')})`,
  bindings: [language, text],
})

function looseQuery({ any, required }: Query, language: Language): Fragment {
  const some = tsquery(any!, language)
  if (required === '') return some
  const others = tsquery(required, language)
  return { sql: `(${some.sql} && ${others.sql})`, bindings: [...some.bindings, ...others.bindings] }
}

/** The languages of the search, each with its collections. */
async function languagesOf(
  tx: Tenant,
  collectionId: string | undefined,
): Promise<{ language: Language; collections: string[] | undefined }[]> {
  const query = tx
    .trx('knowledge_collections')
    .where({ organization_id: tx.organizationId })
    .select<{ id: string; language: Language }[]>('id', 'language')
  const rows = await (collectionId === undefined ? query : query.where({ id: collectionId }))
  if (collectionId !== undefined && rows.length === 0) throw notFound('collection')
  const byLanguage = new Map<Language, string[]>()
  for (const { id, language } of rows) byLanguage.set(language, [...(byLanguage.get(language) ?? []), id])
  return [...byLanguage].map(([language, collections]) => ({
    language,
    collections: byLanguage.size === 1 && collectionId === undefined ? undefined : collections,
  }))
}

function requireQuery(q: string): Query {
  const query = parseQuery(q)
  if (query) return query
  throw invalid([
    {
      loc: ['query', 'q'],
      msg: 'has no word to search for',
      type: 'invalid_query',
      hint: 'send at least one word that is not excluded with -',
    },
  ])
}

/** Throws `invalid_request`. */
const offsetIn = (hash: string, cursor: string): number =>
  Number(decodeCursor(hash, cursor, (text) => /^\d{1,4}$/.test(text)).value)

const HTML_OF_MARK: Record<string, string> = {
  [MARKS.less]: '&lt;',
  [MARKS.greater]: '&gt;',
  [MARKS.start]: '<mark>',
  [MARKS.end]: '</mark>',
}

const highlighted = (text: string): string =>
  escaped(text).replace(/[\uE000-\uE003]/g, (mark) => HTML_OF_MARK[mark]!)
