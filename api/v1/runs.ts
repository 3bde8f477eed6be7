import { z } from 'zod'
import { cancelRun } from '../../db/runs/moves.ts'
import {
  durationOf,
  getRun,
  getRunNodes,
  listRuns,
  type RunDetails,
  type RunNodeView,
  type RunSummary,
} from '../../db/runs/views.ts'
import { NODE_STATUSES, RUN_STATUSES } from '../../workflows/interpret/statuses.ts'
import { count, listEnvelope, offsetOf, order, pageControls, presentList } from '../http/list-query.ts'
import { type Route, route } from '../http/route.ts'
import { linksOf } from './run-links.ts'

const time = z.iso.datetime()
const links = z.object({ self: z.string(), temporal_ui: z.string().optional() })

const summary = z
  .object({
    object: z.literal('run'),
    run_id: z.uuid(),
    workflow_id: z.uuid(),
    workflow_name: z.string(),
    workflow_version: z.int(),
    status: z.enum(RUN_STATUSES),
    trigger: z.object({ type: z.string() }).meta({ description: 'Who or what started it.' }),
    record_id: z.uuid().nullable(),
    stuck_reason: z.string().nullable().meta({ description: 'Why it does not get on, where it does not.' }),
    created_at: time,
    started_at: time.nullable(),
    ended_at: time.nullable(),
    duration_ms: z.int().nullable().meta({ description: 'From started_at to ended_at.' }),
    links,
  })
  .meta({ id: 'RunSummary' })

const error = z
  .object({
    code: z.string(),
    message: z.string(),
    node_id: z.string().optional(),
    details: z.record(z.string(), z.unknown()).optional(),
  })
  .nullable()

const details = summary
  .extend({
    trigger: z.record(z.string(), z.unknown()),
    inputs: z.record(z.string(), z.unknown()),
    outputs: z.record(z.string(), z.unknown()).nullable(),
    error,
    cancel_requested_at: time.nullable(),
    nodes: z.array(
      z.object({
        node_id: z.string(),
        node_type: z.string(),
        title: z.string(),
        status: z.enum(NODE_STATUSES),
        attempt: z.int(),
        input: z.unknown().meta({ description: 'Its config, rendered.' }),
        output: z.unknown(),
        handle: z.string().nullable().meta({ description: 'The handle that it left by.' }),
        error,
        wait_until: time.nullable(),
        started_at: time,
        ended_at: time.nullable(),
        duration_ms: z.int().nullable().meta({
          description:
            'From started_at to ended_at: with all attempts, and what it waited for and between them.',
        }),
      }),
    ),
  })
  .meta({ id: 'Run' })

const query = z.strictObject({
  ...pageControls,
  order,
  count,
  workflow_id: z.uuid().optional(),
  record_id: z.uuid().optional(),
  status: z.enum(RUN_STATUSES).optional(),
})

const byId = z.object({ run_id: z.uuid() })

export const runRoutes: Route[] = [
  route({
    method: 'GET',
    path: '/runs',
    scope: 'workflows:read',
    id: 'listRuns',
    tag: 'Workflows',
    summary: 'List runs',
    description: 'The newest first, without what went in and came out.',
    query,
    response: { status: 200, schema: listEnvelope(summary) },
    handler: async ({ query, tenant, deps }) => {
      const { limit, offset: _, cursor, order, count, ...filter } = query
      const wanted = { limit, cursor, offset: offsetOf(query) }
      const page = await tenant((tx) => listRuns(tx, filter, wanted, { order, count }))
      return presentList({ ...page, data: page.data.map((run) => present(run, deps.config)) })
    },
  }),
  route({
    method: 'GET',
    path: '/runs/{run_id}',
    scope: 'workflows:run',
    id: 'getRun',
    tag: 'Workflows',
    summary: 'Get a run, node by node',
    params: byId,
    response: { status: 200, schema: details },
    handler: async ({ params, tenant, deps }) =>
      tenant(async (tx) => {
        const run = await getRun(tx, params.run_id)
        return presentDetails(run, await getRunNodes(tx, run.id), deps.config)
      }),
  }),
  route({
    method: 'POST',
    path: '/runs/{run_id}/cancel',
    scope: 'workflows:run',
    id: 'cancelRun',
    tag: 'Workflows',
    summary: 'Cancel a run',
    description:
      'A run that is still queued ends at once; a running one shortly after: its nodes are cancelled, what they did stays. One that has ended is answered as it is.',
    params: byId,
    response: { status: 200, schema: details },
    handler: async ({ params, tenant, deps }) =>
      tenant(async (tx) => {
        await cancelRun(tx, params.run_id)
        const run = await getRun(tx, params.run_id)
        return presentDetails(run, await getRunNodes(tx, run.id), deps.config)
      }),
  }),
]

function present(run: RunSummary, config: Parameters<typeof linksOf>[1]) {
  const { id, trigger, ...rest } = run
  return {
    object: 'run',
    run_id: id,
    ...rest,
    trigger: { type: trigger.type },
    duration_ms: durationOf(run),
    links: linksOf(id, config),
  }
}

const presentDetails = (run: RunDetails, nodes: RunNodeView[], config: Parameters<typeof linksOf>[1]) => ({
  ...present(run, config),
  trigger: run.trigger,
  nodes: nodes.map((node) => ({ ...node, duration_ms: durationOf(node) })),
})
