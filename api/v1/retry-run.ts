import { z } from 'zod'
import { requireVersion } from '../../db/model/lists/version.ts'
import { createRetry, type PlannedRetry, prepareRetryOf, RETRY_VERSIONS } from '../../db/runs/retry.ts'
import type { ApiConfig } from '../config.ts'
import { ifMatch } from '../http/if-match.ts'
import { type Route, route } from '../http/route.ts'
import { confirmation } from './confirmation.ts'
import { waitSeconds } from './prefer.ts'
import { answerStarted, previewNode, previewNodes, startedRun, warningsOf } from './started-run.ts'

const preview = confirmation(
  'RetryPreview',
  'retry_preview',
  z.object({
    run_id: z.uuid(),
    workflow_id: z.uuid(),
    name: z.string(),
    version: z.int(),
    from_node: z.string().nullable().meta({ description: 'null: from the start.' }),
    reused: z.array(z.string()).meta({ description: 'The nodes whose outputs are reused.' }),
    nodes: z.array(previewNode).meta({ description: 'The nodes that may run.' }),
    loops: z.array(z.object({ node_id: z.string(), kept: z.int(), again: z.int() })).meta({
      description:
        'The loops that resume: the number of items that keep their results, and of those that run.',
    }),
    inputs: z.record(z.string(), z.unknown()),
    warnings: z.array(z.string()),
  }),
)

/** The options of a retry, of one run or of a batch. */
export const retryOptions = {
  from_start: z
    .boolean()
    .default(false)
    .describe(
      'Retry from the start. By default a retry starts with the node that failed the run, if one did.',
    ),
  version: z
    .enum(RETRY_VERSIONS)
    .default('same')
    .describe('`same`: the version of the workflow that the run had. `latest`: the newest one.'),
}

export const retryRunRoutes: Route[] = [
  route({
    method: 'POST',
    path: '/runs/{run_id}/retry',
    scope: 'workflows:run',
    id: 'retryRun',
    hidesLinks: true,
    grows: true,
    tag: 'Runs',
    summary: 'Retry a run',
    description: `Starts a new run with the trigger and the inputs of a run that has ended. Nodes that have settled and do
not follow \`from_node\`, or another node that runs again, are not run: the new run reuses their outputs. Calls of
external nodes keep the idempotency keys of the first run, except of undone nodes and those after them, and a node finds the records that it created there. A loop with a
failed item resumes: completed items keep their results, the settled nodes of other items are reused, and the list
stays unchanged. If \`from_node\` is the loop itself, all items run again. \`from_node\` may be in a loop. So that effects
do not come twice, the answer is 409 while another retry of the run is open, or once one has completed: retry that one.
After one that failed or was cancelled, the run can be retried again, unless that one has done undone nodes again and not
undone them. Without
\`confirm: true\` nothing runs: the response is a preview, with the version as ETag for \`If-Match\`. \`Prefer: wait=N\` as
for runs.`,
    params: z.object({ run_id: z.uuid() }),
    body: z
      .strictObject({
        from_node: z
          .string()
          .min(1)
          .max(64)
          .optional()
          .describe(
            'The id of the node to start with. All nodes before it must have completed. If it is in a loop, the items that did not complete start with it if they had reached it, else where they stopped.',
          ),
        items: z
          .array(z.string().min(1).max(500))
          .min(1)
          .max(200)
          .optional()
          .describe(
            'With `from_node` in a loop: the paths of the items that run again from it, such as `each:3` or `outer:0/inner:2`, even if they completed. Other failed items keep their failure if the loop continues after failed items.',
          ),
        ...retryOptions,
        confirm: z.boolean().default(false),
      })
      .refine(({ from_node, from_start }) => from_node === undefined || !from_start, {
        path: ['from_start'],
        message: 'must not be true with from_node: send one of the two',
      })
      .meta({ id: 'RetryRequest' }),
    response: { status: 200, schema: z.union([preview.schema, startedRun]).meta({ id: 'RetryResult' }) },
    etag: true,
    ifMatch: true,
    waits: true,
    example: { version: 'latest', confirm: true },
    handler: async (request) => {
      const { body, headers, params, tenant } = request
      const seconds = waitSeconds(headers)
      const { prepared, runId } = await tenant(async (tx) => {
        const prepared = await prepareRetryOf(tx, params.run_id, body)
        requireVersion('workflow', prepared.workflow.version, ifMatch(headers))
        if (body.confirm) await request.deps.queuedRuns.takePlace(tx)
        return { prepared, runId: body.confirm ? await createRetry(tx, prepared, 0) : undefined }
      })
      request.setHeader('ETag', `"${prepared.workflow.version}"`)
      if (runId !== undefined) return answerStarted(request, runId, prepared.workflow, seconds)
      request.asPreview()
      return previewOf(prepared, request.deps.config)
    },
  }),
]

function previewOf(
  { run, workflow, inputs, from_node, reused, again, loops }: PlannedRetry,
  config: ApiConfig,
) {
  return preview.answer({
    run_id: run.id,
    workflow_id: workflow.id,
    name: workflow.name,
    version: workflow.version,
    from_node,
    reused,
    nodes: previewNodes(workflow.program, again),
    loops,
    inputs,
    warnings: warningsOf(workflow.program, again, config),
  })
}
