import type { Resume } from '../../../workflows/bundle/protocol.ts'
import type { System, Tenant } from '../../postgres/tenancy.ts'
import { lostPriority, ownPriority } from '../priority.ts'
import { rewind } from '../state.ts'

/**
 * The starts of a run's workflow, and the ownership of its row by Temporal runs. The table is in
 * `db/model/runs/statuses.ts`.
 */

/** @returns the number of runs that changed from queued to running. */
export async function markRunsStarted(
  system: System,
  runs: { organization_id: string; id: string; resumes: number }[],
): Promise<number> {
  // A locked row is skipped: its first segment writes the same values. The relay deletes its claim later
  // (`repairClaims`).
  const { rows } = await system.raw<{ rows: { count: number }[] }>(
    `with started as materialized (
       select s.* from jsonb_to_recordset(?) as s(organization_id uuid, id uuid, resumes integer)
     ), moved as (
       update runs r set status = 'running', started_at = coalesce(started_at, now()), updated_at = now()
       from (
         select r.organization_id, r.id from started s
         -- a run that was resumed since this start waits for another workflow
         join runs r on r.organization_id = s.organization_id and r.id = s.id and r.resumes = s.resumes
         where r.status = 'queued' for update of r skip locked) s
       where r.organization_id = s.organization_id and r.id = s.id
       returning r.id
     ), claims as (
       delete from run_claims c using started s
       where c.organization_id = s.organization_id and c.run_id = s.id
         and (c.run_id in (select id from moved) or (
           select r.status from runs r where r.organization_id = c.organization_id and r.id = c.run_id) <> 'queued')
     )
     select count(*) as count from moved`,
    [JSON.stringify(runs.map(({ organization_id, id, resumes }) => ({ organization_id, id, resumes })))],
  )
  return rows[0]?.count ?? 0
}

/** A run that Temporal loses more often than this ends as `lost`. */
export const MAX_RESUMES = 10

/** SQL: what the resume of a run that Temporal has lost sets, and which runs can be resumed. */
const RESUMED = `status = 'queued', resumes = r.resumes + 1, cancel_lease_until = null, cancel_sent_at = null,
       sleeps_until = null, in_pool = false, stuck_reason = null, updated_at = now()`
const RESUMABLE = `r.kind = 'run' and r.status in ('queued', 'running') and r.resumes - r.pauses < ${MAX_RESUMES}`

/** A run, and the Temporal run that was looked up. */
export interface LostRun {
  organization_id: string
  id: string
  temporal_run_id: string | null
}

/**
 * As `resumeRun`, for many. Those that only wait get a workflow after all other queued runs: see `priority.ts`.
 * @returns the ids of the runs that are resumed. The relay finds them when it polls.
 */
export async function resumeRuns(system: System, runs: LostRun[]): Promise<Set<string>> {
  if (runs.length === 0) return new Set()
  const { rows } = await system.raw<{ rows: { id: string }[] }>(
    `with resumed as (
       update runs r set ${RESUMED},
         priority = ${lostPriority('r')}
       from jsonb_to_recordset(?) as s(organization_id uuid, id uuid, temporal_run_id text)
       where r.organization_id = s.organization_id and r.id = s.id
         and r.temporal_run_id is not distinct from s.temporal_run_id and ${RESUMABLE}
       returning r.organization_id, r.id
     ), claims as (
       delete from run_claims c using resumed s where c.organization_id = s.organization_id and c.run_id = s.id
     )
     select id from resumed`,
    [
      JSON.stringify(
        runs.map(({ organization_id, id, temporal_run_id }) => ({ organization_id, id, temporal_run_id })),
      ),
    ],
  )
  return new Set(rows.map(({ id }) => id))
}

/**
 * Queues a run again whose workflow Temporal no longer has: the relay starts a new one where the run stopped.
 * `temporalRunId` is the Temporal run that was looked up. @returns false if the run cannot be resumed.
 */
export async function resumeRun(tx: Tenant, id: string, temporalRunId: string | null): Promise<boolean> {
  const { rowCount } = await tx.trx.raw<{ rowCount: number }>(
    `update runs r set ${RESUMED}
     where organization_id = :organizationId and id = :id
       and temporal_run_id is not distinct from :temporalRunId and ${RESUMABLE}`,
    { organizationId: tx.organizationId, id, temporalRunId },
  )
  if (rowCount === 0) return false
  await tx.trx('run_claims').where({ organization_id: tx.organizationId, run_id: id }).delete()
  tx.wake('agx_runs')
  return true
}

/**
 * Transfers a resumed run to the Temporal run that was started for it. Its rows stay unchanged, except that attempts of
 * the earlier Temporal run lose their external nodes: one that died with its worker would hold a pause.
 * @returns false if the row has later segments, or was resumed again.
 */
export async function takeOver(
  tx: Tenant,
  id: string,
  temporalRunId: string,
  resume: Resume,
): Promise<boolean> {
  const condition = `r.resumes = :count
    and not exists (select from run_segments s where s.organization_id = r.organization_id and s.run_id = r.id
      and s.temporal_run_id = r.temporal_run_id and s.segment >= :segment)`
  return transfer(tx, id, temporalRunId, condition, { count: resume.count, segment: resume.segment })
}

/**
 * Transfers a run back to a Temporal run that owned it before, and that Temporal reports as the newest: Temporal was
 * restored to a moment before the run was paused, resumed, reset or continued as new.
 * @returns false if the run has ended, or is paused.
 */
export const takeBack = (tx: Tenant, id: string, temporalRunId: string): Promise<boolean> =>
  transfer(tx, id, temporalRunId, 'true', {})

async function transfer(
  tx: Tenant,
  id: string,
  temporalRunId: string,
  condition: string,
  bindings: Record<string, number>,
): Promise<boolean> {
  const { rowCount } = await tx.trx.raw<{ rowCount: number }>(
    `with run as (
       update runs r set status = 'running', temporal_run_id = :temporalRunId, updated_at = now(),
         priority = ${ownPriority('r')}
       where r.organization_id = :organizationId and r.id = :id and r.status in ('queued', 'running')
         and r.temporal_run_id <> :temporalRunId and ${condition}
       returning r.organization_id, r.id
     ), attempts as (
       update run_nodes n set attempt_token = null, may_have_called = true from run
       where n.organization_id = run.organization_id and n.run_id = run.id and n.status = 'running'
         and n.attempt_token is not null
     )
     select from run`,
    { ...bindings, organizationId: tx.organizationId, id, temporalRunId },
  )
  return rowCount > 0
}

/**
 * Transfers the run, from this segment on, to the Temporal run that a reset in the Temporal UI created. `resumed`: of a
 * workflow that resumes the run, and begins with this segment; `origin` is the Temporal run as which it was started. It
 * was reset only if that one, or another reset of it, has recorded the segment before; otherwise the run has ended, or
 * was resumed again, before the workflow began. A segment of that number of others says nothing: a Temporal that was
 * restored to that moment would bring back a run that was terminated since.
 * @returns false if it was not reset, if that Temporal run owns the row, or owned it and is superseded.
 */
export async function reopenRun(
  tx: Tenant,
  id: string,
  temporalRunId: string,
  segment: number,
  resumed?: { origin: string },
): Promise<boolean> {
  const { rowCount } = await tx.trx.raw<{ rowCount: number }>(
    `update runs r set status = 'running', temporal_run_id = :temporalRunId, ended_at = null,
       -- another run may have its key by now
       run_key = case when not exists (select from runs o where o.organization_id = r.organization_id
         and o.workflow_id = r.workflow_id and o.run_key = r.run_key and o.ended_at is null and o.id <> r.id)
         then r.run_key end,
       cancel_requested_at = null, cancel_sent_at = null, pause_requested_at = null, paused_at = null, reopened = true, sleeps_until = null,
       in_pool = false
     where r.organization_id = :organizationId and r.id = :id and r.status not in ('queued', 'skipped')
       and r.temporal_run_id <> :temporalRunId
       and not exists (select from run_segments s where s.organization_id = r.organization_id and s.run_id = r.id
         and s.temporal_run_id = :temporalRunId)
       and (cast(:origin as text) is null or exists (select from run_segments s
         where s.organization_id = r.organization_id and s.run_id = r.id and s.segment = :segment
           and coalesce(s.origin, s.temporal_run_id) = :origin))`,
    { organizationId: tx.organizationId, id, temporalRunId, segment, origin: resumed?.origin ?? null },
  )
  if (rowCount === 0) return false
  await rewind(tx, id, segment)
  return true
}
