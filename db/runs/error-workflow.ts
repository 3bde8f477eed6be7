import type { RunError, RunState, RunTrigger } from '../../workflows/interpret/run-state.ts'
import { checkInputs } from '../../workflows/language/inputs.ts'
import type { EndStatus } from '../../workflows/shared/statuses.ts'
import { AppError } from '../model/errors.ts'
import { chainError } from '../model/runs/chain.ts'
import { isRefusal, sqlState } from '../postgres/sql-state.ts'
import { savepoint, type Tenant } from '../postgres/tenancy.ts'
import { findByReference } from '../workflows/workflows.ts'
import { createRun } from './runs.ts'

/** A run that ends without success and unwanted: failed or lost. */
type FailedRun = RunState['run']

/**
 * Starts the error workflow of a failed run (`settings.error_workflow` of its version), in the transaction that ends
 * the run. Its trigger contains the `run`, the `node` and the `error`. It starts once per run, even if the run is reset
 * and fails again; never for a run of the error workflow itself, and not above the depth limit of chains.
 * @returns the error; `details.error_workflow` names the started run, or the reason why none was started.
 */
export async function startErrorWorkflow(
  tx: Tenant,
  run: FailedRun,
  end: { status: EndStatus; error: RunError },
): Promise<RunError> {
  const { error } = end
  const setting = run.kind === 'run' ? await settingOf(tx, run, error.node_id) : undefined
  if (!setting) return error
  const outcome = await savepoint(tx, (inner) => start(inner, run, end, setting)).catch((cause: unknown) => {
    // The run must end in any case. Other database errors are thrown, so that the whole transaction is retried.
    if (isRefusal(cause) || sqlState(cause) === undefined) return notStarted('its start failed unexpectedly')
    throw cause
  })
  return { ...error, details: { ...error.details, error_workflow: outcome } }
}

type Outcome = { run_id: string } | { not_started: string }

const notStarted = (reason: string): Outcome => ({ not_started: reason })

interface Setting {
  /** The name or id of the error workflow. */
  workflow: string
  node: { id: string; type: string; title: string } | null
}

async function settingOf(
  tx: Tenant,
  run: FailedRun,
  nodeId: string | undefined,
): Promise<Setting | undefined> {
  const { rows } = await tx.trx.raw<{ rows: { workflow: string | null; node: Setting['node'] }[] }>(
    `select v.program #>> '{settings,error_workflow}' as workflow,
       case when n.node is not null then jsonb_build_object('id', n.node -> 'id', 'type', n.node -> 'type',
         'title', n.node -> 'title') end as node
     from workflow_versions v cross join lateral (select v.program #> array['nodes', cast(:nodeId as text)] as node) n
     where v.organization_id = :organizationId and v.workflow_id = :workflowId and v.version = :version`,
    {
      organizationId: tx.organizationId,
      workflowId: run.workflow_id,
      version: run.workflow_version,
      nodeId: nodeId ?? null,
    },
  )
  const { workflow, node = null } = rows[0] ?? {}
  return workflow ? { workflow, node } : undefined
}

async function start(
  tx: Tenant,
  run: FailedRun,
  { status, error }: { status: EndStatus; error: RunError },
  { workflow, node }: Setting,
): Promise<Outcome> {
  const depth = run.depth + 1
  const tooLong = chainError(depth, run.id)
  if (tooLong) return notStarted(tooLong.message)
  const found = await findByReference(tx, workflow).catch((cause: unknown) => {
    if (cause instanceof AppError) return cause
    throw cause
  })
  if (found instanceof AppError) return notStarted(`${JSON.stringify(workflow)}: ${found.message}`)
  if (found.id === run.workflow_id) return notStarted('a workflow is never its own error workflow')
  const { inputs, problems } = checkInputs(found.program.inputs, {})
  if (problems.length > 0)
    return notStarted(
      problems
        .map(({ message }) => message)
        .join(' ')
        .slice(0, 500),
    )
  const trigger: RunTrigger = {
    type: 'error',
    run: {
      id: run.id,
      workflow_id: run.workflow_id,
      workflow_name: run.workflow_name,
      workflow_version: run.workflow_version,
      status,
      trigger: run.trigger.type,
      created_at: run.created_at,
    },
    node,
    error,
  }
  const run_id = await createRun(tx, {
    workflow: { id: found.id, version: found.version, name: found.name },
    trigger,
    trigger_key: `error:${run.id}`,
    inputs,
    chain: { depth, cause: run.id },
  })
  return { run_id }
}
