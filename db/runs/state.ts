import type { RunError, RunNode, RunState } from '../../workflows/interpret/run-state.ts'
import type { EndStatus } from '../../workflows/interpret/statuses.ts'
import type { SegmentAnswer } from '../../workflows/protocol.ts'
import { eventRows, type NewEvent } from '../events/outbox.ts'
import type { Tenant } from '../postgres/tenancy.ts'

/** Loads a run in one round trip and holds its row until the transaction ends. Undefined when there is none. */
export async function lockRun(
  tx: Tenant,
  id: string,
  segment: { temporal_run_id: string; segment: number } | undefined,
): Promise<RunState | undefined> {
  const { rows } = await tx.trx.raw<{ rows: RunState[] }>(
    `select to_jsonb(r) - 'outputs' - 'error' as run,
       jsonb_build_object('id', o.id, 'name', o.name,
         'currency', coalesce(o.settings ->> 'currency', 'USD'),
         'timezone', coalesce(o.settings ->> 'timezone', 'UTC')) as organization,
       (select coalesce(jsonb_agg(to_jsonb(n) - 'organization_id' - 'run_id' order by n.position), '[]')
        from run_nodes n where n.organization_id = r.organization_id and n.run_id = r.id) as nodes,
       (select s.answer from run_segments s
        where s.organization_id = r.organization_id and s.run_id = r.id
          and s.temporal_run_id = :temporalRunId and s.segment = :segment) as answer
     from runs r join organizations o on o.id = r.organization_id
     where r.organization_id = :organizationId and r.id = :id
     for update of r`,
    {
      organizationId: tx.organizationId,
      id,
      temporalRunId: segment?.temporal_run_id ?? '',
      segment: segment?.segment ?? -1,
    },
  )
  return rows[0]
}

export interface SegmentRecord {
  temporal_run_id: string
  segment: number
  answer: SegmentAnswer
  /** Rows that are new, or that changed. */
  nodes: RunNode[]
  end?: { status: EndStatus; outputs: unknown; error: RunError | null }
  /** What it raised. */
  events: NewEvent[]
}

const NODE_COLUMNS = `node_id text, node_type text, title text, status text, attempt integer, input jsonb, output jsonb,
  handle text, error jsonb, wait_until timestamptz, segment integer, settled_segment integer, position integer,
  started_at timestamptz, ended_at timestamptz`

/** Writes all that a segment did to its run, in one statement. */
export async function recordSegment(tx: Tenant, runId: string, record: SegmentRecord): Promise<void> {
  const { rows } = await tx.trx.raw<{ rows: { others_wait: boolean }[] }>(
    `with nodes as (
       insert into run_nodes (organization_id, run_id, node_id, node_type, title, status, attempt, input, output,
         handle, error, wait_until, segment, settled_segment, position, started_at, ended_at)
       select cast(:organizationId as uuid), cast(:runId as uuid), n.* from jsonb_to_recordset(cast(:nodes as jsonb)) as n(${NODE_COLUMNS})
       on conflict (organization_id, run_id, node_id) do update set
         status = excluded.status, attempt = excluded.attempt, input = excluded.input, output = excluded.output,
         handle = excluded.handle, error = excluded.error, wait_until = excluded.wait_until,
         settled_segment = excluded.settled_segment, ended_at = excluded.ended_at
       -- an activity may have settled its row since it was read; the newer one stays
       where run_nodes.status in ('running', 'waiting') or run_nodes.status = excluded.status
     ), segment as (
       insert into run_segments (organization_id, run_id, temporal_run_id, segment, answer)
       values (cast(:organizationId as uuid), cast(:runId as uuid), :temporalRunId, :segment, cast(:answer as jsonb))
     ), events as (
       insert into events (organization_id, id, name, data, previous, subject_id)
       select e.* from jsonb_to_recordset(cast(:events as jsonb))
         as e(organization_id uuid, id uuid, name text, data jsonb, previous jsonb, subject_id uuid)
     )
     update runs set status = :status, outputs = cast(:outputs as jsonb), error = cast(:error as jsonb),
       temporal_run_id = :temporalRunId, lease_until = null, stuck_reason = null, updated_at = now(),
       started_at = coalesce(started_at, now()),
       ended_at = case when cast(:status as text) = 'running' then null else clock_timestamp() end
     where organization_id = cast(:organizationId as uuid) and id = cast(:runId as uuid)
     returning cast(:status as text) <> 'running' and exists (
       select from runs other where other.organization_id = runs.organization_id and other.status = 'queued'
         and (other.lease_until is null or other.lease_until < now())) as others_wait`,
    {
      organizationId: tx.organizationId,
      runId,
      nodes: JSON.stringify(record.nodes),
      events: JSON.stringify(eventRows(tx, record.events)),
      temporalRunId: record.temporal_run_id,
      segment: record.segment,
      answer: JSON.stringify(record.answer),
      status: record.end?.status ?? 'running',
      outputs: record.end?.outputs === undefined ? null : JSON.stringify(record.end.outputs),
      error: record.end?.error ? JSON.stringify(record.end.error) : null,
    },
  )
  if (record.end) {
    tx.wake('agx_run_ended', runId)
    // For its slot is free.
    if (rows[0]?.others_wait) tx.wake('agx_runs')
  }
}

/** Writes the row of an external node, unless the run has ended it meanwhile. */
export async function updateNode(
  tx: Tenant,
  runId: string,
  nodeId: string,
  change: Partial<
    Pick<RunNode, 'status' | 'attempt' | 'input' | 'output' | 'handle' | 'error' | 'started_at' | 'ended_at'>
  >,
): Promise<boolean> {
  const json = (value: unknown) => (value === undefined ? undefined : JSON.stringify(value))
  const columns = {
    ...change,
    input: json(change.input),
    output: json(change.output),
    error: change.error === null ? null : json(change.error),
  }
  const count = await tx
    .trx('run_nodes')
    .where({ organization_id: tx.organizationId, run_id: runId, node_id: nodeId, status: 'running' })
    .update(Object.fromEntries(Object.entries(columns).filter(([, value]) => value !== undefined)))
  return count > 0
}

/**
 * Whether a Temporal run that does not own the row ever did. After a reset in the Temporal UI the newest Temporal run
 * owns the row: one that has not been seen takes over, one that has been is superseded.
 */
export async function hasOwned(tx: Tenant, runId: string, temporalRunId: string): Promise<boolean> {
  const segment = await tx
    .trx('run_segments')
    .where({ organization_id: tx.organizationId, run_id: runId, temporal_run_id: temporalRunId })
    .first('segment')
  return segment !== undefined
}

/**
 * For the Temporal run that takes over: what the one before did from this segment on is taken back from the record
 * (effects on records and events stay, they have happened). What the new one still waits for is open again; an
 * external node that has ended keeps how, for the new one learns of it once more.
 */
export async function rewind(tx: Tenant, runId: string, segment: number): Promise<void> {
  const key = { organization_id: tx.organizationId, run_id: runId }
  await tx.trx('run_nodes').where(key).andWhere('segment', '>=', segment).delete()
  const reopened = () => tx.trx('run_nodes').where(key).andWhere('settled_segment', '>=', segment)
  const open = { settled_segment: null, handle: null, ended_at: null }
  await reopened()
    .whereNotNull('wait_until')
    .update({ ...open, status: 'waiting' })
  await reopened()
    .where({ status: 'cancelled' })
    .update({ ...open, status: 'running' })
  await reopened().update({ settled_segment: null })
}
