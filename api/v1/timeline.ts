import { z } from 'zod'
import { DELIVERY_STATUSES } from '../../db/model/outgoing/statuses.ts'
import { kindNames } from '../../db/model/records/kinds/index.ts'
import { kindOfType, TIMELINE_TYPES, type TimelineType } from '../../db/model/records/timeline.ts'
import { type TimelineEntry, timelineEntries } from '../../db/timeline/entries.ts'
import { listTimeline } from '../../db/timeline/list.ts'
import type { AppDeps } from '../deps.ts'
import { listEnvelope, pageControls, presentList } from '../http/list-query.ts'
import { type Route, route } from '../http/route.ts'
import { allows, type Scope } from '../http/scopes.ts'
import { historyEntry } from './record-life.ts'
import { kindParams, listItem, recordParams } from './record-shapes.ts'
import { presentRunSummary, runSummary } from './run-shapes.ts'

const time = z.iso.datetime()

const delivery = z
  .object({
    object: z.literal('delivery'),
    id: z.uuid(),
    webhook_id: z.uuid(),
    event: z.string(),
    status: z.enum(DELIVERY_STATUSES),
    attempt_count: z.int(),
    http_status: z.int().nullable(),
    error: z.string().nullable(),
    created_at: time,
    ended_at: time.nullable(),
  })
  .meta({ id: 'TimelineDelivery' })

export const timelineEntry = z
  .object({
    object: z.literal('timeline_entry'),
    type: z.enum(TIMELINE_TYPES),
    at: time,
    data: z
      .union([...kindNames.map(listItem), historyEntry, runSummary, delivery])
      .meta({ description: 'A record as in lists, a history entry, a run as in lists, or a delivery.' }),
  })
  .meta({ id: 'TimelineEntry' })

const types = z
  .string()
  .transform((text) => [...new Set(text.split(','))])
  .pipe(z.array(z.enum(TIMELINE_TYPES)))
  .optional()
  .meta({
    type: 'string',
    description: `What to show, separated by commas: ${TIMELINE_TYPES.join(', ')}. Default: all that the key may read.`,
    examples: ['note,activity,task'],
  })

/** The scope that shows entries of a type, besides that of the record; undefined: that of the record suffices. */
function scopeOf(type: TimelineType): Scope | undefined {
  const kind = kindOfType(type)
  if (kind) return `${kind}:read`
  return { run: 'workflows:read' as const, delivery: 'webhooks:read' as const }[type as string]
}

/** What happened around a record. */
export const timelineRoutes: Route[] = [
  route({
    method: 'GET',
    path: '/objects/{entity}/{entity_id}/timeline',
    scope: ({ entity }) => [`${entity}:read` as const],
    id: 'listTimeline',
    tag: 'Records',
    summary: 'List what happened around a record',
    description:
      "Newest first: associated notes, activities (by `occurred_at`), tasks and other records, the record's changes, the runs that its events started, and the deliveries of its events. Entries need the read scope of their kind, runs `workflows:read`, deliveries `webhooks:read`; without it they are left out, or refused if `types` names them. `total` is null: the entries are not counted.",
    params: recordParams.extend(kindParams.shape),
    query: z.strictObject({ types, limit: pageControls.limit, cursor: pageControls.cursor }),
    response: { status: 200, schema: listEnvelope(timelineEntry) },
    handler: async ({ params: { entity, entity_id }, query, caller, tenant, deps, requireScopes }) => {
      const needed = (type: TimelineType) => scopeOf(type) ?? (`${entity}:read` as const)
      if (query.types) requireScopes(query.types.map(needed))
      const shown = query.types ?? TIMELINE_TYPES.filter((type) => allows(caller.scopes, needed(type)))
      const { limit, cursor } = query
      return tenant(async (tx) => {
        const page = await listTimeline(tx, entity, entity_id, { types: shown, limit, cursor })
        const entries = await timelineEntries(tx, entity, entity_id, page.places)
        return presentList({
          data: entries.map((entry) => presentTimelineEntry(entry, deps.config)),
          limit,
          offset: 0,
          has_more: page.has_more,
          next_cursor: page.next_cursor,
          total: null,
          total_is_estimate: false,
        })
      })
    },
  }),
]

/** An entry as the API shows it. */
export function presentTimelineEntry({ at, ...entry }: TimelineEntry, config: AppDeps['config']) {
  const shown = (type: TimelineType, data: object) => ({ object: 'timeline_entry' as const, type, at, data })
  if (entry.type === 'record') return shown(entry.data.object as TimelineType, entry.data)
  if (entry.type === 'run') return shown('run', presentRunSummary(entry.data, config))
  if (entry.type === 'change') return shown('change', entry.data)
  const { id, webhook_id, event, status, attempt_count, http_status, error, created_at, ended_at } =
    entry.data
  const shownDelivery = {
    id,
    webhook_id,
    event,
    status,
    attempt_count,
    http_status,
    error,
    created_at,
    ended_at,
  }
  return shown('delivery', { object: 'delivery', ...shownDelivery })
}
