import { v7 as uuidv7 } from 'uuid'
import type { RunTrigger } from '../../workflows/interpret/run-state.ts'
import { notFound } from '../errors.ts'
import type { Tenant } from '../postgres/tenancy.ts'

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
  const { rowCount } = await tx.trx.raw(
    `insert into runs (organization_id, id, workflow_id, workflow_version, workflow_name, trigger, trigger_key, inputs, record_id,
                       depth, cause, parent_run_id, engine, concurrency, starts_with)
     select :organizationId, :id, v.workflow_id, v.version, :name, :trigger, :triggerKey, :inputs, :recordId,
            :depth, :cause, :parentRunId, (v.plan ->> 'engine')::integer, (v.plan #>> '{settings,concurrency}')::integer,
            v.plan -> 'nodes' -> (v.plan ->> 'start') ->> 'title'
     from workflow_versions v
     where v.organization_id = :organizationId and v.workflow_id = :workflowId and v.version = :version
     on conflict (organization_id, workflow_id, trigger_key) where trigger_key is not null do nothing`,
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
