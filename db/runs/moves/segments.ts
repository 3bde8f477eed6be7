import type { Happened, SegmentAnswer } from '../../../workflows/bundle/protocol.ts'
import type { LoopChange } from '../../../workflows/interpret/rows.ts'
import type {
  CreatedObject,
  Ending,
  RunError,
  RunIteration,
  RunNode,
} from '../../../workflows/interpret/run-state.ts'
import type { EndStatus } from '../../../workflows/shared/statuses.ts'
import { EVENT_COLUMNS, eventRows, selectEvents } from '../../events/outbox.ts'
import type { NewEvent } from '../../model/events/event.ts'
import type { Tenant } from '../../postgres/tenancy.ts'
import { ITERATIONS, LOOPS } from '../loops.ts'

/** The segments of a run; the table of its moves is in `db/model/runs/statuses.ts`. */

export interface SegmentRecord {
  temporal_run_id: string
  segment: number
  /** The Temporal run as which a workflow that resumes the run was started; another one if it was reset. */
  origin?: string | undefined
  /** What the workflow reported: a repeated call reports the same. */
  happened?: Happened[]
  answer: SegmentAnswer
  /** The events of the workflow's history when the segment began. */
  history_length?: number | undefined
  /** New and changed rows. */
  nodes: RunNode[]
  end?: { status: EndStatus; outputs: unknown; error: RunError | null }
  /** The outcome of the run, if the segment has begun its cleanup. */
  ending?: Ending | undefined
  /** Whether the run is paused. */
  paused?: boolean
  /** The time until which the run only waits; null or absent: it is active. */
  sleeps_until?: string | null
  /** Whether only workers of pools have work for it. */
  in_pool?: boolean
  /** The events that the segment raised. */
  events: NewEvent[]
  /** The characters of the data that its nodes have written. */
  characters?: number
  /** The objects that its nodes created. */
  created?: CreatedObject[]
  /** New and changed loops and iterations. */
  loops?: LoopChange[]
  iterations?: RunIteration[]
}

/** Writes all changes of a segment to its run, in one statement. Throws if the run has ended. */
export async function recordSegment(tx: Tenant, runId: string, record: SegmentRecord): Promise<void> {
  const { created = [], loops = [], iterations = [] } = record
  // Before the statement, so that COMMIT and the notifications can be sent with it.
  if (record.end) tx.wake('agx_run_ended', runId)
  const { rows } = await tx.trx.raw<{ rows: { others_wait: boolean; watched: boolean }[] }>(
    `with run as (
       update runs set status = :status, outputs = cast(:outputs as jsonb), error = cast(:error as jsonb),
         temporal_run_id = :temporalRunId, history_length = :historyLength, checked = false, stuck_reason = null,
         failures = 0, updated_at = now(), data_bytes = data_bytes + :characters,
         sleeps_until = cast(:sleepsUntil as timestamptz), in_pool = cast(:inPool as boolean),
         started_at = coalesce(started_at, now()), ending = coalesce(cast(:ending as jsonb), ending),
         ended_at = case when cast(:ends as boolean) then clock_timestamp() end,
         paused_at = case when cast(:status as text) = 'paused' then now() end,
         node = case when cast(:ends as boolean) then node - 'sealed' else node end
       where organization_id = cast(:organizationId as uuid) and id = cast(:runId as uuid)
         and status in ('queued', 'running')
       returning organization_id, id, coalesce(watched_until > now(), false) as watched
     ), nodes as (
       insert into run_nodes (organization_id, run_id, path, node_id, node_type, title, status, attempt, input, output,
         handle, error, wait_until, segment, settled_segment, position, started_at, ended_at, role, undoes)
       select run.organization_id, run.id, n.*
       from run, jsonb_to_recordset(cast(:nodes as jsonb)) as n(${NODE_COLUMNS})
       on conflict (organization_id, run_id, path, node_id) do update set
         status = excluded.status, attempt = excluded.attempt, input = excluded.input, output = excluded.output,
         handle = excluded.handle, error = excluded.error, wait_until = excluded.wait_until,
         settled_segment = excluded.settled_segment, ended_at = excluded.ended_at,
         progress = case when excluded.status = 'running' then run_nodes.progress end
       -- an activity may have settled its row since it was read: keep the newer row
       where run_nodes.status in ('running', 'waiting') or run_nodes.status = excluded.status
     ), segment as (
       insert into run_segments (organization_id, run_id, temporal_run_id, segment, origin, happened, answer)
       select run.organization_id, run.id, :temporalRunId, :segment, nullif(cast(:origin as text), :temporalRunId), cast(:happened as jsonb), cast(:answer as jsonb) from run
     ), events as (
       insert into events (${EVENT_COLUMNS})
       select e.* from run cross join lateral (${selectEvents('cast(:events as jsonb)')}) e
     )${created.length > 0 ? CREATED : ''}${loops.length > 0 ? LOOPS : ''}${iterations.length > 0 ? ITERATIONS : ''}
     select (:segment = 0 or cast(:status as text) <> 'running' or cast(:sleepsUntil as timestamptz) is not null
         or cast(:inPool as boolean)) and exists (
       select from runs other where other.organization_id = run.organization_id and other.status = 'queued' and other.hold is null
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
      characters: record.characters ?? 0,
      origin: record.origin ?? null,
      happened: JSON.stringify(record.happened ?? []),
      answer: JSON.stringify(record.answer),
      historyLength: record.history_length ?? null,
      ...(created.length > 0 ? { created: JSON.stringify(created) } : {}),
      ...(loops.length > 0 ? { loops: JSON.stringify(loops) } : {}),
      ...(iterations.length > 0 ? { iterations: JSON.stringify(iterations) } : {}),
      status: record.end?.status ?? (record.paused ? 'paused' : 'running'),
      ends: record.end !== undefined,
      sleepsUntil: record.sleeps_until ?? null,
      inPool: record.in_pool ?? false,
      outputs: record.end?.outputs === undefined ? null : JSON.stringify(record.end.outputs),
      ending: record.ending ? JSON.stringify(record.ending) : null,
      error: record.end?.error ? JSON.stringify(record.end.error) : null,
    },
  )
  if (!rows[0]) throw new Error(`run ${runId} has ended: its segment ${record.segment} cannot be recorded`)
  if (rows[0].watched) tx.wake('agx_run_changed', runId)
  // The end of the run, or of its first segment, has freed a slot.
  if (rows[0].others_wait) tx.wake('agx_runs')
}

const NODE_COLUMNS = `path text, node_id text, node_type text, title text, status text, attempt integer, input jsonb,
  output jsonb, handle text, error jsonb, wait_until timestamptz, segment integer, settled_segment integer, position integer,
  started_at timestamptz, ended_at timestamptz, role text, undoes text`

const CREATED = `, created as (
       insert into run_effects (organization_id, run_id, path, node_id, n, object, object_id, result)
       select run.organization_id, run.id, c.*
       from run, jsonb_to_recordset(cast(:created as jsonb)) as c(path text, node_id text, n integer, object text,
         object_id uuid, result jsonb)
       on conflict (organization_id, run_id, path, node_id, n) do update
         set object = excluded.object, object_id = excluded.object_id, result = excluded.result
     )`
