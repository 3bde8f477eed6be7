import { v7 as uuidv7 } from 'uuid'
import type { RunTrigger } from '../../workflows/interpret/run-state.ts'
import { notFound } from '../errors.ts'
import { traceBelow } from '../events/outbox.ts'
import type { Tenant } from '../postgres/tenancy.ts'
import { traceQueued } from '../traces/runs.ts'

export interface NewRun {
  workflow: { id: string; version: number; name: string }
  trigger: RunTrigger
  /** A key of the trigger: a workflow has one run for each. */
  trigger_key?: string
  /** Validated by `checkInputs`. */
  inputs: Record<string, unknown>
  /** The subject record, for the lists of runs and the Temporal UI. */
  record_id?: string
  chain: Chain
  /** The run of which it is a child. */
  parent_run_id?: string
}

/** Where a run stands in a chain of runs that start each other: how many led to it, and the id of the last of them. */
export interface Chain {
  depth: number
  cause: string | null
}

/** Of a run that no other run led to. */
export const CHAIN_START: Chain = { depth: 0, cause: null }

/**
 * Queues a run; the relay starts it after the commit, when a slot is free.
 * @returns the run's id; that of the earlier run if the workflow has one of the same trigger key. Throws `not_found` for a version that does not exist.
 */
export async function createRun(tx: Tenant, run: NewRun): Promise<string> {
  const id = uuidv7()
  const { rowCount, rows } = await tx.trx.raw<{ rowCount: number; rows: { trace_id: string }[] }>(
    `${insertRuns(
      `select cast(:organizationId as uuid) as organization_id, cast(:id as uuid) as id,
         cast(:workflowId as uuid) as workflow_id, cast(:version as integer) as version, cast(:name as text) as name,
         cast(:trigger as jsonb) as trigger, cast(:triggerKey as text) as trigger_key, cast(:inputs as jsonb) as inputs,
         cast(:recordId as uuid) as record_id, cast(:depth as integer) as depth, cast(:cause as uuid) as cause,
         cast(:parentRunId as uuid) as parent_run_id, cast(null as jsonb) as error, cast(null as uuid) as trace_id`,
    )}${tx.spans ? ' returning trace_id' : ''}`,
    {
      organizationId: tx.organizationId,
      id,
      name: run.workflow.name,
      trigger: JSON.stringify(run.trigger),
      triggerKey: run.trigger_key ?? null,
      inputs: JSON.stringify(run.inputs),
      recordId: run.record_id ?? null,
      ...run.chain,
      parentRunId: run.parent_run_id ?? null,
      workflowId: run.workflow.id,
      version: run.workflow.version,
    },
  )
  if (rowCount === 0) return earlierRun(tx, run)
  if (tx.spans) traceQueued(tx, id, rows[0]!.trace_id)
  tx.wake('agx_runs')
  return id
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

/**
 * SQL: inserts queued runs from the rows of `source`, whose columns are those of `runs` (`version` and `name` of the
 * workflow). A row with an `error` is recorded as failed instead of being queued. A row whose `trigger_key` its workflow
 * has already had is skipped. Runs that a client may wait for get the priority 0, all others 1; a
 * child has that of its parent. Without a `trace_id` a run has that of its cause, else of the request.
 */
export const insertRuns = (source: string): string => `
  with source as materialized (${source}),
  -- once per version: a plan is JSON text, which every access parses
  versions as materialized (
    select v.organization_id, v.workflow_id, v.version, cast(v.plan ->> 'engine' as integer) as engine,
      cast(v.plan #>> '{settings,concurrency}' as integer) as concurrency,
      v.plan #>> '{settings,on_limit}' as on_limit,
      v.plan -> 'nodes' -> (v.plan ->> 'start') ->> 'title' as starts_with
    from workflow_versions v
    where (v.organization_id, v.workflow_id, v.version) in (select organization_id, workflow_id, version from source))
  insert into runs (organization_id, id, workflow_id, workflow_version, workflow_name, trigger, trigger_key, inputs,
                    record_id, depth, cause, trace_id, parent_run_id, engine, concurrency, on_limit, starts_with, priority, status, error, ended_at)
  select s.organization_id, s.id, s.workflow_id, s.version, s.name, s.trigger, s.trigger_key, s.inputs,
    s.record_id, s.depth, s.cause, coalesce(s.trace_id, ${traceBelow('s.organization_id', 's.cause')}), s.parent_run_id, v.engine, v.concurrency, v.on_limit, v.starts_with,
    case when s.trigger ->> 'type' = 'api' then 0 else coalesce((
      select p.priority from runs p where p.organization_id = s.organization_id and p.id = s.parent_run_id), 1) end,
    case when s.error is null then 'queued' else 'failed' end, s.error, case when s.error is not null then now() end
  from source s join versions v on v.organization_id = s.organization_id and v.workflow_id = s.workflow_id
    and v.version = s.version
  on conflict (organization_id, workflow_id, trigger_key) where trigger_key is not null do nothing`
