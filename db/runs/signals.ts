import { v7 as uuidv7 } from 'uuid'
import { SIGNAL } from '../../workflows/shared/limits.ts'
import { nearest } from '../../workflows/shared/nearest.ts'
import { conflict } from '../model/errors.ts'
import { isOpenRun } from '../model/runs/statuses.ts'
import type { Tenant } from '../postgres/tenancy.ts'
import { lockStatus } from './moves/lock-status.ts'

/**
 * Sends a signal to a run. It answers the node that has waited longest for its name, or is kept until a node waits for
 * it. The run's row is locked, as by a segment, so that a signal and a new wait cannot miss each other.
 * @returns the node that received it, with its iteration; nulls if none did. Throws `not_found`, and `conflict` if the
 * run has ended, or no node of its workflow waits for the name.
 */
export async function sendSignal(
  tx: Tenant,
  runId: string,
  { name, payload }: { name: string; payload: unknown },
): Promise<{ path: string | null; node_id: string | null }> {
  const key = { organization_id: tx.organizationId, run_id: runId }
  const status = await lockStatus(tx, runId)
  if (!isOpenRun(status)) throw conflict(`the run has ended: it is ${status}`)
  const { rows } = await tx.trx.raw<{ rows: { path: string; node_id: string }[] }>(
    `update run_waits set ${ANSWER}
     where (organization_id, run_id, path, node_id) = (
       select organization_id, run_id, path, node_id from run_waits
       where organization_id = :organizationId and run_id = :runId and type = 'signal' and name = :name
         and answered_at is null
       order by created_at, path, node_id limit 1 for update)
     returning path, node_id`,
    {
      organizationId: tx.organizationId,
      runId,
      name,
      payload: JSON.stringify(payload ?? null),
      actor: JSON.stringify(tx.actor),
    },
  )
  const [taken] = rows
  if (!taken) {
    await requireRoom(tx, runId)
    await requireWait(tx, runId, name)
  }
  await tx.trx('run_signals').insert({
    ...key,
    id: uuidv7(),
    name,
    payload: JSON.stringify(payload ?? null),
    actor: JSON.stringify(tx.actor),
    ...(taken
      ? { consumed_at: tx.trx.fn.now(), consumed_path: taken.path, consumed_node_id: taken.node_id }
      : {}),
  })
  if (taken) tx.wake('agx_waits')
  return taken ?? { path: null, node_id: null }
}

/** SQL: the changes of a wait that a signal answers. */
const ANSWER = `answer = jsonb_build_object('payload', cast(:payload as jsonb)), answered_by = cast(:actor as jsonb),
  answered_at = now(), lease_until = null, notified_at = null`

/** Throws `conflict` if no node of the run's workflow can ever receive a signal of that name. */
async function requireWait(tx: Tenant, runId: string, name: string): Promise<void> {
  const { rows } = await tx.trx.raw<{ rows: { type: string; name: string | null }[] }>(
    `select n.value ->> 'type' as type, n.value #>> '{config,name}' as name
     from runs r
     join workflow_versions v on v.organization_id = r.organization_id and v.workflow_id = r.workflow_id
       and v.version = r.workflow_version
     cross join lateral json_each(v.program -> 'nodes') n
     where r.organization_id = :organizationId and r.id = :runId
       and n.value ->> 'type' in ('wait_for_signal', 'approval')`,
    { organizationId: tx.organizationId, runId },
  )
  const names = rows.flatMap((node) => (node.type === 'wait_for_signal' ? [String(node.name)] : []))
  if (names.some((one) => one === name || one.includes('{{'))) return
  const meant = nearest(name, names)
  const hint =
    meant !== undefined
      ? `did you mean ${meant}?`
      : rows.length > names.length
        ? 'an approval is decided by {"approval_id": "…", "decision": "approved"}: the `waits` of the run have the id'
        : names.length > 0
          ? `its nodes wait for ${[...new Set(names)].join(', ').slice(0, 500)}`
          : 'a node of type wait_for_signal receives signals'
  throw conflict(`no node of the workflow waits for a signal ${name}`, { hint })
}

async function requireRoom(tx: Tenant, runId: string): Promise<void> {
  const [row] = await tx
    .trx('run_signals')
    .where({ organization_id: tx.organizationId, run_id: runId, consumed_at: null })
    .count<[{ count: number }]>()
  if (Number(row?.count) >= SIGNAL.pending)
    throw conflict(`the run has ${SIGNAL.pending} signals that no node has received`, {
      hint: 'a node that waits for the name of a signal receives it',
    })
}

/** Answers a new wait with the oldest kept signal of its name, if there is one. */
export async function takeSignal(
  tx: Tenant,
  runId: string,
  wait: { path: string; node_id: string; id: string; name: string },
): Promise<void> {
  const { rowCount } = await tx.trx.raw<{ rowCount: number }>(
    `with taken as (
       update run_signals set consumed_at = now(), consumed_path = :path, consumed_node_id = :nodeId
       where (organization_id, run_id, id) = (
         select organization_id, run_id, id from run_signals
         where organization_id = :organizationId and run_id = :runId and name = :name and consumed_at is null
         order by id limit 1)
       returning payload, actor, created_at)
     update run_waits w set answer = jsonb_build_object('payload', taken.payload), answered_by = taken.actor,
       answered_at = taken.created_at
     from taken
     where w.organization_id = :organizationId and w.run_id = :runId and w.path = :path and w.node_id = :nodeId
       and w.id = :id`,
    {
      organizationId: tx.organizationId,
      runId,
      path: wait.path,
      nodeId: wait.node_id,
      id: wait.id,
      name: wait.name,
    },
  )
  if (rowCount > 0) tx.wake('agx_waits')
}
