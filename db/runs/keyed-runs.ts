import type { RunStatus } from '../../workflows/shared/statuses.ts'
import { conflict } from '../model/errors.ts'
import type { Tenant } from '../postgres/tenancy.ts'
import { createRun, type NewRun } from './runs.ts'

/** What a start does while a run with its key is open, as the workflow id conflict policy of Temporal. */
export const KEY_CONFLICTS = ['use_existing', 'fail'] as const

export interface KeyedRun {
  id: string
  status: RunStatus
  /** Whether the run was open before. */
  existing: boolean
}

/**
 * The open run of the workflow with this key, whose cancellation was not requested. Locked until the transaction ends,
 * so that it cannot end before.
 */
export async function findOpenByKey(
  tx: Tenant,
  workflowId: string,
  key: string,
): Promise<Omit<KeyedRun, 'existing'> | undefined> {
  return openWithKey(tx, workflowId, key)
    .whereNull('cancel_requested_at')
    .first<Omit<KeyedRun, 'existing'> | undefined>('id', 'status')
}

/** The newest run with this key that is being cancelled, locked as well: its end finds the run that waits for it. */
async function findCancelled(tx: Tenant, workflowId: string, key: string): Promise<string | undefined> {
  const run = await openWithKey(tx, workflowId, key)
    .whereNotNull('cancel_requested_at')
    .orderBy('id', 'desc')
    .first<{ id: string } | undefined>('id')
  return run?.id
}

const openWithKey = (tx: Tenant, workflowId: string, key: string) =>
  tx
    .trx('runs')
    .where({ organization_id: tx.organizationId, workflow_id: workflowId, run_key: key })
    .whereNull('ended_at')
    .forNoKeyUpdate()

/**
 * Queues a run with a key that no other open run of the workflow has, else returns that run. One whose cancellation was
 * requested is no answer to a start: the new run waits for its end. Concurrent starts of a key
 * wait for each other; a unique index is the second line of defence. `takePlace`: throws if no further run
 * may be queued. Throws `conflict` with the policy `fail`.
 */
export async function createKeyedRun(
  tx: Tenant,
  run: NewRun,
  {
    key,
    onConflict,
    takePlace,
  }: { key: string; onConflict: (typeof KEY_CONFLICTS)[number]; takePlace?: () => Promise<void> },
): Promise<KeyedRun> {
  // In a statement of its own: the next one must see what the holder before has committed.
  await tx.trx.raw('select pg_advisory_xact_lock(hashtextextended(?, 0))', [
    `agx run key ${tx.organizationId} ${run.workflow.id} ${key}`,
  ])
  const open = await findOpenByKey(tx, run.workflow.id, key)
  if (open) {
    if (onConflict === 'fail')
      throw conflict(`the run ${open.id} of the workflow has this key and is ${open.status}`, {
        hint: 'omit on_conflict to get this run instead',
      })
    return { ...open, existing: true }
  }
  await takePlace?.()
  const id = await createRun(tx, run)
  const follows = await findCancelled(tx, run.workflow.id, key)
  await tx.trx.raw(
    `update runs set run_key = :key${follows === undefined ? '' : AFTER} where organization_id = :organizationId and id = :id`,
    { key, organizationId: tx.organizationId, id, ...(follows !== undefined && { follows }) },
  )
  return { id, status: 'queued', existing: false }
}

/** SQL: has the admission hold the run back until the end of another one. */
const AFTER = `, follows = :follows, hold = 'admission', hold_until = now()`
