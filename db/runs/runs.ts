import { v7 as uuidv7 } from 'uuid'
import type { RunTrigger } from '../../workflows/interpret/run-state.ts'
import { traceBelow } from '../events/outbox.ts'
import { notFound } from '../model/errors.ts'
import { SKIP_CODES } from '../model/runs/chain.ts'
import type { TraceContext } from '../model/trace-context.ts'
import type { Tenant } from '../postgres/tenancy.ts'
import { traceQueued } from '../process/traces/runs.ts'

export interface NewRun {
  workflow: { id: string; version: number; name: string }
  trigger: RunTrigger
  /** A workflow has at most one run per trigger key. */
  trigger_key?: string
  /** Validated by `checkInputs`. */
  inputs: Record<string, unknown>
  /** The subject record, for the lists of runs and the Temporal UI. */
  record_id?: string
  chain: Chain
  /** The parent run, if it is a child. */
  parent_run_id?: string
  /** The trace of the request, if it is not that of the transaction. */
  trace?: TraceContext | undefined
}

/**
 * The position of a run in a chain of runs that start each other: the number of runs before it, and the id of the last.
 */
export interface Chain {
  depth: number
  cause: string | null
}

/** The chain of a run that no other run caused. */
export const CHAIN_START: Chain = { depth: 0, cause: null }

/**
 * Queues a run; the relay starts it after the commit, when a slot is free.
 * @returns the run's id, or that of the earlier run with the same trigger key of the workflow. Throws `not_found` for a
 * version that does not exist.
 */
export async function createRun(tx: Tenant, run: NewRun): Promise<string> {
  const [id] = await insert(tx, [run])
  return id ?? earlierRun(tx, run)
}

/**
 * Queues a run of a cached workflow, unless the workflow has changed since it was read: one statement instead of two.
 * @param byName also requires that no other workflow has its name.
 * @returns the run's id; undefined if the workflow must be read again.
 */
export async function createRunIfCurrent(
  tx: Tenant,
  run: Omit<NewRun, 'trigger_key'>,
  byName: boolean,
): Promise<string | undefined> {
  const [id] = await insert(tx, [run], byName ? `${IS_CURRENT} and ${HAS_NAME_ALONE}` : IS_CURRENT)
  return id
}

/** SQL: whether the workflow of the run `r` still has its name, and would still start in this version. */
const IS_CURRENT = `exists (
  select from workflows w where w.organization_id = r.organization_id and w.id = r.workflow_id and w.deleted_at is null
    and w.name = r.name and coalesce(w.active_version, w.version) = r.version)`

/** SQL: whether the name of the run `r`'s workflow is unique. */
const HAS_NAME_ALONE = `not exists (
  select from workflows o where o.organization_id = r.organization_id and o.name = r.name and o.deleted_at is null
    and o.id <> r.workflow_id)`

/** Queues many runs without trigger keys. @returns their ids. Throws `not_found` as `createRun` does. */
export async function createRuns(tx: Tenant, runs: Omit<NewRun, 'trigger_key'>[]): Promise<string[]> {
  if (runs.length === 0) return []
  const ids = await insert(tx, runs)
  if (ids.includes(undefined)) throw notFound('workflow version')
  return ids as string[]
}

/** @returns the id of each run; undefined for a run that was not inserted. */
async function insert(tx: Tenant, runs: NewRun[], condition = 'true'): Promise<(string | undefined)[]> {
  const rows = runs.map((run) => ({
    organization_id: tx.organizationId,
    id: uuidv7(),
    workflow_id: run.workflow.id,
    version: run.workflow.version,
    name: run.workflow.name,
    trigger: run.trigger,
    trigger_key: run.trigger_key,
    inputs: run.inputs,
    record_id: run.record_id,
    ...run.chain,
    parent_run_id: run.parent_run_id,
    trace_id: run.trace?.traceId,
  }))
  // Before the statement, so that COMMIT and the notification can be sent with it.
  tx.wake('agx_runs')
  const { rows: inserted } = await tx.trx.raw<{ rows: { id: string; trace_id: string }[] }>(
    `${insertRuns(
      `select * from jsonb_to_recordset(?) as r (
         organization_id uuid, id uuid, workflow_id uuid, version integer, name text, trigger jsonb, trigger_key text,
         inputs jsonb, record_id uuid, depth integer, cause uuid, parent_run_id uuid, error jsonb, trace_id uuid)
       where ${condition}`,
    )} returning id, trace_id`,
    [JSON.stringify(rows)],
  )
  const traces = new Map(inserted.map(({ id, trace_id }) => [id, trace_id]))
  if (tx.spans)
    for (const [i, { id }] of rows.entries())
      if (traces.has(id)) traceQueued(tx, id, traces.get(id)!, runs[i]!.trace)
  return rows.map(({ id }) => (traces.has(id) ? id : undefined))
}

async function earlierRun(tx: Tenant, { workflow, trigger_key }: NewRun): Promise<string> {
  const earlier =
    trigger_key !== undefined &&
    (await tx
      .trx('runs')
      .where({ organization_id: tx.organizationId, workflow_id: workflow.id, trigger_key })
      .first<{ id: string } | undefined>('id'))
  if (!earlier) throw notFound('workflow version')
  return earlier.id
}

/** SQL: the root of the chain of the row `s`: that of the run before it, else the event that triggers it. */
const ROOT = `coalesce(
    (select coalesce(c.root, c.id) from runs c where c.organization_id = s.organization_id and c.id = s.cause),
    case when s.trigger ->> 'type' = 'event' then cast(s.trigger #>> '{event,id}' as uuid) end)`

const SKIPS = SKIP_CODES.map((code) => `'${code}'`).join(', ')

/**
 * SQL: inserts queued runs from the rows of `source`, whose columns are those of `runs` (`version` and `name` of the
 * workflow). A row with an `error` is recorded as failed instead of queued, or as
 * skipped. A row whose `trigger_key` the workflow has
 * already used is skipped. Runs that a client may wait for get the priority 0, all others 1; a child has that of its
 * parent. Without a `trace_id` a run has the trace of its cause, else that of the request.
 */
export const insertRuns = (source: string): string => `
  with source as materialized (${source})
  insert into runs (organization_id, id, workflow_id, workflow_version, workflow_name, trigger, trigger_key, inputs,
                    record_id, depth, cause, root, trace_id, parent_run_id, engine, concurrency, on_limit, cancel_on, hold, hold_until, starts_with, scheduled_at,
                    expected_by, priority, status, error, ended_at)
  select s.organization_id, s.id, s.workflow_id, s.version, s.name, s.trigger, s.trigger_key, s.inputs,
    s.record_id, s.depth, s.cause, ${ROOT}, coalesce(s.trace_id, ${traceBelow('s.organization_id', 's.cause')}), s.parent_run_id, v.engine, v.concurrency, v.on_limit, v.cancel_on is not null,
    case when v.admission is not null and s.error is null then 'admission' end,
    case when v.admission is not null and s.error is null then now() end, v.starts_with,
    -- a retry has no trigger_key
    case when s.trigger_key is not null and s.trigger ->> 'type' = 'schedule'
      then cast(s.trigger ->> 'scheduled_at' as timestamptz) end,
    now() + make_interval(secs => v.expected_ms / 1000.0),
    case when s.trigger ->> 'type' = 'api' then 0 else coalesce((
      select p.priority from runs p where p.organization_id = s.organization_id and p.id = s.parent_run_id), 1) end,
    case when s.error is null then 'queued' when s.error ->> 'code' in (${SKIPS}) then 'skipped' else 'failed' end, s.error, case when s.error is not null then now() end
  from source s join workflow_versions v on v.organization_id = s.organization_id and v.workflow_id = s.workflow_id
    and v.version = s.version
  on conflict (organization_id, workflow_id, trigger_key) where trigger_key is not null do nothing`
