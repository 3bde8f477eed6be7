import { z } from 'zod'
import { invalid } from '../../db/errors.ts'
import { requireVersion } from '../../db/lists/version.ts'
import type { Tenant } from '../../db/postgres/tenancy.ts'
import { CHAIN_START, createRun } from '../../db/runs/runs.ts'
import { getRun, type RunDetails, type RunEnd } from '../../db/runs/views.ts'
import { findById, findByName, type Runnable } from '../../db/workflows/workflows.ts'
import { EFFECT_CLASSES, type Program } from '../../workflows/definition/types.ts'
import { checkInputs } from '../../workflows/interpret/inputs.ts'
import { RUN_STATUSES } from '../../workflows/interpret/statuses.ts'
import { ifMatch } from '../http/if-match.ts'
import { type Route, type RouteRequest, route } from '../http/route.ts'
import { waitSeconds } from './prefer.ts'
import { linksOf, runLinks } from './run-links.ts'

const effect = z.enum(EFFECT_CLASSES)

const preview = z
  .object({
    status: z.literal('confirmation_required'),
    confirmed: z.literal(false),
    object: z.literal('run_preview'),
    preview: z.object({
      workflow_id: z.uuid(),
      name: z.string(),
      version: z.int(),
      nodes: z.array(
        z
          .object({ id: z.string(), type: z.string(), title: z.string(), effect })
          .meta({ id: 'RunPreviewNode' }),
      ),
      edges: z.array(
        z.object({ from: z.string(), handle: z.string(), to: z.string() }).meta({
          id: 'RunPreviewEdge',
          description: 'After `from` has left by `handle`, the run continues with `to`.',
        }),
      ),
      inputs: z.record(z.string(), z.unknown()),
      warnings: z.array(z.string()),
    }),
  })
  .meta({ id: 'RunPreview' })

const started = z
  .object({
    object: z.literal('run'),
    status: z.enum(RUN_STATUSES),
    run_id: z.uuid(),
    workflow_id: z.uuid(),
    workflow_version: z.int(),
    outputs: z.record(z.string(), z.unknown()).nullable().optional(),
    error: z.record(z.string(), z.unknown()).nullable().optional(),
    links: runLinks,
  })
  .meta({ id: 'StartedRun' })

const response = { status: 200 as const, schema: z.union([preview, started]).meta({ id: 'RunResult' }) }

const inputs = z.record(z.string(), z.unknown()).default({})
const confirm = z.boolean().default(false)

const description = `Without \`confirm: true\` nothing runs: the response is a preview, with the version as ETag. Send it as
\`If-Match\` with the confirmed request to run exactly this version. The response to a confirmed request is sent as soon
as the run is stored; with \`Prefer: wait=N\` (at most 30 seconds) when the run has ended. A failed run is a 200 with
\`status: "failed"\`. A workflow acts for the organization, not for the key that starts it.`

export const runWorkflowRoutes: Route[] = [
  route({
    method: 'POST',
    path: '/workflows/run-by-name',
    scope: 'workflows:run',
    id: 'runWorkflowByName',
    tag: 'Workflows',
    summary: 'Run a workflow by name',
    description,
    body: z
      .object({ name: z.string().min(1).max(200), inputs, confirm })
      .strict()
      .meta({ id: 'RunByNameRequest' }),
    response,
    etag: true,
    ifMatch: true,
    waits: true,
    example: { name: 'Welcome', inputs: { email: 'ada@example.com' }, confirm: true },
    handler: (request) => run(request, request.body, (tx) => findByName(tx, request.body.name)),
  }),
  route({
    method: 'POST',
    path: '/workflows/{workflow_id}/run',
    scope: 'workflows:run',
    id: 'runWorkflow',
    tag: 'Workflows',
    summary: 'Run a workflow',
    description: `${description} Runs the given \`version\`; without one the active version, else the newest.`,
    params: z.object({ workflow_id: z.uuid() }),
    body: z
      .object({ version: z.int().min(1).optional(), inputs, confirm })
      .strict()
      .meta({ id: 'RunRequest' }),
    response,
    etag: true,
    ifMatch: true,
    waits: true,
    example: { inputs: { email: 'ada@example.com' }, confirm: true },
    handler: (request) =>
      run(request, request.body, (tx) => findById(tx, request.params.workflow_id, request.body.version)),
  }),
]

type RunRequest = Pick<
  RouteRequest,
  'caller' | 'headers' | 'deps' | 'signal' | 'tenant' | 'setHeader' | 'commit' | 'doNotStore'
>

/** Without `confirm` previews the run; with it starts the run and waits as `Prefer` requests. */
async function run(
  request: RunRequest,
  { inputs, confirm }: { inputs: Record<string, unknown>; confirm: boolean },
  find: (tx: Tenant) => Promise<Runnable>,
): Promise<unknown> {
  const { headers, deps, signal } = request
  const seconds = waitSeconds(headers)
  const { workflow, checked, runId } = await request.tenant(async (tx) => {
    const workflow = await find(tx)
    const checked = checkedInputs(workflow.plan, inputs)
    requireVersion('workflow', workflow.version, ifMatch(headers))
    if (!confirm) return { workflow, checked, runId: undefined }
    const { id, name, version } = workflow
    tx.last()
    const trigger = { type: 'api' as const, [request.caller.type]: request.caller.id }
    return {
      workflow,
      checked,
      runId: await createRun(tx, {
        workflow: { id, name, version },
        trigger,
        inputs: checked,
        chain: CHAIN_START,
      }),
    }
  })
  request.setHeader('ETag', `"${workflow.version}"`)
  if (runId === undefined) {
    request.doNotStore()
    return previewOf(workflow, checked)
  }
  const answer = (state: Pick<RunDetails, 'status'> & Partial<RunDetails>) => ({
    object: 'run',
    status: state.status,
    run_id: runId,
    workflow_id: workflow.id,
    workflow_version: workflow.version,
    ...(state.outputs ? { outputs: state.outputs } : {}),
    ...(state.error ? { error: state.error } : {}),
    links: linksOf(runId, deps.config),
  })
  if (seconds === 0) return answer({ status: 'queued' })
  await request.commit(answer({ status: 'queued' }))
  request.setHeader('Preference-Applied', `wait=${seconds}`)
  return answer(await waitForEnd(request, runId, seconds, signal))
}

/** The end of the run; after `seconds`, its current state. */
async function waitForEnd(
  { deps, caller, tenant }: RunRequest,
  runId: string,
  seconds: number,
  signal: AbortSignal,
): Promise<RunEnd> {
  const read = () => deps.runEnds.read({ organizationId: caller.organization.id, id: runId })
  const ended = await deps.runEnds.wait(runId, seconds * 1_000, signal, read)
  return ended ?? tenant((tx) => getRun(tx, runId))
}

function previewOf(workflow: Runnable, inputs: Record<string, unknown>) {
  const nodes = Object.values(workflow.plan.nodes).map(({ id, type, title, effect }) => ({
    id,
    type,
    title,
    effect,
  }))
  const external = nodes.filter((node) => node.effect === 'external').map((node) => node.title)
  return {
    object: 'run_preview',
    status: 'confirmation_required',
    confirmed: false,
    preview: {
      workflow_id: workflow.id,
      name: workflow.name,
      version: workflow.version,
      nodes,
      edges: edgesOf(workflow.plan),
      inputs,
      warnings: external.length > 0 ? [`Has effects outside the service: ${external.join(', ')}.`] : [],
    },
  }
}

const edgesOf = ({ nodes }: Program) =>
  Object.values(nodes).flatMap(({ id, next }) =>
    Object.entries(next).flatMap(([handle, targets]) => targets.map((to) => ({ from: id, handle, to }))),
  )

function checkedInputs(plan: Program, given: Record<string, unknown>): Record<string, unknown> {
  const { inputs, problems } = checkInputs(plan.inputs, given)
  if (problems.length > 0)
    throw invalid(
      problems.map(({ name, message, type }) => ({ loc: ['body', 'inputs', name], msg: message, type })),
    )
  return inputs
}
