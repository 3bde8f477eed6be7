import type { Knex } from 'knex'
import type { RunTrigger } from '../../workflows/interpret/run-state.ts'
import type { RunStatus } from '../../workflows/shared/statuses.ts'
import { escapeLike } from '../model/records/like.ts'
import type { Tenant } from '../postgres/tenancy.ts'

/** The filter of a list or batch of runs; all members must match. Times are inclusive. */
export interface RunFilter {
  workflow_id?: string | undefined
  workflow_version?: number | undefined
  status?: readonly RunStatus[] | undefined
  trigger?: RunTrigger['type'] | undefined
  record_id?: string | undefined
  parent_run_id?: string | undefined
  retry_of?: string | undefined
  late?: boolean | undefined
  from?: Date | undefined
  to?: Date | undefined
  /** A part of the workflow's name or of the error message. */
  q?: string | undefined
}

/** Maximum number of workflows, and of newest errors, that match `q`. */
const MAX_FOUND = 1_000

/**
 * The runs of a filter. Each condition except `trigger` and `workflow_version` uses an index: times through the ids,
 * which are UUIDv7, and `q` through two look-ups of its own, because reading the names and errors of many runs is slow.
 * The query is wrapped in an object, because a promise of it would run it.
 */
export async function filteredRuns(tx: Tenant, filter: RunFilter): Promise<{ query: Knex.QueryBuilder }> {
  const { status, trigger, late, from, to, q, ...equal } = filter
  const defined = Object.entries(equal).filter(([, value]) => value !== undefined)
  const query = tx
    .trx('runs')
    .where({ organization_id: tx.organizationId, kind: 'run', ...Object.fromEntries(defined) })
  if (status?.length === 1) query.where({ status: status[0] })
  else if (status) query.whereIn('status', status)
  if (trigger) query.whereRaw("trigger ->> 'type' = ?", [trigger])
  if (late === true) query.whereNotNull('late_at')
  if (late === false) query.whereNull('late_at')
  if (from) query.where('id', '>=', idAt(from.getTime() - CLOCKS_MS)).where('created_at', '>=', from)
  if (to) query.where('id', '<', idAt(to.getTime() + CLOCKS_MS)).where('created_at', '<=', to)
  if (q !== undefined) {
    const { workflows, runs } = await search(tx, q)
    query.where((either) => either.whereIn('workflow_id', workflows).orWhereIn('id', runs))
  }
  return { query }
}

/** Maximum clock difference: the id has the time of a process, `created_at` that of the database. */
const CLOCKS_MS = 60_000

/** The first UUIDv7 of a millisecond. */
function idAt(milliseconds: number): string {
  const hex = Math.max(0, milliseconds).toString(16).padStart(12, '0').slice(-12)
  return `${hex.slice(0, 8)}-${hex.slice(8)}-0000-0000-000000000000`
}

async function search(tx: Tenant, q: string): Promise<{ workflows: string[]; runs: string[] }> {
  const pattern = `%${escapeLike(q)}%`
  const workflows = await tx
    .trx('workflows')
    .where({ organization_id: tx.organizationId })
    .whereRaw('name ilike ?', [pattern])
    .limit(MAX_FOUND)
    .select<{ id: string }[]>('id')
  const runs = await tx
    .trx('searched_runs')
    .where({ organization_id: tx.organizationId })
    .whereNotNull('error')
    .whereRaw("error ->> 'message' ilike ?", [pattern])
    .orderBy('id', 'desc')
    .limit(MAX_FOUND)
    .select<{ id: string }[]>('id')
  return { workflows: workflows.map(({ id }) => id), runs: runs.map(({ id }) => id) }
}
