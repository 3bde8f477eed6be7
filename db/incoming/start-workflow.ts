import { checkInputs } from '../../workflows/language/inputs.ts'
import { AppError, type Issue, invalid } from '../model/errors.ts'
import type { RequestContext } from '../model/incoming/log.ts'
import { valueAt } from '../model/incoming/mapping/path.ts'
import type { Mapped } from '../model/incoming/mapping/types.ts'
import type { Payload } from '../model/incoming/parse-body.ts'
import { readInputs } from '../model/incoming/read-inputs.ts'
import type { IncomingWebhook, Listener } from '../model/incoming/types.ts'
import type { TraceContext } from '../model/trace-context.ts'
import type { Tenant } from '../postgres/tenancy.ts'
import { CHAIN_START, createRuns, type NewRun } from '../runs/runs.ts'
import { getProgram, getWorkflow } from '../workflows/workflows.ts'
import type { Saved } from './save.ts'

/** The runs that were queued, and why others were not. */
export interface Started {
  runIds: string[]
  warnings: string[]
}

/**
 * Queues a run of each selected workflow for each written record. A workflow that cannot start (inactive, deleted,
 * inputs that do not fit) does not refuse the payload: its answer and its log row get a warning. A payload that has no
 * other effect, and whose inputs do not fit, throws validation_error: success would hide that it was lost. But a known
 * sender may end a webhook that refuses, and nobody reads the answer there: the problem of the webhook tells its owner.
 */
export async function startWorkflows(
  tx: Tenant,
  webhook: IncomingWebhook,
  all: ToStart[],
  written: Pick<Saved, 'action' | 'record'>[],
): Promise<Started[]> {
  const started = all.map((): Started => ({ runIds: [], warnings: [] }))
  const wanted = written.map(({ action }, i) => (action === 'skipped' ? [] : selected(webhook, all[i]!)))
  const ready = new Map<string, Ready>()
  for (const id of new Set(wanted.flat().map(({ workflow_id }) => workflow_id)))
    ready.set(id, await workflowOf(tx, id))
  const runs: { place: number; run: NewRun }[] = []
  const unfit = all.map((): Issue[] => [])
  for (const [place, selections] of wanted.entries())
    for (const { workflow_id, workflow_inputs } of selections) {
      const run = runOf(ready.get(workflow_id)!, workflow_inputs, webhook, all[place]!, written[place]!)
      if ('warning' in run) {
        started[place]!.warnings.push(run.warning)
        unfit[place]!.push(...(run.issues ?? []))
      } else runs.push({ place, run })
    }
  const hasEffect = new Set(runs.map(({ place }) => place))
  for (const [place, issues] of unfit.entries()) {
    const isLost = written[place]!.action === 'triggered' && !hasEffect.has(place)
    if (issues.length > 0 && isLost && !isOfKnownSender(webhook, all[place]!)) throw invalid(issues)
  }
  const ids = await createRuns(
    tx,
    runs.map(({ run }) => run),
  )
  for (const [n, { place }] of runs.entries()) started[place]!.runIds.push(ids[n]!)
  if (webhook.kind === 'none' && !webhook.workflow_id && webhook.listeners.length === 0)
    for (const { warnings } of started) warnings.push('the webhook selects no workflow: nothing was started')
  return started
}

const isOfKnownSender = ({ sender }: IncomingWebhook, { mapped }: ToStart): boolean =>
  sender !== null || mapped.sender !== undefined

type Selection = Pick<Listener, 'workflow_id' | 'workflow_inputs'>

/**
 * The workflows that a request starts: the selected one unless it writes no record where others do, and the listeners
 * whose condition holds.
 */
const selected = (
  { workflow_id, workflow_inputs, listeners }: IncomingWebhook,
  { mapped }: ToStart,
): Selection[] => [
  ...(workflow_id && mapped.skip === undefined ? [{ workflow_id, workflow_inputs }] : []),
  ...(mapped.listeners ?? []).flatMap((place) => listeners[place] ?? []),
]

function runOf(
  ready: Ready,
  workflow_inputs: Record<string, string>,
  { id, name }: IncomingWebhook,
  { payload, trace, context }: ToStart,
  { record, action }: Pick<Saved, 'action' | 'record'>,
): NewRun | { warning: string; issues?: Issue[] } {
  if ('warning' in ready) return ready
  const trigger = {
    type: 'webhook' as const,
    ...(record ? { record } : {}),
    payload,
    headers: {},
    query: {},
    ...context,
    webhook: { id, name },
    action,
  }
  const given = readInputs(ready.inputs, inputsOf(workflow_inputs, trigger))
  const { inputs, problems } = checkInputs(ready.inputs, given)
  const { workflow } = ready
  if (problems.length > 0) {
    const issues = problems.map(({ name, message, type }): Issue => {
      const path = Object.hasOwn(workflow_inputs, name) ? workflow_inputs[name]! : name
      return { loc: ['body', path.replace(/^payload\./, '')], msg: message, type }
    })
    return { warning: notStarted(workflow.name, issues), issues }
  }
  return { workflow, trigger, inputs, ...(record ? { record_id: record.id } : {}), chain: CHAIN_START, trace }
}

const NOT_STARTED = 'was not started: '

/** Without the values: they may be read by those who may not read the log. */
const notStarted = (name: string, issues: Issue[]) =>
  `the workflow "${name}" ${NOT_STARTED}${issues.map(({ loc, msg }) => `${loc[1]}: ${msg}`).join(' ')}`

/** Whether a warning tells of a workflow whose inputs did not fit. */
export const isNotStarted = (warning: string): boolean => warning.includes(`" ${NOT_STARTED}`)

interface ToStart {
  payload: Payload
  mapped: Mapped
  context?: RequestContext | null
  trace?: TraceContext | undefined
}

type Ready = { workflow: NewRun['workflow']; inputs: Parameters<typeof checkInputs>[0] } | { warning: string }

/** The workflow with the inputs of its active version, or why it cannot start. */
export async function workflowOf(tx: Tenant, workflowId: string): Promise<Ready> {
  const found = await getWorkflow(tx, workflowId).catch(undefinedIfNotFound)
  if (!found) return { warning: 'the selected workflow does not exist' }
  const { id, name, active_version: version } = found
  if (version === null) return { warning: `the selected workflow "${name}" is not active` }
  return { workflow: { id, version, name }, inputs: (await getProgram(tx, id, version)).program.inputs }
}

const inputsOf = (paths: Record<string, string>, trigger: object): Record<string, unknown> =>
  Object.fromEntries(
    Object.entries(paths)
      .map(([input, path]) => [input, valueAt(trigger, path)])
      .filter(([, value]) => value !== undefined),
  )

function undefinedIfNotFound(error: unknown): undefined {
  if (error instanceof AppError && error.type === 'not_found') return undefined
  throw error
}
