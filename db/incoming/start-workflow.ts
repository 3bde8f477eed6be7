import { checkInputs } from '../../workflows/language/inputs.ts'
import { AppError } from '../model/errors.ts'
import { valueAt } from '../model/incoming/mapping/path.ts'
import type { Payload } from '../model/incoming/parse-body.ts'
import type { IncomingWebhook } from '../model/incoming/types.ts'
import type { TraceContext } from '../model/trace-context.ts'
import type { Tenant } from '../postgres/tenancy.ts'
import { CHAIN_START, createRuns, type NewRun } from '../runs/runs.ts'
import { getProgram, getWorkflow } from '../workflows/workflows.ts'
import type { Saved } from './save.ts'

/** A run that was queued, or why none was. */
export interface Started {
  runId?: string
  warning?: string
}

/**
 * Queues a run of the selected workflow for each written record. A workflow that cannot start (inactive, deleted, missing
 * inputs) does not refuse the payload: the log row gets a warning.
 */
export async function startWorkflows(
  tx: Tenant,
  webhook: IncomingWebhook,
  all: ToStart[],
  saved: Saved[],
): Promise<Started[]> {
  const isWritten = saved.map(({ action }) => action !== 'skipped')
  if (!webhook.workflow_id || !isWritten.includes(true)) return saved.map(() => ({}))
  const ready = await workflowOf(tx, webhook.workflow_id)
  if ('warning' in ready) return isWritten.map((is) => (is ? ready : {}))
  const runs: (NewRun | undefined)[] = []
  const started = saved.map(({ record, action }, i): Started => {
    const trigger = {
      type: 'webhook' as const,
      record,
      payload: all[i]!.payload,
      webhook: { id: webhook.id, name: webhook.name },
      action,
    }
    if (!isWritten[i]) return {}
    const { inputs, problems } = checkInputs(ready.inputs, inputsOf(webhook, trigger))
    const { workflow } = ready
    if (problems.length > 0)
      return {
        warning: `the workflow "${workflow.name}" was not started: ${problems.map((problem) => problem.message).join(' ')}`,
      }
    const { trace } = all[i]!
    runs[i] = { workflow, trigger, inputs, record_id: record.id, chain: CHAIN_START, trace }
    return {}
  })
  const places = [...runs.keys()].filter((place) => runs[place])
  const ids = await createRuns(
    tx,
    places.map((place) => runs[place]!),
  )
  for (const [n, place] of places.entries()) started[place] = { runId: ids[n]! }
  return started
}

interface ToStart {
  payload: Payload
  trace?: TraceContext | undefined
}

/** The workflow with the inputs of its active version, or why it cannot start. */
async function workflowOf(
  tx: Tenant,
  workflowId: string,
): Promise<
  { workflow: NewRun['workflow']; inputs: Parameters<typeof checkInputs>[0] } | { warning: string }
> {
  const found = await getWorkflow(tx, workflowId).catch(undefinedIfNotFound)
  if (!found) return { warning: 'the selected workflow does not exist' }
  const { id, name, active_version: version } = found
  if (version === null) return { warning: `the selected workflow "${name}" is not active` }
  return { workflow: { id, version, name }, inputs: (await getProgram(tx, id, version)).program.inputs }
}

const inputsOf = (webhook: IncomingWebhook, trigger: object): Record<string, unknown> =>
  Object.fromEntries(
    Object.entries(webhook.workflow_inputs)
      .map(([input, path]) => [input, valueAt(trigger, path)])
      .filter(([, value]) => value !== undefined),
  )

function undefinedIfNotFound(error: unknown): undefined {
  if (error instanceof AppError && error.type === 'not_found') return undefined
  throw error
}
