import type { RunStatus } from '../../../workflows/shared/statuses.ts'
import { notFound } from '../../model/errors.ts'
import type { Tenant } from '../../postgres/tenancy.ts'

/**
 * Locks a run, so that its segments and other moves wait. @returns its status. A statement after the lock sees the
 * claims made before it. Throws `not_found`.
 */
export async function lockStatus(tx: Tenant, id: string): Promise<RunStatus> {
  const { rows } = await tx.trx.raw<{ rows: { status: RunStatus }[] }>(
    `select status from runs where organization_id = ? and id = ? and kind = 'run' for no key update`,
    [tx.organizationId, id],
  )
  if (!rows[0]) throw notFound('run')
  return rows[0].status
}

/** SQL: whether no relay is starting the queued run. */
export const UNCLAIMED = `status = 'queued' and not exists (
  select from run_claims c where c.organization_id = runs.organization_id and c.run_id = runs.id)`

/** SQL: whether Temporal cannot know the run. */
export const NEVER_CLAIMED = `resumes = 0 and ${UNCLAIMED}`

/**
 * SQL: whether a key of its workflow's settings holds the run back. It has never had a workflow, also if it was paused.
 */
export const HELD = `(status = 'queued' and hold is not null)`

/** SQL: whether no workflow works on the run, so that it can end at once. */
export const AT_REST = `(status = 'paused' or ${HELD} or ${NEVER_CLAIMED})`
