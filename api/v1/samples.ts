import { z } from 'zod'
import { notFound } from '../../db/model/errors.ts'
import { requireVersion } from '../../db/model/lists/version.ts'
import type { Tenant } from '../../db/postgres/tenancy.ts'
import { deleteSample, listSamples, outputInRun, saveSample } from '../../db/workflows/samples.ts'
import { getProgram, getWorkflow, lockWorkflow, type Workflow } from '../../db/workflows/workflows.ts'
import { loopProgram, TRIAL_ITEMS } from '../../workflows/interpret/trial.ts'
import type { Program } from '../../workflows/language/definition.ts'
import { findNodeType } from '../../workflows/nodes/index.ts'
import { SAMPLE } from '../../workflows/shared/limits.ts'
import { nearest } from '../../workflows/shared/nearest.ts'
import { deletion } from '../http/deletion.ts'
import { ifMatch } from '../http/if-match.ts'
import { listEnvelope, wholeList } from '../http/list-query.ts'
import { type Route, route } from '../http/route.ts'
import { scopeNamed } from '../http/scopes.ts'
import { nodeTestResult, rootsOf, testNode } from './node-tests.ts'

/** Sample outputs of the nodes of a workflow, and tests of its nodes with them. */

const ofWorkflow = z.object({ workflow_id: z.uuid() })
const ofNode = z.object({ workflow_id: z.uuid(), node_id: z.string().min(1).max(64) })

const sample = z
  .object({
    object: z.literal('sample'),
    node_id: z.string(),
    output: z.unknown().meta({ description: 'With secrets masked.' }),
    run_id: z
      .uuid()
      .nullable()
      .meta({ description: 'The run that produced the output; null: written by hand.' }),
    path: z.string().nullable().meta({ description: 'The iteration of the node in that run.' }),
    updated_at: z.iso.datetime(),
  })
  .meta({ id: 'Sample' })

export const sampleRoutes: Route[] = [
  route({
    method: 'GET',
    path: '/workflows/{workflow_id}/samples',
    scope: 'workflows:run',
    id: 'listSamples',
    hidesLinks: true,
    tag: 'Workflows',
    summary: 'List the sample outputs',
    description:
      'Lists the sample outputs of the nodes of a workflow, which the tests of its other nodes read.',
    params: ofWorkflow,
    response: { status: 200, schema: listEnvelope(sample) },
    handler: async ({ params, tenant }) => {
      const rows = await tenant(async (tx) => {
        const { id } = await getWorkflow(tx, params.workflow_id)
        return listSamples(tx, id)
      })
      return wholeList(rows.map((row) => ({ object: 'sample', ...row })))
    },
  }),
  route({
    method: 'PUT',
    path: '/workflows/{workflow_id}/samples/{node_id}',
    scope: 'workflows:author',
    id: 'putSample',
    hidesLinks: true,
    grows: true,
    tag: 'Workflows',
    summary: 'Pin a sample output',
    description: `Keeps the sample output of a node of the newest version: \`output\`, or with \`run_id\` its output in a run of the workflow (needs \`workflows:run\`). Values with secret names, and texts that look like credentials, are masked. At most ${SAMPLE.bytes / 1024} KiB each, and ${SAMPLE.count} for a workflow.`,
    params: ofNode,
    body: z
      .strictObject({
        output: z.unknown().optional(),
        run_id: z.uuid().optional(),
        path: z
          .string()
          .max(500)
          .optional()
          .describe('With `run_id`, of a node in a loop: the iteration, such as `each:3`.'),
      })
      .refine((body) => 'output' in body !== (body.run_id !== undefined), {
        path: ['output'],
        message: 'send either output or run_id',
      })
      .refine((body) => body.path === undefined || body.run_id !== undefined, {
        path: ['path'],
        message: 'belongs to run_id',
      })
      .meta({ id: 'SampleInput' }),
    response: { status: 200, schema: sample },
    example: { output: { id: 'ada', tags: ['new'] } },
    handler: async ({ params: { workflow_id, node_id }, body, requireScopes, tenant }) => {
      const { run_id = null, path = '' } = body
      if (run_id !== null) requireScopes([scopeNamed('workflows:run')])
      const row = await tenant(async (tx) => {
        const workflow = await lockWorkflow(tx, workflow_id, undefined)
        requireNode(workflow, node_id)
        if (run_id === null)
          return saveSample(tx, workflow_id, { node_id, output: body.output, run_id, path: null })
        const output = await outputInRun(tx, workflow_id, { run_id, path, node_id })
        return saveSample(tx, workflow_id, { node_id, output, run_id, path })
      })
      return { object: 'sample', ...row }
    },
  }),
  route({
    method: 'DELETE',
    path: '/workflows/{workflow_id}/samples/{node_id}',
    scope: 'workflows:author',
    id: 'deleteSample',
    tag: 'Workflows',
    summary: 'Delete a sample output',
    params: ofNode,
    response: deletion('sample', { node_id: z.string() }),
    handler: async ({ params: { workflow_id, node_id }, tenant }) => {
      await tenant(async (tx) => {
        await getWorkflow(tx, workflow_id)
        if (!(await deleteSample(tx, workflow_id, node_id))) throw notFound('sample')
      })
      return { object: 'sample', node_id, deleted: true }
    },
  }),
  route({
    method: 'POST',
    path: '/workflows/{workflow_id}/nodes/{node_id}/test',
    scope: 'workflows:run',
    id: 'testNodeOfWorkflow',
    etag: true,
    ifMatch: true,
    grows: true,
    tag: 'Workflows',
    summary: 'Test a node of a workflow',
    description: `Like \`POST /v1/workflows/nodes/test\`, with the config of the node in the newest version. Outputs that are absent from \`inputs.nodes\` are the samples of the workflow; a node in a loop needs \`inputs.item\`, and \`inputs.index\` if it reads it. A loop runs its body for its first ${TRIAL_ITEMS} items, which needs the scopes of all its nodes; in it, delays are over at once, each call has one attempt, and a wait for an answer fails its item. The response has the version of the workflow as ETag; send that of a preview as \`If-Match\` with the confirmed request to test exactly this version.`,
    params: ofNode,
    body: z
      .strictObject({
        inputs: z.record(z.string(), z.unknown()).default({}),
        confirm: z.boolean().default(false),
      })
      .meta({ id: 'NodeTestRequest' }),
    response: { status: 200, schema: nodeTestResult },
    example: { inputs: { inputs: { email: 'ada@example.com' } }, confirm: true },
    handler: async (request) => {
      const { params, body, tenant } = request
      const { node, pool, samples, version, body: inLoop } = await tenant(async (tx) => sampled(tx, params))
      requireVersion('workflow', version, ifMatch(request.headers))
      request.setHeader('ETag', `"${version}"`)
      const inputs = rootsOf(body.inputs)
      const outputs = inputs.nodes ?? {}
      const isObject = typeof outputs === 'object' && !Array.isArray(outputs)
      const nodes = isObject ? { ...samples, ...outputs } : outputs
      const { type: node_type, config } = node
      const { confirm } = body
      return testNode(request, {
        node_type,
        config,
        inputs: { ...inputs, nodes },
        pool,
        confirm,
        ...(inLoop ? { body: inLoop } : {}),
      })
    },
  }),
]

async function sampled(tx: Tenant, { workflow_id, node_id }: z.output<typeof ofNode>) {
  const workflow = await getWorkflow(tx, workflow_id)
  const node = requireNode(workflow, node_id)
  const rows = await listSamples(tx, workflow_id)
  const samples = rows
    .filter((row) => row.node_id !== node_id)
    .map(({ node_id, output }) => [node_id, { output, status: 'completed', error: null }])
  return {
    node,
    version: workflow.version,
    pool: node.pool ?? workflow.definition.settings.pool,
    body: await bodyOf(tx, workflow, node),
    samples: Object.fromEntries(samples) as Record<string, unknown>,
  }
}

/** A loop with its body; undefined for other nodes. */
async function bodyOf(
  tx: Tenant,
  { id, version }: Workflow,
  node: { id: string; type: string },
): Promise<Program | undefined> {
  if (findNodeType(node.type)?.body === undefined) return undefined
  const { program } = await getProgram(tx, id, version)
  return loopProgram(program, node.id)
}

/** Throws `not_found`, with the nearest name. */
function requireNode({ definition }: Pick<Workflow, 'definition'>, id: string) {
  const node = definition.nodes.find((one) => one.id === id)
  if (node) return node
  const near = nearest(
    id,
    definition.nodes.map((one) => one.id),
  )
  throw notFound('node', near ? `did you mean ${near}?` : undefined)
}
