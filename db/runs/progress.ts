import type { RunError } from '../../workflows/interpret/run-state.ts'
import type { RunStatus } from '../../workflows/shared/statuses.ts'
import { notFound } from '../model/errors.ts'
import type { Tenant } from '../postgres/tenancy.ts'
import { NEXT_ATTEMPT, NODE_WAITS_FOR, type RunNodeView } from './views.ts'

/** The progress of a run: its state, and the nodes that changed after a segment. */

export interface RunProgress {
  run: {
    id: string
    workflow_id: string
    status: RunStatus
    stuck_reason: string | null
    cancel_requested_at: Date | null
    pause_requested_at: Date | null
    outputs: Record<string, unknown> | null
    error: RunError | null
    created_at: Date
    started_at: Date | null
    ended_at: Date | null
  }
  /** In the order of change. */
  nodes: ChangedNode[]
}

export interface ChangedNode extends Omit<RunNodeView, 'input' | 'output' | 'attempts'> {
  path: string
  position: number
  /** The segment of its last change. The segments of a run are written in sequence. */
  segment: number
}

/** Less than every segment number; nodes that a retry reuses have -1. */
export const BEFORE_ALL = -2

/** Approximate number of nodes in a response: the nodes of a segment are not divided. */
const PAGE = 500

const CHANGED = 'greatest(segment, coalesce(settled_segment, segment))'

/** Throws `not_found`. */
export async function getProgress(tx: Tenant, id: string, after: number): Promise<RunProgress> {
  const { organizationId: organization_id } = tx
  const run = await tx
    .trx('runs')
    .where({ organization_id, id, kind: 'run' })
    .first<RunProgress['run'] | undefined>(
      'id',
      'workflow_id',
      'status',
      'stuck_reason',
      'cancel_requested_at',
      'pause_requested_at',
      'outputs',
      'error',
      'created_at',
      'started_at',
      'ended_at',
    )
  if (!run) throw notFound('run')
  const { rows } = await tx.trx.raw<{ rows: ChangedNode[] }>(
    `select * from (select position, path, node_id, node_type, title, status, attempt, ${NEXT_ATTEMPT}, ${NODE_WAITS_FOR}, handle, error, wait_until, started_at, ended_at, role, undoes,
       ${CHANGED} as segment
     from run_nodes where organization_id = :organization_id and run_id = :id and ${CHANGED} > :after
     order by ${CHANGED} fetch first ${PAGE} rows with ties) changed
     order by segment, coalesce(ended_at, started_at), position`,
    { organization_id, id, after },
  )
  return { run, nodes: rows }
}

/** Makes the segments of a run send a notification for the next 30 seconds. */
export async function watchRun(tx: Tenant, id: string): Promise<void> {
  await tx
    .trx('runs')
    .where({ organization_id: tx.organizationId, id, kind: 'run', ended_at: null })
    .update({ watched_until: tx.trx.raw("now() + interval '30 seconds'") })
}
