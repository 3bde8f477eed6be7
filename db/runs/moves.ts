import type { LoopChange } from '../../workflows/interpret/rows.ts'
import type {
  CreatedObject,
  RunError,
  RunIteration,
  RunNode,
  RunState,
} from '../../workflows/interpret/run-state.ts'
import { type EndStatus, isOpenRun, type RunStatus } from '../../workflows/interpret/statuses.ts'
import type { Resume, SegmentAnswer } from '../../workflows/protocol.ts'
import { AppError, notFound } from '../errors.ts'
import { EVENT_COLUMNS, eventRows, insertEvents, type NewEvent, selectEvents } from '../events/outbox.ts'
import type { System, Tenant } from '../postgres/tenancy.ts'
import { answerParent, listAwaited } from './children.ts'
import { startErrorWorkflow } from './error-workflow.ts'
import { runEvent } from './events.ts'
import { ITERATIONS, LOOPS } from './loops.ts'
import { rewind } from './state.ts'
import { closeWaits, expireWaits } from './waits.ts'

/**
 * Every statement that changes `runs.status`. A run is inserted as `queued` (`runs.ts`), which is the outbox: the relay
 * starts its workflow. `test/db/runs/moves.test.ts` reads this table and tries every move on every status.
 *
 * | move | from | to | made by | condition | also |
 * |---|---|---|---|---|---|
 * | markRunsStarted | queued | running | the relay, after Temporal accepted the start | its first segment does not hold the row, it was not resumed since | deletes the claim |
 * | recordSegment | queued, running | running, paused, completed, failed, cancelled | `advance`, the node test | the row is locked by `lockRun` | writes node rows, answer and events; the caller ends the family (`endFamily`); wakes the relay for the free slot: after the first segment, for a run that has ended, sleeps or is paused |
 * | cancelRun | queued, paused | cancelled | the API | no relay has claimed it | cancels open nodes, ends the family, wakes the requests that wait for its end |
 * | cancelRun | queued, running | unchanged | the API | a relay has claimed it | sets cancel_requested_at, wakes the relay, which cancels in Temporal |
 * | pauseRun | queued | paused | the API | no relay has claimed it | |
 * | pauseRun | queued, running | unchanged | the API | a relay has claimed it | sets pause_requested_at, wakes the relay, which tells the workflow: it pauses the run with its next segment |
 * | unpauseRun | paused | queued | the API | | counts the pause and its time, wakes the relay, which starts the run where it stopped |
 * | unpauseRun | queued, running | unchanged | the API | a pause was requested | clears the request, wakes the relay, which tells the workflow |
 * | terminateRun | queued, running, paused | terminated | the API | | as endUnrecordedRun; the relay terminates the workflow in Temporal |
 * | skipRun | queued | skipped | the relay, for a workflow with `on_limit` | no relay has claimed it | as cancelRun |
 * | failRunStart | queued | failed | the relay, when Temporal rejects the start | | as endUnrecordedRun |
 * | endUnrecordedRun | running | failed, cancelled, terminated, lost | the sweep, when Temporal has ended the workflow | the same Temporal run owns the row | cancels open nodes, raises the event, starts the error workflow, ends the family, wakes the relay for the free slot |
 * | reopenRun | running, paused, completed, failed, cancelled, terminated, lost | running | `advance`, in a Temporal run that a reset made | another Temporal run owns the row, this one never did | reverts node rows from the segment on, clears the requests of a cancellation and a pause |
 * | resumeRun | queued, running | queued | the sweep and the relay, when Temporal does not know the workflow or has closed it | a run, the same Temporal run owns the row, resumed fewer than 10 times | wakes the relay, which starts it where it stopped |
 * | takeOver | queued, running | running | `advance`, in the workflow that resumes the run | another Temporal run owns the row, it is the newest resume, no later segment is recorded | |
 *
 * A move to an end removes the sealed values of a node test.
 * A move from any other status changes nothing. It returns false (cancelRun: the status; recordSegment: throws).
 */

/** @returns the number of runs that changed from queued to running. */
export async function markRunsStarted(
  system: System,
  runs: { organization_id: string; id: string; resumes: number }[],
): Promise<number> {
  // A locked row is skipped: its first segment writes the same. The relay deletes its claim later (`repairClaims`).
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

export interface SegmentRecord {
  temporal_run_id: string
  segment: number
  answer: SegmentAnswer
  /** New rows and changed rows. */
  nodes: RunNode[]
  end?: { status: EndStatus; outputs: unknown; error: RunError | null }
  /** Whether the run is paused. */
  paused?: boolean
  /** Until when the run only waits; null or absent: it is active. */
  sleeps_until?: string | null
  /** The events that the segment raised. */
  events: NewEvent[]
  /** What its nodes created. */
  created?: CreatedObject[]
  /** Loops and iterations that are new or changed. */
  loops?: LoopChange[]
  iterations?: RunIteration[]
}

const NODE_COLUMNS = `path text, node_id text, node_type text, title text, status text, attempt integer, input jsonb,
  output jsonb, handle text, error jsonb, wait_until timestamptz, segment integer, settled_segment integer, position integer,
  started_at timestamptz, ended_at timestamptz`

const CREATED = `, created as (
       insert into run_effects (organization_id, run_id, path, node_id, n, object, object_id, result)
       select run.organization_id, run.id, c.*
       from run, jsonb_to_recordset(cast(:created as jsonb)) as c(path text, node_id text, n integer, object text,
         object_id uuid, result jsonb)
       on conflict (organization_id, run_id, path, node_id, n) do update
         set object = excluded.object, object_id = excluded.object_id, result = excluded.result
     )`

/** Writes all changes of a segment to its run, in one statement. Throws if the run has ended. */
export async function recordSegment(tx: Tenant, runId: string, record: SegmentRecord): Promise<void> {
  const { created = [], loops = [], iterations = [] } = record
  const { rows } = await tx.trx.raw<{ rows: { others_wait: boolean; watched: boolean }[] }>(
    `with run as (
       update runs set status = :status, outputs = cast(:outputs as jsonb), error = cast(:error as jsonb),
         temporal_run_id = :temporalRunId, stuck_reason = null, failures = 0, updated_at = now(),
         sleeps_until = cast(:sleepsUntil as timestamptz),
         started_at = coalesce(started_at, now()),
         ended_at = case when cast(:ends as boolean) then clock_timestamp() end,
         paused_at = case when cast(:status as text) = 'paused' then now() end,
         node = case when cast(:ends as boolean) then node - 'sealed' else node end
       where organization_id = cast(:organizationId as uuid) and id = cast(:runId as uuid)
         and status in ('queued', 'running')
       returning organization_id, id, coalesce(watched_until > now(), false) as watched
     ), nodes as (
       insert into run_nodes (organization_id, run_id, path, node_id, node_type, title, status, attempt, input, output,
         handle, error, wait_until, segment, settled_segment, position, started_at, ended_at)
       select run.organization_id, run.id, n.*
       from run, jsonb_to_recordset(cast(:nodes as jsonb)) as n(${NODE_COLUMNS})
       on conflict (organization_id, run_id, path, node_id) do update set
         status = excluded.status, attempt = excluded.attempt, input = excluded.input, output = excluded.output,
         handle = excluded.handle, error = excluded.error, wait_until = excluded.wait_until,
         settled_segment = excluded.settled_segment, ended_at = excluded.ended_at
       -- an activity may have settled its row since it was read: keep the newer row
       where run_nodes.status in ('running', 'waiting') or run_nodes.status = excluded.status
     ), segment as (
       insert into run_segments (organization_id, run_id, temporal_run_id, segment, answer)
       select run.organization_id, run.id, :temporalRunId, :segment, cast(:answer as jsonb) from run
     ), events as (
       insert into events (${EVENT_COLUMNS})
       select e.* from run cross join lateral (${selectEvents('cast(:events as jsonb)')}) e
     )${created.length > 0 ? CREATED : ''}${loops.length > 0 ? LOOPS : ''}${iterations.length > 0 ? ITERATIONS : ''}
     select (:segment = 0 or cast(:status as text) <> 'running' or cast(:sleepsUntil as timestamptz) is not null) and exists (
       select from runs other where other.organization_id = run.organization_id and other.status = 'queued'
         and not exists (
           select from run_claims c where c.organization_id = other.organization_id and c.run_id = other.id)) as others_wait, run.watched
     from run`,
    {
      organizationId: tx.organizationId,
      runId,
      nodes: JSON.stringify(record.nodes),
      events: JSON.stringify(eventRows(tx, record.events)),
      temporalRunId: record.temporal_run_id,
      segment: record.segment,
      answer: JSON.stringify(record.answer),
      ...(created.length > 0 ? { created: JSON.stringify(created) } : {}),
      ...(loops.length > 0 ? { loops: JSON.stringify(loops) } : {}),
      ...(iterations.length > 0 ? { iterations: JSON.stringify(iterations) } : {}),
      status: record.end?.status ?? (record.paused ? 'paused' : 'running'),
      ends: record.end !== undefined,
      sleepsUntil: record.sleeps_until ?? null,
      outputs: record.end?.outputs === undefined ? null : JSON.stringify(record.end.outputs),
      error: record.end?.error ? JSON.stringify(record.end.error) : null,
    },
  )
  if (!rows[0]) throw new Error(`run ${runId} has ended: its segment ${record.segment} cannot be recorded`)
  if (record.end) tx.wake('agx_run_ended', runId)
  if (rows[0].watched) tx.wake('agx_run_changed', runId)
  // A slot is free: of a run, or of a first segment.
  if (rows[0].others_wait) tx.wake('agx_runs')
}

/** SQL: whether no relay is starting the queued run. */
const UNCLAIMED = `status = 'queued' and not exists (
  select from run_claims c where c.organization_id = runs.organization_id and c.run_id = runs.id)`

/** SQL: whether Temporal cannot know the run. */
const NEVER_CLAIMED = `resumes = 0 and ${UNCLAIMED}`

/** SQL: whether no workflow works on the run: it can end at once. */
const AT_REST = `(status = 'paused' or ${NEVER_CLAIMED})`

/** The statement after the lock sees a claim that was made before it. Throws `not_found`. */
async function lockRow(tx: Tenant, id: string): Promise<RunStatus> {
  const { rows } = await tx.trx.raw<{ rows: { status: RunStatus }[] }>(
    `select status from runs where organization_id = ? and id = ? and kind = 'run' for no key update`,
    [tx.organizationId, id],
  )
  if (!rows[0]) throw notFound('run')
  return rows[0].status
}

/**
 * Cancels a run or requests its cancellation: a run without a workflow ends at once, a running one when Temporal has
 * cancelled its workflow. An ended run stays unchanged. @returns its new status. Throws `not_found`.
 * @param reason the message of the run's error, if nobody asked for it.
 */
export async function cancelRun(tx: Tenant, id: string, reason: string | null = null): Promise<RunStatus> {
  const before = await lockRow(tx, id)
  if (!isOpenRun(before)) return before
  const { rows } = await tx.trx.raw<{ rows: { status: RunStatus; parent_run_id: string | null }[] }>(
    `update runs set
       cancel_requested_at = coalesce(cancel_requested_at, now()), cancel_reason = coalesce(cancel_reason, :reason),
       -- a run that a relay has claimed counts as running
       status = case when ${AT_REST} then 'cancelled' else status end,
       ended_at = case when ${AT_REST} then now() end,
       error = case when ${AT_REST} and cast(:reason as text) is not null
         then jsonb_build_object('code', 'cancelled', 'message', cast(:reason as text)) end,
       updated_at = now()
     where organization_id = :organizationId and id = :id
     returning status, parent_run_id`,
    { organizationId: tx.organizationId, id, reason },
  )
  const { status, parent_run_id } = rows[0]!
  if (status !== 'cancelled') tx.wake('agx_cancels')
  else await afterEnd(tx, { id, parent_run_id })
  return status
}

/** What follows the end of a run outside of a segment. */
async function afterEnd(tx: Tenant, run: Pick<RunState['run'], 'id' | 'parent_run_id'>): Promise<void> {
  await tx
    .trx('run_nodes')
    .where({ organization_id: tx.organizationId, run_id: run.id })
    .whereIn('status', ['running', 'waiting'])
    .update({ status: 'cancelled', ended_at: tx.trx.fn.now() })
  await tx
    .trx('run_iterations')
    .where({ organization_id: tx.organizationId, run_id: run.id, settled_segment: null })
    .update({ status: 'cancelled', ended_at: tx.trx.fn.now() })
  await tx
    .trx('run_loops')
    .where({ organization_id: tx.organizationId, run_id: run.id, open: true })
    .update({ open: false })
  await endFamily(tx, run)
  tx.wake('agx_run_ended', run.id)
  tx.wake('agx_run_changed', run.id)
}

/** SQL: the relay tells the workflow to read the rows, unless `atRest`: then there is none. */
const refreshUnless = (
  atRest: string,
) => `workflow_command = case when ${atRest} then null else 'refresh' end,
  workflow_command_at = clock_timestamp(), workflow_command_lease_until = null`

/**
 * Pauses a run, or requests its pause: it starts no further node, attempts in progress end and are recorded, then it is
 * paused. @returns its new status. Throws `not_found`, `conflict` for a run that has ended.
 */
export async function pauseRun(tx: Tenant, id: string): Promise<RunStatus> {
  const before = await lockRow(tx, id)
  if (before === 'paused') return before
  if (!isOpenRun(before)) throw hasEnded(before, 'paused')
  const { rows } = await tx.trx.raw<{ rows: { status: RunStatus }[] }>(
    `update runs set status = case when ${UNCLAIMED} then 'paused' else status end,
       paused_at = case when ${UNCLAIMED} then now() end,
       pause_requested_at = coalesce(pause_requested_at, now()), updated_at = now(),
       ${refreshUnless(UNCLAIMED)}
     where organization_id = ? and id = ? returning status`,
    [tx.organizationId, id],
  )
  tx.wake('agx_run_commands')
  tx.wake('agx_run_changed', id)
  return rows[0]!.status
}

/**
 * Continues a paused run: the relay starts a new workflow where it stopped, when a slot is free. A pause that was only
 * requested is withdrawn. Any other open run is unchanged. @returns its new status. Throws as `pauseRun`.
 */
export async function unpauseRun(tx: Tenant, id: string): Promise<RunStatus> {
  const before = await lockRow(tx, id)
  if (!isOpenRun(before)) throw hasEnded(before, 'resumed')
  const { rows } = await tx.trx.raw<{ rows: { status: RunStatus }[] }>(
    `update runs set status = case when status = 'paused' then 'queued' else status end,
       resumes = resumes + case when status = 'paused' then 1 else 0 end,
       pauses = pauses + case when status = 'paused' then 1 else 0 end,
       paused_ms = paused_ms + coalesce(extract(epoch from now() - greatest(paused_at, started_at)) * 1000, 0)
         * case when started_at is null then 0 else 1 end,
       pause_requested_at = null, paused_at = null, updated_at = now(), ${refreshUnless("status = 'paused'")}
     where organization_id = ? and id = ? and pause_requested_at is not null
     returning status`,
    [tx.organizationId, id],
  )
  if (!rows[0]) return before
  if (before === 'paused')
    await tx.trx('run_claims').where({ organization_id: tx.organizationId, run_id: id }).delete()
  tx.wake('agx_runs')
  tx.wake('agx_run_commands')
  tx.wake('agx_run_changed', id)
  return rows[0].status
}

const hasEnded = (status: RunStatus, what: string) =>
  new AppError('conflict', `the run is ${status}: a run that has ended cannot be ${what}`)

/**
 * Ends a run at once, without end nodes; the relay then terminates its workflow. @returns false if it had ended.
 * Throws `not_found`.
 */
export async function terminateRun(tx: Tenant, id: string): Promise<boolean> {
  await lockRow(tx, id)
  const ended = await endRun(tx, id, {
    where: `kind = 'run' and status in ('queued', 'running', 'paused')`,
    bindings: {},
    status: 'terminated',
    error: { code: 'terminated', message: 'The run was terminated.' },
    set: `, workflow_command = case when not (${NEVER_CLAIMED}) then 'terminate' end, workflow_command_at = now(),
      workflow_command_lease_until = null`,
  })
  if (ended) tx.wake('agx_run_commands')
  return ended
}

/** Ends a queued run that its workflow's concurrency does not admit. @returns whether it was queued and unclaimed. */
export async function skipRun(tx: Tenant, id: string, reason: string): Promise<boolean> {
  await lockRow(tx, id)
  const { rows } = await tx.trx.raw<{ rows: { parent_run_id: string | null }[] }>(
    `update runs set status = 'skipped', ended_at = now(), updated_at = now(),
       error = jsonb_build_object('code', 'concurrency_limit', 'message', cast(:reason as text))
     where organization_id = :organizationId and id = :id and ${NEVER_CLAIMED}
     returning parent_run_id`,
    { organizationId: tx.organizationId, id, reason },
  )
  if (rows[0]) await afterEnd(tx, { id, ...rows[0] })
  return rows[0] !== undefined
}

/** Fails a run whose start Temporal rejected with `reason`. @returns whether it was queued. */
export const failRunStart = (tx: Tenant, id: string, reason: string): Promise<boolean> =>
  endRun(tx, id, {
    where: `status = 'queued'`,
    bindings: {},
    status: 'failed',
    error: { code: 'start_refused', message: reason.slice(0, 1_000) },
  })

/**
 * Ends a run whose workflow has ended without recording it. `temporalRunId` is the Temporal run that was looked up.
 * @returns false if the run has ended, or if another Temporal run owns it after a reset.
 */
export const endUnrecordedRun = (
  tx: Tenant,
  id: string,
  temporalRunId: string | null,
  status: Exclude<EndStatus, 'completed'>,
  error: RunError,
): Promise<boolean> =>
  endRun(tx, id, {
    where: `status = 'running' and temporal_run_id is not distinct from :temporalRunId`,
    bindings: { temporalRunId },
    status,
    error,
  })

async function endRun(
  tx: Tenant,
  id: string,
  move: {
    where: string
    bindings: Record<string, string | null>
    status: EndStatus
    error: RunError
    set?: string
  },
): Promise<boolean> {
  const { status } = move
  const organization_id = tx.organizationId
  const { rows } = await tx.trx.raw<{ rows: Pick<RunState, 'run'>[] }>(
    `update runs set status = :status, error = :error, ended_at = now(), updated_at = now(),
       node = node - 'sealed'${move.set ?? ''}
     where organization_id = :organizationId and id = :id and ${move.where}
     returning to_jsonb(runs) - 'outputs' - 'error' as run`,
    { ...move.bindings, organizationId: organization_id, id, status, error: JSON.stringify(move.error) },
  )
  const run = rows[0]?.run
  if (!run) return false
  const error = status === 'cancelled' ? move.error : await startErrorWorkflow(tx, run, move)
  if (error !== move.error)
    await tx
      .trx('runs')
      .where({ organization_id, id })
      .update({ error: JSON.stringify(error) })
  if (run.kind === 'run' && status !== 'cancelled') await insertEvents(tx, [runEvent(run, status, { error })])
  await afterEnd(tx, run)
  // The run's slot is free.
  tx.wake('agx_runs')
  return true
}

/**
 * After the end of a run: cancels the children that its nodes waited for, closes its other waits, and answers its parent. Locks go from parent to
 * child; a child writes no row of its parent but the wait.
 */
export async function endFamily(
  tx: Tenant,
  run: Pick<RunState['run'], 'id' | 'parent_run_id'>,
): Promise<void> {
  for (const child of await listAwaited(tx, run.id)) await cancelRun(tx, child)
  await closeWaits(tx, run.id)
  if (run.parent_run_id !== null) await answerParent(tx, run.id)
}

/** After nodes of a run were cancelled that goes on: cancels the children that they waited for, closes their other waits. */
export async function cancelWaits(
  tx: Tenant,
  runId: string,
  nodes: Pick<RunNode, 'path' | 'node_id'>[],
): Promise<void> {
  for (const child of await listAwaited(tx, runId, nodes)) await cancelRun(tx, child)
  await expireWaits(tx, runId, nodes)
}

/**
 * Transfers the run to the Temporal run that a reset in the Temporal UI created, from this segment on.
 * @returns false if that Temporal run owns the row, or owned it and is superseded.
 */
export async function reopenRun(
  tx: Tenant,
  id: string,
  temporalRunId: string,
  segment: number,
): Promise<boolean> {
  const { rowCount } = await tx.trx.raw<{ rowCount: number }>(
    `update runs r set status = 'running', temporal_run_id = :temporalRunId, ended_at = null,
       cancel_requested_at = null, cancel_sent_at = null, pause_requested_at = null, paused_at = null, reopened = true, sleeps_until = null
     where r.organization_id = :organizationId and r.id = :id and r.status not in ('queued', 'skipped')
       and r.temporal_run_id <> :temporalRunId
       and not exists (select from run_segments s where s.organization_id = r.organization_id and s.run_id = r.id
         and s.temporal_run_id = :temporalRunId)`,
    { organizationId: tx.organizationId, id, temporalRunId },
  )
  if (rowCount === 0) return false
  await rewind(tx, id, segment)
  return true
}

/** A run that Temporal loses more often than this is lost. */
const MAX_RESUMES = 10

/**
 * Queues a run again whose workflow Temporal no longer has: the relay starts a new one where the run stopped.
 * `temporalRunId` is the Temporal run that was looked up. @returns false if it cannot be resumed.
 */
export async function resumeRun(tx: Tenant, id: string, temporalRunId: string | null): Promise<boolean> {
  const { rowCount } = await tx.trx.raw<{ rowCount: number }>(
    `update runs set status = 'queued', resumes = resumes + 1, cancel_lease_until = null, cancel_sent_at = null,
       sleeps_until = null, stuck_reason = null, updated_at = now()
     where organization_id = :organizationId and id = :id and kind = 'run' and status in ('queued', 'running')
       and temporal_run_id is not distinct from :temporalRunId and resumes - pauses < ${MAX_RESUMES}`,
    { organizationId: tx.organizationId, id, temporalRunId },
  )
  if (rowCount === 0) return false
  await tx.trx('run_claims').where({ organization_id: tx.organizationId, run_id: id }).delete()
  tx.wake('agx_runs')
  return true
}

/**
 * Transfers a resumed run to the Temporal run that was started for it. Its rows stay as they are.
 * @returns false if the row is already further, or was resumed again.
 */
export async function takeOver(
  tx: Tenant,
  id: string,
  temporalRunId: string,
  resume: Resume,
): Promise<boolean> {
  const { rowCount } = await tx.trx.raw<{ rowCount: number }>(
    `update runs r set status = 'running', temporal_run_id = :temporalRunId, updated_at = now()
     where r.organization_id = :organizationId and r.id = :id and r.status in ('queued', 'running')
       and r.temporal_run_id <> :temporalRunId and r.resumes = :count
       and not exists (select from run_segments s where s.organization_id = r.organization_id and s.run_id = r.id
         and s.temporal_run_id = r.temporal_run_id and s.segment >= :segment)`,
    { organizationId: tx.organizationId, id, temporalRunId, count: resume.count, segment: resume.segment },
  )
  return rowCount > 0
}
