import { checkInputs } from '../../workflows/interpret/inputs.ts'
import { AppError } from '../errors.ts'
import type { Tenant } from '../postgres/tenancy.ts'
import { CHAIN_START, createRun } from '../runs/runs.ts'
import { getPlan, getWorkflow } from '../workflows/workflows.ts'
import { valueAt } from './mapping/path.ts'
import type { Payload } from './parse-body.ts'
import type { Saved } from './save.ts'
import type { IncomingWebhook } from './types.ts'

/**
 * Queues a run of the selected workflow with the written record. A workflow that cannot start (inactive, deleted,
 * missing inputs) does not refuse the payload: the log row gets a warning.
 */
export async function startWorkflow(
  tx: Tenant,
  webhook: IncomingWebhook,
  payload: Payload,
  { record, action }: Saved,
): Promise<{ runId?: string; warning?: string }> {
  if (!webhook.workflow_id || action === 'skipped') return {}
  const workflow = await getWorkflow(tx, webhook.workflow_id).catch(undefinedIfNotFound)
  if (!workflow) return { warning: 'the selected workflow does not exist' }
  const { id, name, active_version: version } = workflow
  if (version === null) return { warning: `the selected workflow "${name}" is not active` }

  const trigger = {
    type: 'webhook' as const,
    record,
    payload,
    webhook: { id: webhook.id, name: webhook.name },
    action,
  }
  const given = Object.fromEntries(
    Object.entries(webhook.workflow_inputs)
      .map(([input, path]) => [input, valueAt(trigger, path)])
      .filter(([, value]) => value !== undefined),
  )
  const { plan } = await getPlan(tx, id, version)
  const { inputs, problems } = checkInputs(plan.inputs, given)
  if (problems.length > 0)
    return {
      warning: `the workflow "${name}" was not started: ${problems.map((problem) => problem.message).join(' ')}`,
    }
  const runId = await createRun(tx, {
    workflow: { id, version, name },
    trigger,
    inputs,
    record_id: record.id,
    chain: CHAIN_START,
  })
  return { runId }
}

function undefinedIfNotFound(error: unknown): undefined {
  if (error instanceof AppError && error.type === 'not_found') return undefined
  throw error
}
