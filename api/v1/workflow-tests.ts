import { z } from 'zod'
import { getEnvironment } from '../../db/access/organization.ts'
import { AppError } from '../../db/model/errors.ts'
import type { Tenant } from '../../db/postgres/tenancy.ts'
import { listCustomFields } from '../../db/records/custom-fields/definitions.ts'
import { createNodeTest } from '../../db/runs/node-tests.ts'
import { getNodeTest } from '../../db/runs/views.ts'
import { lastRun, listSamples, resultsInRun } from '../../db/workflows/samples.ts'
import { getVersion } from '../../db/workflows/versions.ts'
import { getProgram, getWorkflow } from '../../db/workflows/workflows.ts'
import { nodeKey, splitKey } from '../../workflows/interpret/frames.ts'
import { type CaseResult, type Stub, TEST_STATUSES } from '../../workflows/interpret/test-case.ts'
import { TRIAL_ITEMS } from '../../workflows/interpret/trial.ts'
import { EFFECT_CLASSES, type Program } from '../../workflows/language/definition.ts'
import { EXAMPLE_SPEC } from '../../workflows/nodes/example-spec.ts'
import { findNodeType } from '../../workflows/nodes/index.ts'
import { WORKFLOW_TEST } from '../../workflows/shared/limits.ts'
import { NODE_STATUSES } from '../../workflows/shared/statuses.ts'
import { type Route, type RouteRequest, route } from '../http/route.ts'
import { orgOf, secretsOf } from './node-tests.ts'
import { casesFrom, planCases, type TestedWorkflow, testCases } from './test-cases.ts'
import { compiled } from './version-content.ts'

/** Seconds that a request waits for a test: longer than its time limit, one minute. */
const WAIT_SECONDS = 75

const EXAMPLE_ID = '019a0000-0000-7000-8000-000000000001'

const runError = z.record(z.string(), z.unknown()).nullable()

const result = z
  .object({
    name: z.string(),
    passed: z.boolean().meta({ description: 'Whether all expectations hold, and no stub is missing.' }),
    status: z.enum(TEST_STATUSES).meta({
      description:
        '`waiting`: only an answer, an event or a signal would continue the run, and no stub gives it. `not_started`: the `when` of the trigger does not hold. `too_large`, `timed_out`: a limit ended the test.',
    }),
    outputs: z.unknown(),
    error: runError,
    nodes: z
      .array(
        z.object({
          node_id: z.string(),
          path: z.string(),
          node_type: z.string(),
          title: z.string(),
          status: z.enum(NODE_STATUSES),
          handle: z.string().nullable(),
          input: z.unknown().meta({ description: 'The rendered config, with secrets masked.' }),
          output: z.unknown(),
          error: runError,
          stubbed: z.boolean().meta({ description: 'Whether a stub gave the result.' }),
        }),
      )
      .meta({ description: 'The nodes that the run reached, in their order.' }),
    effects: z
      .array(
        z.object({
          node_id: z.string(),
          path: z.string(),
          node_type: z.string(),
          effect: z.enum(EFFECT_CLASSES),
          input: z.unknown(),
          calls: z.array(z.string()),
        }),
      )
      .meta({
        description:
          'The reads, writes and calls that the run would make, up to the first call of each node whose result it needs. None is made.',
      }),
    missing_stubs: z
      .array(z.object({ node_id: z.string(), read_by: z.array(z.string()), handles: z.array(z.string()) }))
      .meta({
        description:
          'Nodes whose result is not known, although others read it (`read_by`) or it decides about the branch (`handles`): the run took the first handle.',
      }),
    mismatches: z.array(
      z.object({
        path: z.string(),
        message: z.string(),
        expected: z.unknown().optional(),
        actual: z.unknown().optional(),
      }),
    ),
    log: z.array(z.string()),
    shortened: z
      .boolean()
      .meta({ description: 'Whether values are left out, because the answer would be too large.' }),
  })
  .meta({ id: 'WorkflowTestResult' })

const tested = z
  .object({
    object: z.literal('workflow_test'),
    status: z.enum(['ended', 'running']).meta({
      description:
        '`running` only in a retry with the Idempotency-Key of a request that was interrupted during the test.',
    }),
    passed: z.boolean(),
    name: z.string(),
    workflow_id: z.uuid().nullable().meta({ description: 'null: of a spec or a definition.' }),
    version: z.int().nullable(),
    cases: z.array(result),
  })
  .meta({ id: 'WorkflowTest' })

const body = z
  .strictObject({
    workflow_id: z.uuid().optional(),
    version: z.int().min(1).optional().describe('With `workflow_id`: default is the newest.'),
    spec: z.string().optional().describe('YAML.'),
    definition: z.record(z.string(), z.unknown()).optional(),
    stubs_from: z
      .union([z.enum(['samples', 'last_run']), z.uuid()])
      .optional()
      .describe(
        'With `workflow_id`: `samples`, the pinned outputs of its nodes, or `last_run` or the id of one of its runs, whose results stand in for those of nodes that read, write, call or wait. `last_run` is the newest that has completed. `stubs` of a case win.',
      ),
    cases: z
      .union([z.string().max(WORKFLOW_TEST.bytesOfCases), testCases])
      .describe('A list, or the same as YAML.'),
  })
  .refine(
    ({ workflow_id, spec, definition }) =>
      [workflow_id, spec, definition].filter((one) => one !== undefined).length === 1,
    { path: ['spec'], message: 'send one of workflow_id, spec and definition' },
  )
  .refine(({ version, workflow_id }) => version === undefined || workflow_id !== undefined, {
    path: ['version'],
    message: 'belongs to workflow_id',
  })
  .refine(({ stubs_from, workflow_id }) => stubs_from === undefined || workflow_id !== undefined, {
    path: ['stubs_from'],
    message: 'belongs to workflow_id',
  })
  .meta({ id: 'WorkflowTestRequest' })

export const workflowTestRoutes: Route[] = [
  route({
    method: 'POST',
    path: '/workflows/test',
    scope: 'workflows:run',
    id: 'testWorkflow',
    grows: true,
    tag: 'Workflows',
    summary: 'Test a workflow',
    description: `Runs a workflow for each of up to ${WORKFLOW_TEST.cases} cases, without any effect, and compares it with what the case expects; a case that expects nothing is a dry run. Nodes are evaluated as in a run: conditions, joins, loops (their first ${TRIAL_ITEMS} items), retries, \`undo\` and \`finally\`. Reads, writes and calls are not made: \`effects\` shows them with their rendered config, and \`stubs\` give their results. Times are over at once. A node without a stub completes by its first handle; if another one reads its output, it is among \`missing_stubs\`, and the case does not pass. \`code\` and exchange rates are computed. All cases together have a minute. A spec or definition that reads secrets needs \`workflows:author\`. Config and inputs are stored encrypted until the test has ended.`,
    body,
    response: { status: 200, schema: tested },
    example: {
      spec: EXAMPLE_SPEC,
      cases: [
        {
          name: 'saves the contact',
          inputs: { email: 'ada@example.com' },
          stubs: { save: { output: { record: { id: EXAMPLE_ID } } } },
          expect: {
            status: 'completed',
            outputs: { contact_id: EXAMPLE_ID },
            effects: [{ node: 'save', input: { fields: { email: 'ada@example.com' } } }],
          },
        },
      ],
    },
    handler: testWorkflow,
  }),
]

type TestRequest = Pick<
  RouteRequest,
  'caller' | 'requireScopes' | 'deps' | 'signal' | 'tenant' | 'commit'
> & {
  body: z.output<typeof body>
}

interface Wanted extends TestedWorkflow {
  workflow_id: string | null
  version: number | null
  /** The stubs of all cases. */
  stubs: Record<string, Stub>
}

async function testWorkflow(request: TestRequest) {
  const { caller, deps, signal, tenant, commit } = request
  const { id: organizationId } = caller.organization
  const wanted = await wantedBy(request)
  const { name } = wanted.definition
  const given =
    typeof request.body.cases === 'string'
      ? casesFrom(await deps.compute.parseCases(organizationId, request.body.cases))
      : request.body.cases
  const { env } = await tenant(getEnvironment)
  const cases = await planCases(given, wanted, { org: orgOf(caller), env })
  const release = deps.nodeTests.take(caller.id, organizationId)
  try {
    const id = await tenant(async (tx) => {
      await deps.queuedRuns.takePlace(tx)
      return createNodeTest(tx, deps.secretsKey, {
        node_type: 'workflow',
        title: name,
        config: {},
        inputs: {},
        program: wanted.program,
        cases,
        stubs: wanted.stubs,
        ...(wanted.workflow_id === null ? {} : { workflow_id: wanted.workflow_id }),
      })
    })
    const { workflow_id, version } = wanted
    const about = { object: 'workflow_test', name, workflow_id, version }
    await commit({ ...about, status: 'running', passed: false, cases: [] })
    const ended = await deps.runEnds.wait(id, WAIT_SECONDS * 1_000, signal, () =>
      tenant((tx) => getNodeTest(tx, id)),
    )
    const output = ended?.node?.output as { cases: CaseResult[] } | undefined
    if (!output)
      throw new AppError('unavailable', ended?.error?.message ?? 'the test exceeded its time limit')
    const passed = output.cases.every((one) => one.passed)
    return { ...about, status: 'ended', passed, cases: output.cases }
  } finally {
    release()
  }
}

/** Throws `not_found`, or the errors of `compiled`. */
async function wantedBy({ body, caller, requireScopes, deps, tenant }: TestRequest): Promise<Wanted> {
  const { workflow_id, spec, definition } = body
  if (workflow_id === undefined) {
    const customFields = await tenant(listCustomFields)
    const source = spec === undefined ? { definition } : { spec }
    const { content } = await compiled({ caller, deps, tenant }, { ...source, customFields })
    // As for the test of a node: a key that may only run workflows chooses no place to which a secret is rendered.
    if (Object.values(content.program.nodes).some(({ config }) => secretsOf(config).length > 0))
      requireScopes(['workflows:author'])
    const unsaved = { workflow_id: null, version: null, stubs: {} }
    return { definition: content.definition, program: content.program, ...unsaved }
  }
  return tenant(async (tx) => {
    const version = body.version ?? (await getWorkflow(tx, workflow_id)).version
    const { definition } = await getVersion(tx, workflow_id, version)
    const { program } = await getProgram(tx, workflow_id, version)
    const stubs = await stubsFrom(tx, workflow_id, program, body.stubs_from)
    return { definition, program, workflow_id, version, stubs }
  })
}

/** Results of the nodes that a test does not compute. Throws `not_found` for the run. */
async function stubsFrom(
  tx: Tenant,
  workflowId: string,
  { nodes }: Program,
  source: string | undefined,
): Promise<Record<string, Stub>> {
  if (source === undefined) return {}
  const ids = Object.values(nodes)
    .filter(({ type, effect }) => effect !== 'pure' || findNodeType(type)?.answered)
    .map(({ id }) => id)
  if (source === 'samples') {
    const samples = await listSamples(tx, workflowId)
    return Object.fromEntries(
      samples
        .filter(({ node_id }) => ids.includes(node_id))
        .map(({ node_id, output }) => [node_id, { output }]),
    )
  }
  const run = source === 'last_run' ? await lastRun(tx, workflowId) : source
  const results = await resultsInRun(tx, workflowId, run, ids)
  const stubs = results.map(({ path, node_id, output, handle, error }): [string, Stub] => [
    nodeKey(path, node_id),
    error
      ? { error: { code: error.code, message: error.message } }
      : { output, ...(handle === null ? {} : { handle }) },
  ])
  // The node may have had another config in the run.
  return Object.fromEntries(
    stubs.filter(([key, { handle }]) => handle === undefined || hasHandle(nodes, key, handle)),
  )
}

function hasHandle(nodes: Program['nodes'], key: string, handle: string): boolean {
  const { type, config } = nodes[splitKey(key).id]!
  return findNodeType(type)!
    .handles(config)
    .some(({ name }) => name === handle)
}
