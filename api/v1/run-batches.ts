import { z } from 'zod'
import { invalid } from '../../db/model/errors.ts'
import {
  BATCH_ACTIONS,
  type BatchAction,
  type BatchRequest,
  createBatch,
  getBatch,
  MAX_BATCH,
  previewBatch,
  type RunBatch,
} from '../../db/runs/batches.ts'
import { OPEN_RUN_STATUSES, RUN_END_STATUSES, type RunStatus } from '../../workflows/shared/statuses.ts'
import { type Route, route } from '../http/route.ts'
import { confirmation } from './confirmation.ts'
import { retryOptions } from './retry-run.ts'
import { LATE, runFilter, runStatus } from './run-filter.ts'

/** The statuses that an action applies to, and those it applies to by default if the filter has no `status`. */
const STATUSES: Record<BatchAction, { possible: readonly RunStatus[]; default: readonly RunStatus[] }> = {
  retry: { possible: RUN_END_STATUSES, default: ['failed', 'terminated', 'lost'] },
  cancel: { possible: OPEN_RUN_STATUSES, default: OPEN_RUN_STATUSES },
}

const filter = z.strictObject({
  ...runFilter,
  late: z.boolean().optional().describe(LATE),
  status: z
    .array(runStatus)
    .min(1)
    .optional()
    .describe(
      `Runs with one of these statuses. Default: ${STATUSES.retry.default.join(', ')} for \`retry\`, and all open runs for \`cancel\`.`,
    ),
})

const request = z
  .strictObject({
    action: z.enum(BATCH_ACTIONS),
    filter: filter.default({}),
    ...retryOptions,
    confirm: z.boolean().default(false),
  })
  .meta({ id: 'RunBatchRequest' })

const preview = confirmation(
  'RunBatchPreview',
  'run_batch_preview',
  z.object({
    action: z.enum(BATCH_ACTIONS),
    count: z.int().meta({ description: 'The number of runs that match now.' }),
    run_ids: z.array(z.uuid()).meta({ description: 'The newest of these runs.' }),
  }),
)

const batch = z
  .object({
    object: z.literal('run_batch'),
    batch_id: z.uuid(),
    action: z.enum(BATCH_ACTIONS),
    status: z.enum(['running', 'completed']),
    filter: z.record(z.string(), z.unknown()),
    total: z.int(),
    done: z
      .int()
      .meta({ description: 'The number of runs that were retried, or whose cancellation was requested.' }),
    refused: z.int().meta({ description: 'The number of runs that were refused: see `refusals`.' }),
    pending: z.int(),
    refusals: z
      .array(z.object({ run_id: z.uuid(), error: z.object({ code: z.string(), message: z.string() }) }))
      .meta({ description: 'The first 20 refusals.' }),
    created_at: z.iso.datetime(),
    ended_at: z.iso.datetime().nullable(),
  })
  .meta({ id: 'RunBatch' })

export const runBatchRoutes: Route[] = [
  route({
    method: 'POST',
    path: '/run-batches',
    scope: 'workflows:run',
    id: 'createRunBatch',
    tag: 'Runs',
    summary: 'Retry or cancel many runs',
    description: `Retries or cancels all runs that match the filter, at most ${MAX_BATCH}. Without \`confirm: true\` nothing
happens: the response is a preview with their number. A confirmed batch contains the runs that match at that moment; it is processed in
the background, each run once. \`from_start\` and \`version\` are those of a retry.`,
    body: request,
    response: { status: 201, schema: batch, preview: preview.schema },
    example: { action: 'retry', filter: { status: ['failed'], q: 'connection refused' }, confirm: true },
    handler: async ({ body, tenant, asPreview }) => {
      const wanted = batchOf(body)
      if (!body.confirm) {
        asPreview()
        const { count, run_ids } = await tenant((tx) => previewBatch(tx, wanted))
        return preview.answer({ action: body.action, count, run_ids })
      }
      return tenant(async (tx) => present(await getBatch(tx, await createBatch(tx, wanted))))
    },
  }),
  route({
    method: 'GET',
    path: '/run-batches/{batch_id}',
    scope: 'workflows:run',
    id: 'getRunBatch',
    tag: 'Runs',
    summary: 'Retrieve a batch of runs',
    description: 'Returns its progress. Batches are kept for 30 days after their end.',
    params: z.object({ batch_id: z.uuid() }),
    response: { status: 200, schema: batch },
    handler: async ({ params, tenant }) => tenant(async (tx) => present(await getBatch(tx, params.batch_id))),
  }),
]

/** Throws `validation_error` for a status that the action does not apply to. */
function batchOf({ action, filter, from_start, version }: z.output<typeof request>): BatchRequest {
  const { possible, default: usual } = STATUSES[action]
  const wrong = filter.status?.filter((status) => !possible.includes(status)) ?? []
  if (wrong.length > 0)
    throw invalid([
      {
        loc: ['body', 'filter', 'status'],
        msg: `${action} applies to runs that are ${possible.join(', ')}: not ${wrong.join(', ')}`,
        type: 'enum',
      },
    ])
  return { action, filter: { ...filter, status: filter.status ?? usual }, options: { from_start, version } }
}

const present = ({ id, options: _, ...rest }: RunBatch) => ({
  object: 'run_batch',
  batch_id: id,
  status: rest.ended_at === null ? 'running' : 'completed',
  ...rest,
  pending: rest.total - rest.done - rest.refused,
})
