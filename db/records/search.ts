import type { Tenant } from '../tenancy.ts'
import type { Fragment } from './filters.ts'
import type { Kind } from './kind.ts'
import { searchPatterns } from './search-text.ts'
import { EXACT_UP_TO } from './total.ts'

/** Up to so many matches are taken from the index; of more, a page is found sooner by walking the sort order. */
const MAX_FROM_INDEX = EXACT_UP_TO

export interface Search {
  condition: Fragment
  /** Whether more match than an estimate counts. */
  common: boolean
}

/** Free text as a condition; undefined where there is no word in it. */
export async function search(tx: Tenant, kind: Kind, q: string): Promise<Search | undefined> {
  const patterns = searchPatterns(q)
  if (patterns.length === 0) return undefined
  const { rows } = await tx.trx.raw<{ rows: { ids: string[] | null }[] }>(
    `select case when cardinality(ids) <= ? then ids end as ids
     from (select array(select search_${kind.entity}(?::text[], ?)) as ids) found`,
    [MAX_FROM_INDEX, patterns, MAX_FROM_INDEX + 1] as never,
  )
  const { ids } = rows[0]!
  if (ids) return { condition: { sql: 'id = any(?::uuid[])', bindings: [ids] }, common: false }
  const sql = patterns.map(() => 'search_text like ?').join(' and ')
  return { condition: { sql, bindings: patterns }, common: true }
}
