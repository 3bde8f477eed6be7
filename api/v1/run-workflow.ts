import { z } from 'zod'
import { getEnvironment } from '../../db/access/organization.ts'
import { invalid } from '../../db/model/errors.ts'
import { requireVersion } from '../../db/model/lists/version.ts'
import type { Tenant } from '../../db/postgres/tenancy.ts'
import { createKeyedRun, findOpenByKey, KEY_CONFLICTS, type KeyedRun } from '../../db/runs/keyed-runs.ts'
import { CHAIN_START, createRun, createRunIfCurrent, type NewRun } from '../../db/runs/runs.ts'
import { sendSignal } from '../../db/runs/signals.ts'
import { getVersion } from '../../db/workflows/versions.ts'
import { findById, findByName, type Runnable } from '../../db/workflows/workflows.ts'
import { previewRun } from '../../workflows/interpret/preview.ts'
import type { Finding, Program } from '../../workflows/language/definition.ts'
import { checkInputs } from '../../workflows/language/inputs.ts'
import { RUN_KEY, SIGNAL } from '../../workflows/shared/limits.ts'
import { MASK } from '../../workflows/shared/secret-names.ts'
import { ifMatch } from '../http/if-match.ts'
import type { WorkflowReference } from '../http/known-workflows.ts'
import { type Route, route } from '../http/route.ts'
import { confirmation } from './confirmation.ts'
import { orgOf } from './node-tests.ts'
import { plannedKeys, runKeys } from './planned-keys.ts'
import { missingFor } from './preconditions.ts'
import { waitSeconds } from './prefer.ts'
import {
  answerStarted,
  plannedNode,
  previewNodes,
  type StartRequest,
  startedRun,
  warningsOf,
} from './started-run.ts'
import { finding } from './workflow-shapes.ts'

const preview = confirmation(
  'RunPreview',
  'run_preview',
  z.object({
    workflow_id: z.uuid(),
    name: z.string(),
    version: z.int(),
    nodes: z.array(plannedNode),
    edges: z.array(
      z.object({ from: z.string(), handle: z.string(), to: z.string() }).meta({
        id: 'RunPreviewEdge',
        description: 'If `from` ends with the output handle `handle`, the run continues with `to`.',
      }),
    ),
    inputs: z.record(z.string(), z.unknown()),
    keys: runKeys,
    missing: z.array(finding).meta({
      description: 'All that the workflow needs and that is not there, as far as it can be known.',
    }),
    warnings: z.array(z.string()),
  }),
)

const response = {
  status: 200 as const,
  schema: z.union([preview.schema, startedRun]).meta({ id: 'RunResult' }),
}

const inputs = z.record(z.string(), z.unknown()).default({})
const confirm = z.boolean().default(false)
const keyed = {
  key: z
    .string()
    .min(1)
    .max(RUN_KEY.rendered)
    .refine((key) => key.trim() !== '', { message: 'must not be blank' })
    .optional()
    .describe(
      'While a run of the workflow with this key is open, it is the answer (`existing: true`), and no other one starts.',
    ),
  on_conflict: z
    .enum(KEY_CONFLICTS)
    .optional()
    .describe('With `key`: `use_existing` (default), or `fail` with 409 `conflict`.'),
  signal: z
    .strictObject({ name: z.string().min(1).max(SIGNAL.name), payload: z.unknown().optional() })
    .refine(({ payload }) => Buffer.byteLength(JSON.stringify(payload) ?? '') <= SIGNAL.bytes, {
      path: ['payload'],
      message: `is larger than ${SIGNAL.bytes} bytes`,
    })
    .optional()
    .describe('With `key`: a signal that the run gets, the open one or the new one.'),
}
const needsKey = (body: { key?: string | undefined; on_conflict?: unknown; signal?: unknown }) =>
  body.key !== undefined || (body.on_conflict === undefined && body.signal === undefined)
const NEEDS_KEY = { path: ['key'], message: 'is required with on_conflict and signal' }

const description = `Without \`confirm: true\` nothing runs: the response is a preview, with the version as ETag. Send it as
\`If-Match\` with the confirmed request to run exactly this version. The response to a confirmed request is sent as soon
as the run is stored; with \`Prefer: wait=N\` (at most 30 seconds) when the run has ended. A failed run is a 200 with
\`status: "failed"\`. A workflow acts for the organization, not for the key that starts it. With as many queued runs as its plan allows, the answer
is 429 \`quota_exceeded\`.`

export const runWorkflowRoutes: Route[] = [
  route({
    method: 'POST',
    path: '/workflows/run-by-name',
    scope: 'workflows:run',
    id: 'runWorkflowByName',
    grows: true,
    tag: 'Workflows',
    summary: 'Run a workflow by name',
    description,
    body: z
      .object({ name: z.string().min(1).max(200), inputs, ...keyed, confirm })
      .strict()
      .refine(needsKey, NEEDS_KEY)
      .meta({ id: 'RunByNameRequest' }),
    response,
    etag: true,
    ifMatch: true,
    waits: true,
    example: { name: 'Welcome', inputs: { email: 'ada@example.com' }, confirm: true },
    handler: (request) =>
      run(request, request.body, {
        current: { name: request.body.name },
        find: (tx) => findByName(tx, request.body.name),
      }),
  }),
  route({
    method: 'POST',
    path: '/workflows/{workflow_id}/run',
    scope: 'workflows:run',
    id: 'runWorkflow',
    grows: true,
    tag: 'Workflows',
    summary: 'Run a workflow',
    description: `${description} Runs the given \`version\`; without one the active version, else the newest.`,
    params: z.object({ workflow_id: z.uuid() }),
    body: z
      .object({ version: z.int().min(1).optional(), inputs, ...keyed, confirm })
      .strict()
      .refine(needsKey, NEEDS_KEY)
      .meta({ id: 'RunRequest' }),
    response,
    etag: true,
    ifMatch: true,
    waits: true,
    example: { inputs: { email: 'ada@example.com' }, confirm: true },
    handler: (request) =>
      run(request, request.body, {
        current: request.body.version === undefined ? { id: request.params.workflow_id } : undefined,
        find: (tx) => findById(tx, request.params.workflow_id, request.body.version),
      }),
  }),
]

/** A reference to a workflow. `current` refers to its current version; undefined if the request gives a version. */
interface Wanted {
  current: WorkflowReference | undefined
  find(tx: Tenant): Promise<Runnable>
}

interface RunBody {
  inputs: Record<string, unknown>
  confirm: boolean
  key?: string | undefined
  on_conflict?: (typeof KEY_CONFLICTS)[number] | undefined
  signal?: { name: string; payload?: unknown } | undefined
}

/** Previews the run without `confirm`; else starts it and waits as `Prefer` requests. */
async function run(request: StartRequest, body: RunBody, wanted: Wanted): Promise<unknown> {
  const seconds = waitSeconds(request.headers)
  const { inputs, confirm, key } = body
  const { workflow, preview, runId, open } =
    (confirm && key === undefined && wanted.current && (await startKnown(request, inputs, wanted.current))) ||
    (await startRead(request, body, wanted))
  request.setHeader('ETag', `"${workflow.version}"`)
  if (preview) request.asPreview()
  return preview ?? answerStarted(request, runId!, workflow, seconds, open)
}

interface Started {
  workflow: Pick<Runnable, 'id' | 'version'>
  /** Absent for a preview. */
  runId?: string
  /** Present if the run was open before, with the same key. */
  open?: KeyedRun | undefined
  preview?: unknown
}

/** Starts a run of a cached workflow, without reading it. @returns undefined if the workflow must be read again. */
async function startKnown(
  request: StartRequest,
  inputs: Record<string, unknown>,
  reference: WorkflowReference,
): Promise<Started | undefined> {
  const { organization } = request.caller
  const known = request.deps.knownWorkflows.get(organization.id, reference)
  const expected = ifMatch(request.headers)
  if (!known || (expected && !expected.includes(known.version))) return undefined
  // Invalid inputs are reported against the current workflow, which is read again.
  const { inputs: checked, problems } = checkInputs(known.inputs, inputs)
  if (problems.length > 0) return undefined
  await request.deps.queuedRuns.takePlaceOf(request.deps.db.system, organization.id)
  const runId = await request.oneStatement((tx) =>
    createRunIfCurrent(tx, newRun(request, known, checked), 'name' in reference),
  )
  return runId === undefined ? undefined : { workflow: known, runId }
}

async function startRead(request: StartRequest, body: RunBody, { current, find }: Wanted): Promise<Started> {
  const { deps, caller, headers } = request
  const { inputs, confirm } = body
  const started = await request.tenant(async (tx) => {
    const workflow = await find(tx)
    const checked = checkedInputs(workflow.program, inputs)
    requireVersion('workflow', workflow.version, ifMatch(headers))
    if (!confirm) {
      const { definition } = await getVersion(tx, workflow.id, workflow.version)
      const { env, secrets } = await getEnvironment(tx)
      const missing = await missingFor(tx, definition, deps.config)
      const open = body.key === undefined ? undefined : await findOpenByKey(tx, workflow.id, body.key)
      return { workflow, planned: { inputs: checked, env, secrets, missing, open } }
    }
    const takePlace = () => deps.queuedRuns.takePlace(tx)
    if (body.key === undefined) await takePlace()
    const run = newRun(request, workflow, checked)
    return body.key === undefined
      ? { workflow, runId: await createRun(tx, run) }
      : { workflow, ...(await startKeyed(tx, run, { ...body, key: body.key }, takePlace)) }
  })
  if (started.planned)
    return {
      workflow: started.workflow,
      preview: await previewOf(request, started.workflow, started.planned),
    }
  if (current && started.runId !== undefined)
    deps.knownWorkflows.set(caller.organization.id, current, started.workflow)
  return started
}

/** Starts the run of a key, or finds it, and signals it. */
async function startKeyed(
  tx: Tenant,
  run: NewRun,
  { key, on_conflict = 'use_existing', signal }: RunBody & { key: string },
  takePlace: () => Promise<void>,
): Promise<Pick<Started, 'open'> & { runId: string }> {
  const found = await createKeyedRun(tx, run, { key, onConflict: on_conflict, takePlace })
  if (signal) await sendSignal(tx, found.id, { name: signal.name, payload: signal.payload })
  return { runId: found.id, ...(found.existing ? { open: found } : {}) }
}

const newRun = (
  { caller }: StartRequest,
  { id, name, version }: Pick<Runnable, 'id' | 'name' | 'version'>,
  inputs: Record<string, unknown>,
) => ({
  workflow: { id, name, version },
  trigger: { type: 'api' as const, [caller.type]: caller.id },
  inputs,
  chain: CHAIN_START,
})

interface Planned {
  inputs: Record<string, unknown>
  env: Record<string, unknown>
  /** Names. */
  secrets: string[]
  missing: Finding[]
  /** The open run with the key of the request. */
  open: Pick<KeyedRun, 'id' | 'status'> | undefined
}

async function previewOf(
  { caller, deps }: StartRequest,
  workflow: Runnable,
  { inputs, env, secrets, missing, open }: Planned,
) {
  const { id, name, version, program } = workflow
  const { organization } = caller
  const scope = {
    trigger: { type: 'api', [caller.type]: caller.id },
    inputs,
    run: { workflow_id: id, workflow_name: name },
    org: orgOf(caller),
    env,
  }
  const masks = Object.fromEntries(secrets.map((secret) => [secret, MASK]))
  const facts = { run: { id: 'preview', workflow_id: id, workflow_name: name }, organization }
  const planned = await previewRun(program, scope, masks, facts)
  const { keys, notes } = plannedKeys(program, scope)
  const ids = Object.keys(program.nodes)
  const beyond = ids.length - planned.size
  return preview.answer({
    workflow_id: id,
    name,
    version,
    nodes: previewNodes(program, ids).map((node) => ({ ...node, ...planned.get(node.id) })),
    edges: edgesOf(program),
    inputs,
    keys,
    missing,
    warnings: [
      ...notes,
      ...(open
        ? [`The run ${open.id} has this key and is ${open.status}: it is used instead of another one.`]
        : []),
      ...warningsOf(program, ids, deps.config),
      ...(beyond > 0 ? [`${beyond} nodes are not rendered: the workflow is too large for a preview.`] : []),
    ],
  })
}

const edgesOf = ({ nodes }: Program) =>
  Object.values(nodes).flatMap(({ id, next }) =>
    Object.entries(next).flatMap(([handle, targets]) => targets.map((to) => ({ from: id, handle, to }))),
  )

function checkedInputs(program: Program, given: Record<string, unknown>): Record<string, unknown> {
  const { inputs, problems } = checkInputs(program.inputs, given)
  if (problems.length > 0)
    throw invalid(
      problems.map(({ name, message, type }) => ({ loc: ['body', 'inputs', name], msg: message, type })),
    )
  return inputs
}
