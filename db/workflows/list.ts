import { validate as isUuid } from 'uuid'
import { type IdPage, pageById } from '../lists/id-list.ts'
import type { Page } from '../model/lists/page.ts'
import { escapeLike } from '../model/records/like.ts'
import type { Tenant } from '../postgres/tenancy.ts'
import { SUMMARY, trigger, type WorkflowStatus, type WorkflowSummary, workflows } from './workflows.ts'

export interface WorkflowFilter {
  /** true: active; false: all others, including drafts. */
  active?: boolean | undefined
  status?: WorkflowStatus | undefined
  /** Exact match. */
  name?: string | undefined
  /** Substring of name or description, case-insensitive. */
  q?: string | undefined
}

export type WorkflowQuery = WorkflowFilter & IdPage

/** A page of workflows, newest first. Throws `invalid_request` for a cursor of another query. */
export function listWorkflows(tx: Tenant, query: WorkflowQuery): Promise<Page<WorkflowSummary>> {
  const { active, status, name, q } = query
  const rows = matching(tx, query).select(...SUMMARY, trigger(tx))
  return pageById(tx, rows, query, { of: ['workflows', active, status, name, q] })
}

/** The number of workflows with each of these names or ids, and whether any of them is a draft. */
export async function countWorkflows(
  tx: Tenant,
  references: string[],
): Promise<Map<string, { count: number; draft: boolean }>> {
  const { rows } = await tx.trx.raw<{ rows: { reference: string; count: number; draft: boolean }[] }>(
    `select wanted.reference, count(w.id) as count, coalesce(bool_or(w.status = 'DRAFT'), false) as draft
     from jsonb_to_recordset(:wanted) as wanted(reference text, id uuid)
     left join workflows w on w.organization_id = :organizationId and w.deleted_at is null
       and (w.id = wanted.id or (wanted.id is null and w.name = wanted.reference))
     group by wanted.reference`,
    {
      organizationId: tx.organizationId,
      wanted: JSON.stringify(
        [...new Set(references)].map((reference) => ({
          reference,
          id: isUuid(reference) ? reference : null,
        })),
      ),
    },
  )
  return new Map(rows.map(({ reference, ...found }) => [reference, found]))
}

function matching(tx: Tenant, { active, status, name, q }: WorkflowFilter) {
  const query = workflows(tx)
  if (active !== undefined) query.whereRaw(`w.status ${active ? '=' : '<>'} 'active'`)
  if (status !== undefined) query.where('w.status', status)
  if (name !== undefined) query.where('w.name', name)
  if (q) {
    const pattern = `%${escapeLike(q)}%`
    query.whereRaw("(w.name ilike ? or coalesce(w.description, '') ilike ?)", [pattern, pattern])
  }
  return query
}
