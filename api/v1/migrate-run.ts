import { z } from 'zod'
import { migrateRun } from '../../db/runs/migrate.ts'
import { ifMatch } from '../http/if-match.ts'
import { type Route, route } from '../http/route.ts'
import { runShape } from './run-shapes.ts'
import { showRun } from './runs.ts'

/** The version that a run is migrated to, of one run or of a batch. */
export const targetVersion = z.union([z.int().min(1), z.literal('latest')], {
  error: 'must be the number of a version, or latest',
})

export const migrateRunRoutes: Route[] = [
  route({
    method: 'POST',
    path: '/runs/{run_id}/migrate',
    // The version was saved by an author; the caller may already start it, and retry the run with it.
    scope: 'workflows:run',
    id: 'migrateRun',
    hidesLinks: true,
    tag: 'Runs',
    summary: 'Migrate a run to another version',
    description: `Moves an open run to another version of its workflow. What is open goes on untouched: waits, timers,
approvals, child runs, and the attempt of a call in progress. What is done is not repeated and keeps its outputs, also if
its config is changed. What is still to come follows the new version: nodes, edges, configs, further attempts of a call,
outputs and settings. A node that the new version adds before or beside nodes that have begun is skipped, unless a node
that is still to come follows it.

The new version must have each node that is open or done in the run, with the same type and in the same loop, accept the
inputs of the run, and keep the list and the shape of each loop in progress. Otherwise nothing is changed: 409 with all
that stands against it in \`error.obstacles\`. The ETag of the response is the new version; \`If-Match\` refuses any other,
for instance a newer one with \`latest\`.`,
    params: z.object({ run_id: z.uuid() }),
    body: z
      .strictObject({
        version: targetVersion.describe(
          'The number of the version, or `latest`: the newest one, active or not. A lower number goes back.',
        ),
      })
      .meta({ id: 'MigrateRequest' }),
    response: { status: 200, schema: runShape },
    etag: true,
    ifMatch: true,
    example: { version: 'latest' },
    handler: async ({ body, headers, params, tenant, setHeader, deps }) =>
      tenant(async (tx) => {
        const version = await migrateRun(tx, params.run_id, body.version, ifMatch(headers))
        setHeader('ETag', `"${version}"`)
        return showRun(tx, params.run_id, deps)
      }),
  }),
]
