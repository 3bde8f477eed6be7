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

/** One page, newest first, after the workflow `after` where it is given; and how many there are in all. */
export async function listWorkflows(
  tx: Tenant,
  filter: WorkflowFilter,
  page: { limit: number; offset: number; after?: string | undefined },
): Promise<{ rows: WorkflowSummary[]; hasMore: boolean; total: number }> {
  const matching = () => {
    const query = workflows(tx)
    if (filter.active !== undefined) query.whereRaw(`w.status ${filter.active ? '=' : '<>'} 'active'`)
    if (filter.status !== undefined) query.where('w.status', filter.status)
    if (filter.name !== undefined) query.where('w.name', filter.name)
    if (filter.q) {
      const pattern = `%${filter.q.replaceAll(/[\\%_]/g, '\\$&')}%`
      query.whereRaw("(w.name ilike ? or coalesce(w.description, '') ilike ?)", [pattern, pattern])
    }
    return query
  }
  const query = matching()
    .orderBy('w.id', 'desc')
    .limit(page.limit + 1)
    .offset(page.offset)
    .select<WorkflowSummary[]>(...SUMMARY, trigger(tx))
  // Ids are made in the order of time.
  if (page.after !== undefined) query.where('w.id', '<', page.after)
  const rows = (await query) as WorkflowSummary[]
  const counted = (await matching().count('* as total').first()) as { total: number } | undefined
  return {
    rows: rows.slice(0, page.limit),
    hasMore: rows.length > page.limit,
    total: Number(counted?.total ?? 0),
  }
}
