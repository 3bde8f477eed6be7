import { v7 as uuidv7 } from 'uuid'
import type { RunTrigger } from '../../workflows/interpret/run-state.ts'
import { notFound } from '../errors.ts'
import type { Tenant } from '../postgres/tenancy.ts'

export interface NewRun {
  workflow: { id: string; version: number; name: string }
  trigger: RunTrigger
  /** Validated by `checkInputs`. */
  inputs: Record<string, unknown>
  /** The subject record, for the lists of runs and the Temporal UI. */
  record_id?: string
  chain: Chain
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
 * @returns the run's id. Throws `not_found` for a version that does not exist.
 */
export async function createRun(tx: Tenant, run: NewRun): Promise<string> {
  const id = uuidv7()
  const { rowCount } = await tx.trx.raw(
    `insert into runs (organization_id, id, workflow_id, workflow_version, workflow_name, trigger, inputs, record_id,
                       depth, cause, engine, concurrency, starts_with)
     select :organizationId, :id, v.workflow_id, v.version, :name, :trigger, :inputs, :recordId,
            :depth, :cause, (v.plan ->> 'engine')::integer, (v.plan #>> '{settings,concurrency}')::integer,
            v.plan -> 'nodes' -> (v.plan ->> 'start') ->> 'title'
     from workflow_versions v
     where v.organization_id = :organizationId and v.workflow_id = :workflowId and v.version = :version`,
    {
      organizationId: tx.organizationId,
      id,
      name: run.workflow.name,
      trigger: JSON.stringify(run.trigger),
      inputs: JSON.stringify(run.inputs),
      recordId: run.record_id ?? null,
      ...run.chain,
      workflowId: run.workflow.id,
      version: run.workflow.version,
    },
  )
  if (rowCount === 0) throw notFound('workflow version')
  tx.wake('agx_runs')
  return id
}
