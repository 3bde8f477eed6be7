import { z } from 'zod'
import type { Tenant } from '../../db/postgres/tenancy.ts'
import { cancelRun, terminateRun } from '../../db/runs/moves/ends.ts'
import { pauseRun, unpauseRun } from '../../db/runs/moves/pauses.ts'
import { listOpenWaits } from '../../db/runs/open-waits.ts'
import { durationOf, getRun, getRunNodes, listIterations, listRuns } from '../../db/runs/views.ts'
import { ITERATION_STATUSES } from '../../workflows/shared/statuses.ts'
import type { AppDeps } from '../deps.ts'
import {
  count,
  integer,
  listEnvelope,
  offsetOf,
  order,
  pageControls,
  presentList,
} from '../http/list-query.ts'
import { type Route, route } from '../http/route.ts'
import { LATE, MAX_VERSION, OF_VERSION, runFilter, statusList } from './run-filter.ts'
import { iteration, presentRunSummary, runShape, runSummary } from './run-shapes.ts'
import { presentWait, runWaitRoutes } from './run-waits.ts'

const query = z.strictObject({
  ...pageControls,
  order,
  count,
  ...runFilter,
  workflow_version: integer(1, MAX_VERSION).optional().describe(OF_VERSION),
  status: statusList.optional(),
  late: z
    .stringbool({ truthy: ['true'], falsy: ['false'] })
    .optional()
    .describe(LATE)
    .meta({ type: 'boolean' }),
})

const byId = z.object({ run_id: z.uuid() })

/** An operation that changes the run's status. */
const change = (verb: string, description: string, move: (tx: Tenant, id: string) => Promise<unknown>) =>
  route({
    method: 'POST',
    path: `/runs/{run_id}/${verb}`,
    scope: 'workflows:run',
    id: `${verb}Run`,
    hidesLinks: true,
    tag: 'Runs',
    summary: `${verb[0]!.toUpperCase()}${verb.slice(1)} a run`,
    description,
    params: byId,
    response: { status: 200, schema: runShape },
    handler: async ({ params, tenant, deps }) =>
      tenant(async (tx) => {
        await move(tx, params.run_id)
        return showRun(tx, params.run_id, deps)
      }),
  })

export const runRoutes: Route[] = [
  route({
    method: 'GET',
    path: '/runs',
    scope: 'workflows:read',
    id: 'listRuns',
    tag: 'Runs',
    summary: 'List runs',
    description: 'Newest first, without inputs and outputs.',
    query,
    response: { status: 200, schema: listEnvelope(runSummary) },
    handler: async ({ query, tenant, deps }) => {
      const { limit, offset: _, cursor, order, count, ...filter } = query
      const wanted = { limit, cursor, offset: offsetOf(query) }
      const page = await tenant((tx) => listRuns(tx, filter, wanted, { order, count }))
      return presentList({ ...page, data: page.data.map((run) => presentRunSummary(run, deps.config)) })
    },
  }),
  route({
    method: 'GET',
    path: '/runs/{run_id}',
    scope: 'workflows:run',
    id: 'getRun',
    hidesLinks: true,
    tag: 'Runs',
    summary: 'Retrieve a run',
    params: byId,
    query: z.strictObject({
      path: z
        .string()
        .max(500)
        .default('')
        .describe('An iteration of a loop, such as `each:3`: its nodes are shown.'),
    }),
    response: { status: 200, schema: runShape },
    handler: async ({ params, query, tenant, deps }) =>
      tenant((tx) => showRun(tx, params.run_id, deps, query.path)),
  }),
  route({
    method: 'GET',
    path: '/runs/{run_id}/iterations',
    scope: 'workflows:run',
    id: 'listIterations',
    hidesLinks: true,
    tag: 'Runs',
    summary: 'List the items of a loop',
    description: 'Lists the items that the run has started, in the order of the list.',
    params: byId,
    query: z.strictObject({
      ...pageControls,
      count,
      loop: z.string().min(1).max(500).describe('The `loop` of a node of the run.'),
      status: z.enum(ITERATION_STATUSES).optional().describe('Items with this status.'),
    }),
    response: { status: 200, schema: listEnvelope(iteration) },
    handler: async ({ params, query, tenant }) => {
      const { limit, cursor, count, loop, status } = query
      const page = await tenant(async (tx) => {
        const { id } = await getRun(tx, params.run_id)
        const wanted = { limit, cursor, offset: offsetOf(query) }
        return listIterations(tx, { run_id: id, loop, status }, wanted, count)
      })
      const data = page.data.map((one) => ({ ...one, duration_ms: durationOf(one) }))
      return presentList({ ...page, data })
    },
  }),
  change(
    'cancel',
    'A queued or paused run ends at once. A running run ends shortly after: its nodes are cancelled, their effects remain, except for those of nodes with `undo`. If the version has cleanup nodes (`undo`, `on_cancel`, `finally`), a run that has begun ends after them, a paused one too; a second cancellation does not stop them. A run that has ended is returned unchanged.',
    cancelRun,
  ),
  change(
    'terminate',
    'The run ends at once as `terminated`: nothing more of it is run or recorded, not even its undo, on_cancel and finally nodes, and its workflow in Temporal is terminated. Like `cancel`, it raises no event and starts no error workflow. A run that has ended is returned unchanged.',
    terminateRun,
  ),
  change(
    'pause',
    'The run starts no further node. Attempts of external nodes that are in progress end and are recorded; then the run is `paused` and occupies no slot. Delays that end during the pause end when it is resumed; the time of the pause does not count against the `timeout` of the workflow. 409 for a run that has ended.',
    pauseRun,
  ),
  change(
    'resume',
    'The paused run is queued, and continues where it stopped. A run that is not paused is returned unchanged. 409 for a run that has ended.',
    unpauseRun,
  ),
  ...runWaitRoutes,
]

/** A run as `runShape`. Throws `not_found`. */
export async function showRun(tx: Tenant, id: string, deps: AppDeps, path?: string) {
  const run = await getRun(tx, id)
  const nodes = await getRunNodes(tx, id, path)
  const waits = run.ended_at === null ? await listOpenWaits(tx, id) : []
  return {
    ...presentRunSummary(run, deps.config),
    trigger: run.trigger,
    nodes: nodes.map((node) => ({ ...node, duration_ms: durationOf(node) })),
    waits: waits.map((wait) => presentWait(wait, id, tx, deps)),
  }
}
