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
}

/**
 * Queues a run; the relay starts it after the commit, when a slot is free.
 * @returns the run's id. Throws `not_found` for a version that does not exist.
 */
export async function createRun(tx: Tenant, run: NewRun): Promise<string> {
  const id = uuidv7()
  const { rowCount } = await tx.trx.raw(
    `insert into runs (organization_id, id, workflow_id, workflow_version, workflow_name, trigger, inputs, record_id,
                       concurrency, starts_with)
     select :organizationId, :id, v.workflow_id, v.version, :name, :trigger, :inputs, :recordId,
            (v.plan #>> '{settings,concurrency}')::integer,
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
      workflowId: run.workflow.id,
      version: run.workflow.version,
    },
  )
  if (rowCount === 0) throw notFound('workflow version')
  tx.wake('agx_runs')
  return id
}

/** Queues the test of one node. `inputs` are sample outputs of upstream nodes. @returns its id. */
export async function createNodeTest(
  tx: Tenant,
  test: {
    node: { node_type: string; title: string; config: Record<string, unknown> }
    inputs: Record<string, unknown>
  },
): Promise<string> {
  const id = uuidv7()
  await tx.trx('runs').insert({
    organization_id: tx.organizationId,
    id,
    kind: 'node_test',
    workflow_name: `Test of ${test.node.node_type}`,
    trigger: JSON.stringify({ type: 'node_test' }),
    inputs: JSON.stringify(test.inputs),
    node: JSON.stringify(test.node),
    starts_with: test.node.title,
  })
  tx.wake('agx_runs')
  return id
}
