import type { IncomingWebhook } from '../model/incoming/types.ts'
import type { Tenant } from '../postgres/tenancy.ts'
import { isNotStarted, workflowOf } from './start-workflow.ts'

/** The log entries among which the last request that should have started a workflow is looked for. */
const ENTRIES = 100

/**
 * Why the workflows of a webhook do not start, as a sentence; null if nothing keeps them from it. First what is wrong
 * whatever is sent; then what was wrong with the last request that should have started one, which the log has.
 */
export async function workflowProblem(
  tx: Tenant,
  webhook: Pick<
    IncomingWebhook,
    'id' | 'kind' | 'workflow_id' | 'workflow_inputs' | 'listeners' | 'updated_at'
  >,
): Promise<string | null> {
  const { workflow_id, workflow_inputs, listeners } = webhook
  const selections = [...(workflow_id ? [{ workflow_id, workflow_inputs }] : []), ...listeners]
  for (const { workflow_id: id, workflow_inputs: mapped } of selections) {
    const ready = await workflowOf(tx, id)
    if ('warning' in ready) return `${ready.warning}: no request starts it`
    const { name } = ready.workflow
    const isMapped = (input: string) => Object.hasOwn(mapped, input)
    const lacking = Object.entries(ready.inputs)
      .filter(([input, spec]) => spec.required && spec.default === undefined && !isMapped(input))
      .map(([input]) => input)
    if (lacking.length > 0)
      return `the workflow "${name}" requires ${lacking.join(', ')}: map it in workflow_inputs`
    const unknown = Object.keys(mapped).filter((input) => !Object.hasOwn(ready.inputs, input))
    if (unknown.length > 0)
      return `the workflow "${name}" has no input ${unknown.join(', ')}: remove it from workflow_inputs`
  }
  return selections.length > 0 ? lastProblem(tx, webhook) : null
}

async function lastProblem(
  tx: Tenant,
  { id, kind, updated_at }: Pick<IncomingWebhook, 'id' | 'kind' | 'updated_at'>,
): Promise<string | null> {
  const { rows } = await tx.trx.raw<{ rows: LastEntry[] }>(
    `select run_id, error, message, warnings from incoming_logs
     where organization_id = :organizationId and webhook_id = :id and created_at >= :updatedAt and replay_of is null
     order by id desc limit :entries`,
    { organizationId: tx.organizationId, id, updatedAt: updated_at, entries: ENTRIES },
  )
  for (const { run_id, error, message, warnings } of rows) {
    const warning = warnings.find(isNotStarted)
    if (warning) return `the last request: ${warning}`
    // Without records only the inputs of workflows can be invalid.
    if (kind === 'none' && error === 'validation_failed') return `the last request was refused: ${message}`
    if (run_id) return null
  }
  return null
}

interface LastEntry {
  run_id: string | null
  error: string | null
  message: string | null
  warnings: string[]
}
