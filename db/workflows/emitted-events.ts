import { EMITTERS } from '../../workflows/nodes/index.ts'
import type { Tenant } from '../postgres/tenancy.ts'

/** The most workflows whose definitions are read: the newest. */
const MOST_WORKFLOWS = 1_000

/**
 * The names of the events that nodes of the organization's workflows raise, as they are written, placeholders included.
 * Undefined if there are too many workflows to read.
 */
export async function emittedEvents(tx: Tenant): Promise<string[] | undefined> {
  const { rows } = await tx.trx.raw<{ rows: { workflows: number; events: string[] | null }[] }>(
    `with newest as (
       select id, version, active_version from workflows
       where organization_id = :organizationId and deleted_at is null
       order by id desc limit :most + 1
     )
     select (select count(*)::integer from newest) as workflows,
       (select json_agg(distinct event #>> '{}')
        from newest w
        join workflow_versions v on v.organization_id = :organizationId and v.workflow_id = w.id
          and v.version in (w.version, w.active_version)
        cross join unnest(cast(:paths as text[])) as path
        cross join lateral jsonb_path_query(v.definition::jsonb, path::jsonpath) as event) as events`,
    { organizationId: tx.organizationId, most: MOST_WORKFLOWS, paths: EMITTED },
  )
  const { workflows, events } = rows[0]!
  return workflows > MOST_WORKFLOWS ? undefined : (events ?? [])
}

/** The paths to the names, also in the nodes of `undo`, `on_cancel` and `finally`. */
const EMITTED = EMITTERS.map(({ type, key }) => `$.**?(@.type == "${type}").config.${key}`)
