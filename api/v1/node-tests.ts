import { z } from 'zod'
import { getEnvironment } from '../../db/access/organization.ts'
import { getPools } from '../../db/access/pools.ts'
import { AppError, invalid } from '../../db/model/errors.ts'
import type { System } from '../../db/postgres/tenancy.ts'
import { hasPoolWorker } from '../../db/queue/pool-workers.ts'
import { createNodeTest } from '../../db/runs/node-tests.ts'
import { durationOf, getNodeTest } from '../../db/runs/views.ts'
import { dryRun } from '../../workflows/interpret/dry-run.ts'
import { masked } from '../../workflows/interpret/mask.ts'
import { testScope } from '../../workflows/interpret/scope.ts'
import { checkConfig, describeIssue } from '../../workflows/language/config.ts'
import {
  EFFECT_CLASSES,
  type EffectClass,
  type Program,
  type ProgramNode,
} from '../../workflows/language/definition.ts'
import { secretsRead } from '../../workflows/language/expressions/secrets.ts'
import { NodeError } from '../../workflows/language/node-error.ts'
import { namedPool, POOL_NAME, POOL_RULE } from '../../workflows/language/pool.ts'
import type { NodeType } from '../../workflows/nodes/define.ts'
import { nodeTypes } from '../../workflows/nodes/index.ts'
import { MASK, maskSecrets } from '../../workflows/shared/secret-names.ts'
import { type Route, type RouteRequest, route } from '../http/route.ts'
import { type Caller, scopeNamed } from '../http/scopes.ts'
import { catalogue } from './catalogue.ts'
import { confirmation } from './confirmation.ts'
import { reachesOutside, variableWarnings } from './effect-warnings.ts'
import { requireNodeType } from './nodes.ts'
import { unknownPool } from './unknown-names.ts'

/** Seconds that a request waits for a test: longer than the time limit of a test, one minute. */
const WAIT_SECONDS = 75

const effect = z.enum(EFFECT_CLASSES)

const preview = confirmation(
  'NodeTestPreview',
  'node_test_preview',
  z.object({
    node_type: z.string(),
    effect,
    config: z.record(z.string(), z.unknown()),
    inputs: z.record(z.string(), z.unknown()),
    warnings: z.array(z.string()),
    calls: z
      .array(z.string())
      .optional()
      .meta({
        description:
          'Descriptions of the planned calls, up to the first call whose result the node needs, without values that may be secret. Absent if the config is invalid or the inputs lack a value of a placeholder.',
        examples: [['POST https://api.example.com/leads, headers Idempotency-Key, a body of 27 bytes']],
      }),
  }),
)

const tested = z
  .object({
    object: z.literal('node_test'),
    status: z.enum(['completed', 'failed', 'running']).meta({
      description:
        '`running` only in a retry with the Idempotency-Key of a request that was interrupted during the test; its outcome is unknown.',
    }),
    node_type: z.string(),
    output: z.unknown().optional(),
    handle: z.string().nullable().optional(),
    rendered_config: z.unknown().optional(),
    duration_ms: z.int().optional(),
    warnings: z
      .array(z.string())
      .optional()
      .meta({ description: 'The findings in the config, as in the validation of a workflow.' }),
    log: z
      .array(z.object({ time: z.iso.datetime(), message: z.string() }))
      .optional()
      .meta({ description: 'The requests, records and events of the node, without their values.' }),
    error: z.record(z.string(), z.unknown()).optional(),
  })
  .meta({ id: 'NodeTest' })

export const nodeTestResult = z.union([preview.schema, tested])

const exampleType = Object.values(nodeTypes)[0]!

export const nodeTestRoutes: Route[] = [
  route({
    method: 'POST',
    path: '/workflows/nodes/test',
    scope: 'workflows:run',
    id: 'testNode',
    grows: true,
    tag: 'Workflows',
    summary: 'Test a node',
    description:
      'With `confirm: true` the node runs with all its effects. Without it, the response is a preview: `preview.calls` lists the planned calls. A node is tested alone. A node that waits for a time or an answer only evaluates its config and describes the wait in `log`; `output` is that of its start, and no approval is requested. A node that starts a run waits for its end, as far as the minute of the test allows. A loop has a body only in a workflow (`testNodeOfWorkflow`). Config and inputs are stored encrypted until the test has ended, and shown with secrets masked. `inputs` has the roots of the placeholders: `{"inputs": {…}, "nodes": {"find": {"output": {…}}}, "trigger": {…}}`; other members are inputs by their name. A node that reads or writes records also needs the scopes of their kinds and of the kinds that it links; a config with `{{ secrets.<name> }}`, or a `pool`, needs `workflows:author`. Each API process waits for 20 tests of an organization at once; further ones are answered with 429.',
    body: z.object({
      node_type: z.string().min(1).max(100),
      config: z.record(z.string(), z.unknown()).default({}),
      inputs: z.record(z.string(), z.unknown()).default({}),
      pool: z
        .string()
        .regex(POOL_NAME, POOL_RULE)
        .optional()
        .meta({ description: 'The worker pool that tests the node, if it is external.' }),
      confirm: z.boolean().default(false),
    }),
    response: { status: 200, schema: nodeTestResult },
    example: {
      node_type: exampleType.type,
      config: exampleType.example.config,
      inputs: exampleType.example.inputs,
      confirm: true,
    },
    handler: (request) => {
      const { node_type, config, inputs, pool, confirm } = request.body
      if (pool !== undefined && requireNodeType(node_type).effectClass(config) !== 'external')
        throw invalid([
          {
            loc: ['body', 'pool'],
            msg: `has no effect: this ${node_type} node is not external`,
            type: 'not_applicable',
          },
        ])
      // As for secrets: a key that may only run workflows must not send a request of its choice into another network.
      if (pool !== undefined) request.requireScopes(['workflows:author'])
      return testNode(request, { node_type, config, inputs: rootsOf(inputs), pool, confirm })
    },
  }),
]

type TestRequest = Pick<
  RouteRequest,
  'caller' | 'requireScopes' | 'deps' | 'signal' | 'tenant' | 'commit' | 'asPreview'
>

export interface WantedTest {
  node_type: string
  config: Record<string, unknown>
  /** Sample values by placeholder root, as `rootsOf` returns them. */
  inputs: Record<string, unknown>
  /** The worker pool of the node, or of its workflow. */
  pool: string | undefined
  confirm: boolean
  /** A loop of a workflow with its body, which is tested too. */
  body?: Program
}

/** A test that its caller may make, with what is known of its node. */
interface Test extends WantedTest {
  type: NodeType
  effect: EffectClass
  /** The nodes of the body beside the loop. */
  inBody: ProgramNode[]
  /** What is wrong with the config, as far as it is known. */
  findings: string[]
}

/** Answers a request to test a node: queues the test and waits for its end, or previews it. */
export async function testNode(request: TestRequest, wanted: WantedTest) {
  const { caller, requireScopes, deps, tenant } = request
  const { config, body, confirm } = wanted
  const type = requireNodeType(wanted.node_type)
  const effect = type.effectClass(config)
  const pool = effect === 'external' ? namedPool(wanted.pool) : undefined
  const inBody = Object.values(body?.nodes ?? {}).filter(({ id }) => id !== body?.start)
  requireScopes(scopesOf(type, config, inBody).map(scopeNamed))
  const findings = type
    .check(config, catalogue)
    .map(({ path, message }) => `${['config', ...path].join('.')}: ${message}.`)
  const test = { ...wanted, pool, type, effect, inBody, findings }
  if (!confirm) return previewTest(request, test)
  // A pool that the organization may not use is refused by the worker, as in a run.
  if (pool !== undefined && (await tenant(getPools)).includes(pool))
    await requirePoolWorker(deps.db.system, pool)
  const release = deps.nodeTests.take(caller.id, caller.organization.id)
  try {
    return await runTest(request, test)
  } finally {
    release()
  }
}

/**
 * The scopes of a test beside `workflows:run`. One that reads secrets needs workflows:author: a key that may only run
 * workflows must not send a secret to a URL of its choice.
 */
function scopesOf(type: NodeType, config: WantedTest['config'], inBody: ProgramNode[]): string[] {
  const reads =
    secretsOf(config).length > 0 || inBody.some((node) => secretsOf(node.config).length > 0 || node.pool)
  return [
    ...type.scopes(config, catalogue),
    ...inBody.flatMap((node) => requireNodeType(node.type).scopes(node.config, catalogue)),
    ...(reads ? ['workflows:author'] : []),
  ]
}

async function previewTest({ caller, deps, tenant, asPreview }: TestRequest, test: Test) {
  const { node_type, type, effect, config, inputs, pool, inBody, findings } = test
  asPreview()
  const { env, secrets } = await tenant(getEnvironment)
  const node = { type: node_type, title: type.title, effect, config }
  const read = secretsOf(config)
  const warnings = [
    ...([node, ...inBody].some(reachesOutside) ? ['Has effects outside the service.'] : []),
    ...variableWarnings([node, ...inBody], deps.config),
    ...(pool === undefined ? [] : await poolWarnings(deps.db.system, pool, await tenant(getPools))),
    ...(type.reachesOutside(config) ? [] : read.slice(0, 1)).map(() => 'The node cannot read secrets.'),
    ...read.filter((name) => !secrets.includes(name)).map((name) => `There is no secret ${name}.`),
    ...checkConfig(type.config, config)
      .flatMap((issue) => describeIssue(issue, node_type))
      .map(({ message }) => `The config is invalid: ${message}.`),
    ...findings,
  ]
  const scope = {
    ...testScope(inputs, { org: orgOf(caller), env }),
    ...(type.reachesOutside(config)
      ? { secrets: Object.fromEntries(secrets.map((name) => [name, MASK])) }
      : {}),
  }
  const calls = await dryRun(type, config, scope, {
    run: { id: 'preview', workflow_id: null, workflow_name: 'Preview' },
    organization: caller.organization,
  })
  return preview.answer({
    node_type,
    effect,
    warnings,
    config: masked(config) as WantedTest['config'],
    inputs: maskSecrets(inputs) as WantedTest['inputs'],
    ...(calls ? { calls } : {}),
  })
}

/** Queues the test and waits for its end. */
async function runTest({ deps, signal, tenant, commit }: TestRequest, test: Test) {
  const { node_type, type, config, inputs, pool, body, findings } = test
  const started = performance.now()
  const id = await tenant(async (tx) => {
    await deps.queuedRuns.takePlace(tx)
    return createNodeTest(tx, deps.secretsKey, {
      node_type,
      title: type.title,
      config,
      inputs,
      ...(pool !== undefined && { pool }),
      ...(body ? { program: body } : {}),
    })
  })
  await commit({ object: 'node_test', status: 'running', node_type })
  const ended = await deps.runEnds.wait(id, WAIT_SECONDS * 1_000, signal, () =>
    tenant((tx) => getNodeTest(tx, id)),
  )
  if (!ended) throw new AppError('unavailable', 'the test exceeded its time limit')
  const { node, error, log } = ended
  return {
    object: 'node_test',
    status: node?.status === 'completed' ? 'completed' : 'failed',
    node_type,
    output: node?.output ?? null,
    handle: node?.handle ?? null,
    rendered_config: node?.input ?? null,
    duration_ms: (node && durationOf(node)) ?? Math.round(performance.now() - started),
    ...(findings.length > 0 ? { warnings: findings } : {}),
    log,
    ...(error ? { error } : {}),
  }
}

const ROOTS = new Set(['trigger', 'inputs', 'nodes', 'item', 'index', 'previous'])

/** Sample values by placeholder root; a member that is not a root becomes an input of that name. */
export function rootsOf(given: Record<string, unknown>): Record<string, unknown> {
  const entries = Object.entries(given)
  const roots = entries.filter(([name]) => ROOTS.has(name))
  const others = Object.fromEntries(entries.filter(([name]) => !ROOTS.has(name)))
  const inputs = given.inputs ?? {}
  if (typeof inputs !== 'object' || inputs === null)
    throw invalid([{ loc: ['body', 'inputs', 'inputs'], msg: 'must be an object', type: 'type_error' }])
  return { ...Object.fromEntries(roots), inputs: { ...others, ...inputs } }
}

/** The names of the secrets that a config reads. */
export function secretsOf(config: unknown): string[] {
  try {
    return [...secretsRead(config).keys()]
  } catch (error) {
    if (error instanceof NodeError)
      throw invalid([{ loc: ['body', 'config'], msg: error.message, type: error.code }])
    throw error
  }
}

/** The value of the placeholder root `org`, as in a run. */
export function orgOf({ organization: { id, name, currency, timezone } }: Caller) {
  return { id, name, currency, timezone }
}

const noWorker = (pool: string) => `no worker of the pool ${pool} runs at the moment`

async function poolWarnings(system: System, pool: string, pools: string[]): Promise<string[]> {
  if (!pools.includes(pool)) return [`The test will fail: ${unknownPool(pool, pools).message}.`]
  return (await hasPoolWorker(system, pool)) ? [] : [`The test is refused: ${noWorker(pool)}.`]
}

/** Throws unavailable: a run waits for a worker of its pool, but nobody waits so long for a test. */
async function requirePoolWorker(system: System, pool: string): Promise<void> {
  if (await hasPoolWorker(system, pool)) return
  throw new AppError('unavailable', noWorker(pool), {
    hint: `the operator of the service starts one with WORKER_POOL=${pool}`,
  })
}
