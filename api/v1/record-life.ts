import { z } from 'zod'
import { type KindName, withArticle } from '../../db/model/records/kind.ts'
import { kindNames, kinds } from '../../db/model/records/kinds/index.ts'
import { actor, recordSchema } from '../../db/model/records/schemas.ts'
import { listHistory } from '../../db/records/history.ts'
import { mergeRecords } from '../../db/records/merge.ts'
import { restoreRecord } from '../../db/records/restore.ts'
import { ifMatch } from '../http/if-match.ts'
import { listEnvelope, offsetOf, order, pageControls, presentList } from '../http/list-query.ts'
import { type Route, route } from '../http/route.ts'
import { kindParams, recordParams, title, withETag } from './record-shapes.ts'

const RESTORE = `Reverts a delete within 30 days: restores the associations of the record, and the reference fields that the
delete cleared if they are still empty. 404 if the record is not deleted, was deleted more than 30 days ago or was merged.
409 if its \`external_id\` or a unique custom field is in use by another record.`

const MERGE = `Merges the duplicate \`from\` into the record of the path. Empty fields are filled from the duplicate, a boolean is
true if either is true, tags and custom fields are united (the record of the path wins), and associations and references
to the duplicate move. The duplicate is deleted and cannot be restored: its id gives 404 with \`error.merged_into\`,
and its history becomes part of the record's. Its upsert keys become \`alternate_keys\` of the record, by which upserts,
imports and incoming webhooks find it. \`If-Match\` applies to the record of the path. The scope of the kind also
covers the records that refer to the duplicate.`

const HISTORY = `Lists the changes of a record, newest first: field by field, with actor and time. Custom fields are named
\`custom_fields.<name>\`. Entries of a merged duplicate have its id as \`record_id\`. The history of a deleted record is
kept until the record is purged after 30 days.`

export const historyEntry = z
  .object({
    object: z.literal('history_entry'),
    record_id: z.uuid(),
    version: z.int(),
    action: z.enum(['created', 'updated', 'deleted', 'restored', 'merged']),
    changes: z.record(z.string(), z.object({ from: z.unknown(), to: z.unknown() })),
    actor,
    at: z.iso.datetime(),
    merged_from: z.uuid().nullable().describe('The id of the duplicate, for a `merged` entry.'),
  })
  .meta({ id: 'HistoryEntry' })

const mergeBody = z
  .strictObject({ from: z.uuid().toLowerCase().describe('The id of the duplicate.') })
  .meta({ id: 'MergeRequest' })

/** Restore and merge of each kind, and the history of all kinds. */
export const recordLifeRoutes: Route[] = [...kindNames.flatMap(routesOf), historyRoute()]

function routesOf(kind: KindName): Route[] {
  const { object } = kinds[kind]
  const common = { tag: title(kind), params: recordParams }
  const byId = `/objects/${kind}/{entity_id}`
  const response = { status: 200 as const, schema: recordSchema(kind) }
  return [
    route({
      ...common,
      method: 'POST',
      path: `${byId}/restore`,
      scope: `${kind}:write`,
      id: `restore${title(object)}`,
      summary: `Restore a deleted ${object}`,
      description: RESTORE,
      response,
      etag: true,
      ifMatch: true,
      handler: async ({ params, headers, tenant, setHeader }) => {
        const ifVersion = ifMatch(headers)
        return withETag(
          setHeader,
          await tenant((tx) => restoreRecord(tx, kind, params.entity_id, { ifVersion })),
        )
      },
    }),
    route({
      ...common,
      method: 'POST',
      path: `${byId}/merge`,
      scope: `${kind}:write`,
      id: `merge${title(object)}`,
      summary: `Merge a duplicate into ${withArticle(object)}`,
      description: MERGE,
      body: mergeBody,
      response,
      etag: true,
      ifMatch: true,
      example: { from: '01890a5d-ac96-774b-bcce-b302099a8057' },
      handler: async ({ params, body, headers, tenant, setHeader }) => {
        const ifVersion = ifMatch(headers)
        return withETag(
          setHeader,
          await tenant((tx) => mergeRecords(tx, kind, params.entity_id, body.from, { ifVersion })),
        )
      },
    }),
  ]
}

function historyRoute(): Route {
  return route({
    method: 'GET',
    path: '/objects/{entity}/{entity_id}/history',
    scope: ({ entity }) => [`${entity}:read` as const],
    id: 'listRecordHistory',
    tag: 'Records',
    summary: 'List the changes of a record',
    description: HISTORY,
    params: recordParams.extend(kindParams.shape),
    query: z.strictObject({ ...pageControls, order }),
    response: { status: 200, schema: listEnvelope(historyEntry) },
    handler: async ({ params: { entity, entity_id }, query, tenant }) => {
      const offset = offsetOf(query)
      return presentList(await tenant((tx) => listHistory(tx, entity, entity_id, { ...query, offset })))
    },
  })
}
