import type { RunTrigger } from '../../workflows/interpret/run-state.ts'
import type { System } from '../postgres/tenancy.ts'
import { defineQueue } from '../queue/queue.ts'
import { ownPriority } from './priority.ts'

/** Queries of the relay and the sweep on runs and node tests; `claims.ts` has the claims, `moves/` the status changes. */

/** A claimed run or node test. */
export interface ClaimedRun {
  organization_id: string
  id: string
  kind: 'run' | 'node_test'
  workflow_id: string | null
  workflow_name: string
  workflow_version: number | null
  trigger_type: RunTrigger['type']
  record_id: string | null
  /** An open run is late after it. */
  expected_by: Date | null
  starts_with: string | null
  /** The worker pool of a node test, if the organization may use it. */
  pool?: string | null
  organization_name: string
  /** The Temporal run that owned it, if it was resumed. */
  temporal_run_id: string | null
  /** The events that the history of that Temporal run had at least. */
  history_length: number | null
  /** The number of resumes, and the segment to continue with; null if none is recorded. */
  resumes: number
  segment: number | null
}

/** A run whose cancellation was requested. */
export type ClaimedCancel = Pick<ClaimedRun, 'organization_id' | 'id' | 'kind'>

/** Running runs whose cancellation was requested but not sent to Temporal. */
export const cancels = defineQueue<ClaimedCancel>({
  table: 'runs',
  key: ['organization_id', 'id'],
  waits: "status = 'running' and cancel_requested_at is not null and cancel_sent_at is null",
  order: 'cancel_requested_at',
  returning: ['kind'],
  lease: 'cancel_lease_until',
  // A reset clears the request.
  done: { sets: 'cancel_sent_at = now()', if: 'r.cancel_requested_at is not null' },
})

/** A running run without a recent write. */
export interface IdleRun {
  organization_id: string
  id: string
  kind: 'run' | 'node_test'
  /** The Temporal run that owns it. */
  temporal_run_id: string | null
  /** Number of running external nodes, without those whose next attempt is not due: a timer may wait for it. */
  calls: number
  /** Greatest attempt number among them; 0 without one. */
  attempts: number
  /** Whether it waits for a time in the past, or for nothing. */
  overdue: boolean
  /** The events that its history in Temporal has at least. */
  history_length: number | null
  /** Whether its workflow was, or will be, told something, and nothing followed yet. */
  told: boolean
  /** Whether it was told over a minute ago. */
  unheeded: boolean
}

/** Tolerated delay of a run at the end of a wait. */
const OVERDUE = `interval '10 seconds'`

/** SQL: the time of a message to a workflow that should have had its effect by now. */
const LONG_AGO = "now() - interval '1 minute'"

/** The condition of the index `runs_idle`. */
const IS_ACTIVE = "status = 'running' and sleeps_until is null"
const IDLE_RUN = `r.organization_id, r.id, r.kind, r.temporal_run_id, r.history_length, open.calls, open.attempts,
  open.overdue, r.cancel_requested_at is not null and r.ending is null or r.pause_requested_at is not null or open.answered as told,
  coalesce(r.cancel_sent_at < ${LONG_AGO} and r.ending is null or open.unheeded
    or r.pause_requested_at < ${LONG_AGO} and not open.attempting, false) as unheeded`
const OPEN_NODES = `cross join lateral (
       select cast(count(*) filter (where n.status = 'running' and coalesce(n.next_attempt_at, '-infinity') < now())
           as integer) as calls,
         coalesce(max(n.attempt) filter (where n.status = 'running'), 0) as attempts,
         coalesce(bool_or(n.status = 'waiting' and coalesce(n.wait_until, 'infinity') < now() - ${OVERDUE}), true) as overdue,
         coalesce(bool_or(n.attempt_token is not null), false) as attempting,
         coalesce(bool_or(n.status = 'waiting' and exists (select from run_waits w
           where w.organization_id = n.organization_id and w.run_id = n.run_id and w.path = n.path
             and w.node_id = n.node_id and w.answered_at is not null and w.notified_at < ${LONG_AGO})), false) as unheeded,
         coalesce(bool_or(n.status = 'waiting' and exists (select from run_waits w
           where w.organization_id = n.organization_id and w.run_id = n.run_id and w.path = n.path
             and w.node_id = n.node_id and w.answered_at is not null)), false) as answered
       from run_nodes n
       where n.organization_id = r.organization_id and n.run_id = r.id and n.status in ('running', 'waiting')) open`

/** Factor by which sleeping runs are checked less often: thousands may sleep for weeks. */
const ASLEEP = 720
/**
 * Factor of the check after the last change of a sleeping run, which finds what Temporal has lost of it. Later than the
 * witness (`worker/witness.ts`) knows the moment of the change: what was lost after a check, the witness finds.
 */
const FALLEN_ASLEEP = 3

/**
 * Up to `limit` running runs without a write for `idle` (a PostgreSQL interval) nor since `before`, longest idle first.
 * Active ones also if they have none since the last loss of Temporal. Sleeping runs are included only if they are
 * overdue, once after each change, or without a write for 720 times as long.
 */
export async function listIdleRuns(
  system: System,
  idle: string,
  before: Date,
  limit: number,
): Promise<IdleRun[]> {
  const { rows } = await system.raw<{ rows: IdleRun[] }>(
    `select ${IDLE_RUN}
     from (
       (select * from runs
        where ${IS_ACTIVE}
          and updated_at < least(cast(:before as timestamptz),
            greatest(now() - cast(:idle as interval), (select lost_at from sweep_state)))
        order by updated_at limit :limit)
       union all
       (select * from runs
        where status = 'running' and sleeps_until is not null and sleeps_until < now() - ${OVERDUE}
          and updated_at < least(now() - cast(:idle as interval), cast(:before as timestamptz))
        order by sleeps_until limit :limit)
       union all
       (select * from runs
        where status = 'running' and sleeps_until is not null and not checked and sleeps_until >= now() - ${OVERDUE}
          and updated_at < least(now() - ${FALLEN_ASLEEP} * cast(:idle as interval), cast(:before as timestamptz))
        order by updated_at limit :limit)
       union all
       (select * from runs
        where status = 'running' and sleeps_until is not null and checked and sleeps_until >= now() - ${OVERDUE}
          and updated_at < least(now() - ${ASLEEP} * cast(:idle as interval), cast(:before as timestamptz))
        order by updated_at limit :limit)
       order by updated_at limit :limit) r
     ${OPEN_NODES}
     order by r.updated_at`,
    { idle, before, limit },
  )
  return rows
}

/** Up to `limit` active runs without a write for `quiet` (a PostgreSQL interval), the longest quiet ones. */
export async function listQuietRuns(system: System, quiet: string, limit: number): Promise<IdleRun[]> {
  const { rows } = await system.raw<{ rows: IdleRun[] }>(
    `select ${IDLE_RUN}
     from (
       select * from runs where ${IS_ACTIVE} and updated_at < now() - cast(? as interval)
       order by updated_at limit ?) r
     ${OPEN_NODES}
     order by r.updated_at`,
    [quiet, limit],
  )
  return rows
}

/**
 * Up to `limit` of the active runs without a write for `quiet` (a PostgreSQL interval), at random, at the cost of as many
 * index lookups: each is the one whose last write is next before a random moment. The moments are dense near now, as
 * the logarithm of the age is uniform: a run that was just lost is as likely as one among many that wait for long.
 */
export async function pickQuietRuns(system: System, quiet: string, limit: number): Promise<IdleRun[]> {
  const { rows } = await system.raw<{ rows: IdleRun[] }>(
    `with ages as (
       select extract(epoch from cast(:quiet as interval)) as least,
         extract(epoch from now() - (select min(updated_at) from runs where ${IS_ACTIVE})) as most
     ), moments as materialized (
       select now() - make_interval(secs => least * power(most / least, random())) as moment
       from ages, generate_series(1, :limit) where most > least)
     select ${IDLE_RUN}
     from (
       select distinct on (one.organization_id, one.id) one.*
       from moments cross join lateral (
         select * from runs where ${IS_ACTIVE} and updated_at <= moment order by updated_at desc limit 1) one) r
     ${OPEN_NODES}
     order by r.updated_at`,
    { quiet, limit },
  )
  return rows
}

/** Up to `limit` sleeping runs without a write since the last loss of Temporal, last changed first. */
export async function listUnverifiedRuns(system: System, limit: number): Promise<IdleRun[]> {
  const { rows } = await system.raw<{ rows: IdleRun[] }>(
    `select ${IDLE_RUN}
     from (
       select * from runs
       where status = 'running' and sleeps_until is not null
         and updated_at < (select lost_at from sweep_state)
       order by updated_at desc limit ?) r
     ${OPEN_NODES}
     order by r.updated_at desc`,
    [limit],
  )
  return rows
}

/**
 * The runs among `runs`, whose workflows are open in Temporal, that have ended or are paused for a while: three times
 * `idle` (a PostgreSQL interval).
 */
export async function listAtRest(
  system: System,
  runs: { organization_id: string; id: string }[],
  idle: string,
): Promise<{ organization_id: string; id: string }[]> {
  const { rows } = await system.raw<{ rows: { organization_id: string; id: string }[] }>(
    `select r.organization_id, r.id
     from jsonb_to_recordset(:runs) as s(organization_id uuid, id uuid)
     join runs r on r.organization_id = s.organization_id and r.id = s.id
     where r.status not in ('queued', 'running') and r.updated_at < now() - 3 * cast(:idle as interval)`,
    { runs: JSON.stringify(runs.map(({ organization_id, id }) => ({ organization_id, id }))), idle },
  )
  return rows
}

/**
 * Whether it is time to compare the open workflows in Temporal with the runs: after a loss of Temporal, and as rarely as
 * sleeping runs are checked. @returns the database's time; undefined if it is not time.
 */
export async function comparisonDue(system: System, idle: string): Promise<Date | undefined> {
  const { rows } = await system.raw<{ rows: { now: Date }[] }>(
    `select now() as now from sweep_state
     where compared_at is null or compared_at < lost_at or compared_at < now() - ${ASLEEP} * cast(? as interval)`,
    [idle],
  )
  return rows[0]?.now
}

/** Records that the open workflows were compared at this time. */
export async function endComparison(system: System, at: Date): Promise<void> {
  await system('sweep_state').update({ compared_at: at })
}

/**
 * After a workflow that must be told something was not found: the next sweep checks its run, even if it sleeps. One that
 * waits for a workflow since Temporal has lost it overtakes those that only sleep.
 */
export async function lookUpSoon(
  system: System,
  { organization_id, id }: { organization_id: string; id: string },
): Promise<void> {
  await system.raw(
    `update runs r set sleeps_until = null, priority = ${ownPriority('r')}
     where organization_id = ? and id = ? and (status = 'running' or status = 'queued' and priority <> ${ownPriority('r')})`,
    [organization_id, id],
  )
}

/** The running runs among `runs`. */
export async function listOpenRuns(
  system: System,
  runs: { organization_id: string; id: string }[],
): Promise<IdleRun[]> {
  const { rows } = await system.raw<{ rows: IdleRun[] }>(
    `select ${IDLE_RUN}
     from jsonb_to_recordset(?) as s(organization_id uuid, id uuid)
     join runs r on r.organization_id = s.organization_id and r.id = s.id
     ${OPEN_NODES}
     where r.status = 'running'`,
    [JSON.stringify(runs)],
  )
  return rows
}

/** A run that the sweep has checked. */
export interface CheckedRun extends Pick<IdleRun, 'organization_id' | 'id'> {
  /** The reason why it makes no progress; null if it does; undefined if unknown: the last reason stays. */
  stuck_reason: string | null | undefined
  /** Whether the next check may come late. */
  checked: boolean
}

/** Has the sweep check runs once more, in which something should change now. Runs that make progress are locked. */
export async function checkAgain(
  system: System,
  runs: { organization_id: string; id: string }[],
): Promise<void> {
  await system.raw(
    `update runs r set checked = false, updated_at = now()
     from (
       select r.organization_id, r.id from jsonb_to_recordset(?) as s(organization_id uuid, id uuid)
       join runs r on r.organization_id = s.organization_id and r.id = s.id
       where r.status = 'running' and r.checked for no key update of r skip locked) s
     where r.organization_id = s.organization_id and r.id = s.id`,
    [JSON.stringify(runs)],
  )
}

/**
 * Records that the sweep has checked runs, so that the next sweep checks others first. A locked row is skipped: its run
 * makes progress.
 */
export async function markRunsChecked(system: System, runs: CheckedRun[]): Promise<void> {
  const rows = runs.map(({ stuck_reason, ...run }) => ({
    ...run,
    stuck_reason,
    known: stuck_reason !== undefined,
  }))
  await system.raw(
    `update runs r set updated_at = now(), checked = s.checked,
       stuck_reason = case when s.known then s.stuck_reason else r.stuck_reason end
     from (
       select r.organization_id, r.id, s.stuck_reason, s.known, s.checked
       from jsonb_to_recordset(?) as s(organization_id uuid, id uuid, stuck_reason text, known boolean, checked boolean)
       join runs r on r.organization_id = s.organization_id and r.id = s.id
       where r.status = 'running' for no key update of r skip locked) s
     where r.organization_id = s.organization_id and r.id = s.id`,
    [JSON.stringify(rows)],
  )
}
