import type { IncomingWebhook } from '../model/incoming/types.ts'
import type { Tenant } from '../postgres/tenancy.ts'
import { lastRequests } from './last-requests.ts'
import { isNotStarted, workflowOf } from './start-workflow.ts'

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
  webhook: Pick<IncomingWebhook, 'id' | 'kind' | 'updated_at'>,
): Promise<string | null> {
  const rows = await lastRequests<LastEntry>(tx, webhook, {
    columns: 'run_id, error, message, warnings',
    where: `(run_id is not null or error = 'validation_failed' or cardinality(warnings) > 0)`,
  })
  for (const { run_id, error, message, warnings } of rows) {
    const warning = warnings.find(isNotStarted)
    if (warning) return `the last request: ${warning}`
    // Without records only the inputs of workflows can be invalid.
    if (webhook.kind === 'none' && error === 'validation_failed')
      return `the last request was refused: ${message}`
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
