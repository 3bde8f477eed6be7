import { z } from 'zod'
import { listHistory } from '../../db/records/history.ts'
import { mergeRecords } from '../../db/records/merge.ts'
import { type EntityName, withArticle } from '../../db/records/model/kind.ts'
import { entities, entityNames } from '../../db/records/model/kinds/index.ts'
import { actor, recordSchema } from '../../db/records/model/schemas.ts'
import { restoreRecord } from '../../db/records/restore.ts'
import { ifMatch } from '../http/if-match.ts'
import { listEnvelope, offsetOf, order, pageControls, presentList } from '../http/list-query.ts'
import { type Route, route } from '../http/route.ts'
import { recordParams, tagged, title } from './objects.ts'

const RESTORE = `Undoes a delete within 30 days: its links are seen again, and references that a delete cleared,
those to it and its own, are filled where they are still null. What is not deleted, deleted for longer or merged is 404;
where its external_id or a unique custom field was taken meanwhile it is 409.`

const MERGE = `Folds the duplicate \`from\` into the record of the path, which stays: its empty fields are filled from the
duplicate, what is true of either is true (so that no \`do_not_contact\` is lost), tags and custom fields are united
(where both have one, that of the record of the path stays), and links and references to the duplicate move to it. The
duplicate is deleted and cannot be restored: from then on its id is answered 404 with \`error.merged_into\`, and its
history is read with that of the record that it went into. If-Match is about the record of the path. Write on the kind is
enough, also for the records that refer to the duplicate.`

const HISTORY = `Every change, newest first: field by field, with who made it and when. Custom fields are named
\`custom_fields.<name>\`. Entries of a record that was merged into this one have its id as \`record_id\`. A deleted record
has its history until it is purged, 30 days later.`

const historyEntry = z
  .object({
    object: z.literal('history_entry'),
    record_id: z.uuid(),
    version: z.int(),
    action: z.enum(['created', 'updated', 'deleted', 'restored', 'merged']),
    changes: z.record(z.string(), z.object({ from: z.unknown(), to: z.unknown() })),
    actor,
    at: z.iso.datetime(),
    merged_from: z.uuid().nullable().describe('With merged: the record that went into this one.'),
  })
  .meta({ id: 'HistoryEntry' })

const mergeBody = z
  .strictObject({ from: z.uuid().toLowerCase().describe('The duplicate.') })
  .meta({ id: 'Merge' })

/** What happens to a record besides being read and changed. */
export const recordLifeRoutes: Route[] = entityNames.flatMap(routesOf)

function routesOf(entity: EntityName): Route[] {
  const { object } = entities[entity]
  const common = { tag: title(entity), params: recordParams }
  const byId = `/objects/${entity}/{entity_id}`
  const response = { status: 200 as const, schema: recordSchema(entity) }
  return [
    route({
      ...common,
      method: 'POST',
      path: `${byId}/restore`,
      scope: `${entity}:write`,
      id: `restore${title(object)}`,
      summary: `Bring a deleted ${object} back`,
      description: RESTORE,
      response,
      etag: true,
      ifMatch: true,
      handler: async ({ params, headers, tenant, setHeader }) => {
        const ifVersion = ifMatch(headers)
        return tagged(
          setHeader,
          await tenant((tx) => restoreRecord(tx, entity, params.entity_id, { ifVersion })),
        )
      },
    }),
    route({
      ...common,
      method: 'POST',
      path: `${byId}/merge`,
      scope: `${entity}:write`,
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
        return tagged(
          setHeader,
          await tenant((tx) => mergeRecords(tx, entity, params.entity_id, body.from, { ifVersion })),
        )
      },
    }),
    route({
      ...common,
      method: 'GET',
      path: `${byId}/history`,
      scope: `${entity}:read`,
      id: `list${title(object)}History`,
      summary: `List the changes of ${withArticle(object)}`,
      description: HISTORY,
      query: z.strictObject({ ...pageControls, order }),
      response: { status: 200, schema: listEnvelope(historyEntry) },
      handler: async ({ params, query, tenant }) => {
        const offset = offsetOf(query)
        return presentList(
          await tenant((tx) => listHistory(tx, entity, params.entity_id, { ...query, offset })),
        )
      },
    }),
  ]
}
