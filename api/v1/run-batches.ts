import { z } from 'zod'
import { invalid } from '../../db/model/errors.ts'
import {
  BATCH_ACTIONS,
  type BatchAction,
  type BatchRequest,
  createBatch,
  getBatch,
  MAX_CHECKED,
  previewBatch,
  type RunBatch,
  SHOWN_REFUSALS,
} from '../../db/runs/batches.ts'
import type { WantedVersion } from '../../db/runs/migrate.ts'
import { RETRY_VERSIONS } from '../../db/runs/retry.ts'
import { OPEN_RUN_STATUSES, RUN_END_STATUSES, type RunStatus } from '../../workflows/shared/statuses.ts'
import { type Route, route } from '../http/route.ts'
import { confirmation } from './confirmation.ts'
import { targetVersion } from './migrate-run.ts'
import { retryOptions } from './retry-run.ts'
import { LATE, MAX_VERSION, OF_VERSION, runFilter, runStatus } from './run-filter.ts'

/** The statuses that an action applies to, and those it applies to by default if the filter has no `status`. */
const STATUSES: Record<BatchAction, { possible: readonly RunStatus[]; default: readonly RunStatus[] }> = {
  retry: { possible: RUN_END_STATUSES, default: ['failed', 'terminated', 'lost'] },
  cancel: { possible: OPEN_RUN_STATUSES, default: OPEN_RUN_STATUSES },
  migrate: { possible: OPEN_RUN_STATUSES, default: OPEN_RUN_STATUSES },
}

const filter = z.strictObject({
  ...runFilter,
  late: z.boolean().optional().describe(LATE),
  workflow_version: z.int().min(1).max(MAX_VERSION).optional().describe(OF_VERSION),
  status: z
    .array(runStatus)
    .min(1)
    .optional()
    .describe(
      `Runs with one of these statuses. Default: ${STATUSES.retry.default.join(', ')} for \`retry\`, and all open runs for \`cancel\` and \`migrate\`.`,
    ),
})

const request = z
  .strictObject({
    action: z.enum(BATCH_ACTIONS),
    filter: filter.default({}),
    from_start: retryOptions.from_start,
    version: z
      .union([z.enum(RETRY_VERSIONS), targetVersion], {
        error: 'must be same or latest, or for migrate the number of a version',
      })
      .optional()
      .describe(
        'For `retry` that of `retryRun`: `same` (default) or `latest`. For `migrate`, which requires it, that of `migrateRun`: `latest`, or a number with `workflow_id` in the filter.',
      ),
    confirm: z.boolean().default(false),
  })
  .meta({ id: 'RunBatchRequest' })

const refusals = z.array(
  z.object({
    run_id: z.uuid(),
    error: z.object({
      code: z.string(),
      message: z.string(),
      details: z
        .record(z.string(), z.unknown())
        .optional()
        .meta({ description: 'For a migration: `obstacles`, as in `error.obstacles` of `migrateRun`.' }),
    }),
  }),
)

const preview = confirmation(
  'RunBatchPreview',
  'run_batch_preview',
  z.object({
    action: z.enum(BATCH_ACTIONS),
    count: z.int().meta({ description: 'The number of runs that match now.' }),
    run_ids: z.array(z.uuid()).meta({ description: 'The newest of these runs.' }),
    migration: z
      .object({
        checked: z
          .int()
          .meta({ description: `The number of runs that were checked: the newest ${MAX_CHECKED}.` }),
        refused: z.int().meta({ description: 'How many of these would be refused now.' }),
        refusals: refusals.meta({ description: `The first ${SHOWN_REFUSALS} of them.` }),
      })
      .optional()
      .meta({ description: 'Only with `migrate`.' }),
  }),
)

const batch = z
  .object({
    object: z.literal('run_batch'),
    batch_id: z.uuid(),
    action: z.enum(BATCH_ACTIONS),
    status: z.enum(['running', 'completed']),
    filter: z.record(z.string(), z.unknown()),
    total: z.int().meta({ description: 'The number of runs; it grows while `listing` is true.' }),
    listing: z.boolean().meta({
      description:
        'Whether the runs of a large batch are still being listed. None is made before that has ended.',
    }),
    done: z.int().meta({
      description: 'The number of runs that were retried or migrated, or whose cancellation was requested.',
    }),
    refused: z.int().meta({ description: 'The number of runs that were refused: see `refusals`.' }),
    pending: z.int(),
    refusals: refusals.meta({ description: `The first ${SHOWN_REFUSALS} refusals.` }),
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
    grows: ({ action }) => action === 'retry',
    tag: 'Runs',
    summary: 'Retry, cancel or migrate many runs',
    description: `Retries, cancels or migrates all runs that match the filter. Without \`confirm: true\` nothing
happens: the response is a preview with their number. A confirmed batch contains the runs that match at that moment (of more
than 10,000, the older ones are listed in the background, within seconds); it is processed in the background, each run once.
Retries wait while the organization has as many queued runs as its plan allows. \`from_start\` is that of a retry. A run that
cannot be retried or migrated is among the \`refusals\`, and stays as it is. A migration leaves out runs that have the version
already; its preview says what would be refused.`,
    body: request,
    response: { status: 201, schema: batch, preview: preview.schema },
    example: { action: 'retry', filter: { status: ['failed'], q: 'connection refused' }, confirm: true },
    handler: async ({ body, tenant, asPreview }) => {
      const wanted = batchOf(body)
      if (!body.confirm) {
        asPreview()
        const found = await tenant((tx) => previewBatch(tx, wanted))
        return preview.answer({ action: body.action, ...found })
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

/** Throws `validation_error` for a status or a version that the action does not apply to. */
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
  const runs = { ...filter, status: filter.status ?? usual }
  if (action === 'migrate') return { action, filter: runs, options: { version: targetOf(version, filter) } }
  if (typeof version === 'number')
    throw invalid([{ loc: ['body', 'version'], msg: `must be ${RETRY_VERSIONS.join(' or ')}`, type: 'enum' }])
  return { action, filter: runs, options: { from_start, version: version ?? 'same' } }
}

function targetOf(
  version: z.output<typeof request>['version'],
  { workflow_id }: z.output<typeof filter>,
): WantedVersion {
  if (version === undefined || version === 'same')
    throw invalid([
      {
        loc: ['body', 'version'],
        msg: 'migrate requires the version to migrate to',
        type: 'missing',
        hint: 'send its number, or latest',
      },
    ])
  if (version !== 'latest' && workflow_id === undefined)
    throw invalid([
      {
        loc: ['body', 'filter', 'workflow_id'],
        msg: 'a version number belongs to one workflow',
        type: 'missing',
        hint: 'send the workflow_id, or the version latest',
      },
    ])
  return version
}

const present = ({ id, options: _, ...rest }: RunBatch) => ({
  object: 'run_batch',
  batch_id: id,
  status: rest.ended_at === null ? 'running' : 'completed',
  ...rest,
  pending: rest.total - rest.done - rest.refused,
})
