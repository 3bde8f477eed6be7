import { decodeCursor, encodeCursor, queryHash } from './cursor.ts'
import type { Page } from './page.ts'
import type { Tenant } from './tenancy.ts'
import { SUMMARY, trigger, type WorkflowStatus, type WorkflowSummary, workflows } from './workflows.ts'

export interface WorkflowFilter {
  /** true: active; false: everything else, drafts included. */
  active?: boolean | undefined
  status?: WorkflowStatus | undefined
  /** Exactly. */
  name?: string | undefined
  /** Occurs in name or description, whatever its case. */
  q?: string | undefined
}

export interface WorkflowQuery extends WorkflowFilter {
  limit: number
  offset: number
  cursor?: string | undefined
}

/** One page, newest first. Throws `invalid_request` for a cursor of another query. */
export async function listWorkflows(tx: Tenant, query: WorkflowQuery): Promise<Page<WorkflowSummary>> {
  const { limit, offset, cursor, active, status, name, q } = query
  const hash = queryHash(['workflows', active, status, name, q])
  // Ids are made in the order of time: they are all that a position needs.
  const after = cursor === undefined ? undefined : decodeCursor(hash, cursor, () => false).id
  const page = matching(tx, query)
    .orderBy('w.id', 'desc')
    .limit(limit + 1)
    .offset(offset)
    .select<WorkflowSummary[]>(...SUMMARY, trigger(tx))
  if (after !== undefined) page.where('w.id', '<', after)
  const rows = (await page) as WorkflowSummary[]
  const counted = (await matching(tx, query).count('* as total').first()) as { total: number } | undefined
  const data = rows.slice(0, limit)
  const last = data.at(-1)
  const has_more = rows.length > limit
  return {
    data,
    limit,
    offset,
    has_more,
    next_cursor: has_more && last ? encodeCursor(hash, { value: null, id: last.id }) : null,
    total: Number(counted?.total ?? 0),
    total_is_estimate: false,
  }
}

function matching(tx: Tenant, { active, status, name, q }: WorkflowFilter) {
  const query = workflows(tx)
  if (active !== undefined) query.whereRaw(`w.status ${active ? '=' : '<>'} 'active'`)
  if (status !== undefined) query.where('w.status', status)
  if (name !== undefined) query.where('w.name', name)
  if (q) {
    const pattern = `%${q.replaceAll(/[\\%_]/g, '\\$&')}%`
    query.whereRaw("(w.name ilike ? or coalesce(w.description, '') ilike ?)", [pattern, pattern])
  }
  return query
}
