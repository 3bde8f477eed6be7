import { validate as isUuid } from 'uuid'
import type { Definition, InputSpec } from '../../workflows/language/definition.ts'
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

/**
 * The workflows with a name or an id: how many may be meant (one, if only one of them is active), whether one is a draft,
 * and the inputs of a run of one of them.
 */
export interface NamedWorkflows {
  count: number
  /** Whether any of them is a draft. */
  draft: boolean
  inputs: Record<string, InputSpec> | null
}

/** The workflows with each of these names or ids. */
export async function findWorkflows(tx: Tenant, references: string[]): Promise<Map<string, NamedWorkflows>> {
  const rows = await named<NamedWorkflows>(
    tx,
    references,
    "found.count, found.draft, v.program -> 'inputs' as inputs",
  )
  return new Map(rows.map(({ reference, ...found }) => [reference, found]))
}

/** Bytes of a definition that is read to find the types of its outputs. */
const MOST_BYTES = 131_072

/** The definitions that runs of these workflows have, by their name or id; without names that several have. */
export async function findDefinitions(tx: Tenant, references: string[]): Promise<Record<string, Definition>> {
  if (references.length === 0) return {}
  const rows = await named<{ definition: Definition | null }>(
    tx,
    references,
    `case when found.count = 1 and octet_length(v.definition::text) <= ${MOST_BYTES} then v.definition end as definition`,
  )
  return Object.fromEntries(
    rows.flatMap(({ reference, definition }) => (definition ? [[reference, definition]] : [])),
  )
}

/** The version that a run has of the workflows with these names or ids: of several, the active one, or the oldest. */
async function named<Row>(
  tx: Tenant,
  references: string[],
  columns: string,
): Promise<(Row & { reference: string })[]> {
  const { rows } = await tx.trx.raw<{ rows: (Row & { reference: string })[] }>(
    `select wanted.reference, ${columns}
     from jsonb_to_recordset(:wanted) as wanted(reference text, id uuid)
     cross join lateral (
       select case when count(*) filter (where w.status = 'active') = 1 then 1 else count(*) end as count,
         coalesce(bool_or(w.status = 'DRAFT') and count(*) filter (where w.status = 'active') <> 1, false) as draft,
         (array_agg(w.id order by w.status = 'active' desc, w.created_at))[1] as id
       from workflows w
       where w.organization_id = :organizationId and w.deleted_at is null
         and (w.id = wanted.id or (wanted.id is null and w.name = wanted.reference))
     ) found
     left join workflows w on w.organization_id = :organizationId and w.id = found.id
     left join workflow_versions v on v.organization_id = w.organization_id and v.workflow_id = w.id
       and v.version = coalesce(w.active_version, w.version)`,
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
  return rows
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
