import { z } from 'zod'
import { writableColumns } from '../../db/model/records/columns.ts'
import { customName, unknownHint } from '../../db/model/records/filters.ts'
import { type KindName, withArticle } from '../../db/model/records/kind.ts'
import { kindNames, kinds } from '../../db/model/records/kinds/index.ts'
import { actor, type RecordInput, recordSchema } from '../../db/model/records/schemas.ts'
import { revealSensitive } from '../../db/records/custom-fields/sensitive.ts'
import { listHistory } from '../../db/records/history.ts'
import { withNames } from '../../db/records/history-names.ts'
import { mergeRecords } from '../../db/records/merge.ts'
import { restoreRecord } from '../../db/records/restore.ts'
import { revertRecord } from '../../db/records/revert.ts'
import { type MergeableKind, mergeableKinds } from '../../workflows/shared/record-kinds.ts'
import { ifMatch } from '../http/if-match.ts'
import { listEnvelope, offsetOf, order, pageControls, presentList } from '../http/list-query.ts'
import { type Route, route } from '../http/route.ts'
import { allows } from '../http/scopes.ts'
import { linkScopes } from './link-scopes.ts'
import { kindParams, recordParams, tagOf, title, withETag } from './record-shapes.ts'

const RESTORE = `Reverts a delete within 30 days: restores the associations, and the reference fields that the delete
cleared if they are still empty. 404 if the record is not deleted, was deleted earlier or was merged. 409 if another
record has its \`external_id\` or a unique value.`

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

const namedEntry = historyEntry
  .extend({
    names: z
      .record(z.uuid(), z.string())
      .describe(
        'The names of the actor, and of the users and records that the changes name, by id; of records if the key may read their kind.',
      ),
  })
  .meta({ id: 'NamedHistoryEntry' })

const historyQuery = (kind: KindName) => z.strictObject({ ...pageControls, order, field: historyField(kind) })

const historyField = (kind?: KindName) =>
  z
    .string()
    .max(100)
    .superRefine((name, ctx) => {
      if (!kind || customName(name) !== undefined) return
      const known = writableColumns(kinds[kind]).filter((column) => column !== 'custom_fields')
      if (known.includes(name)) return
      const hint = unknownHint(kinds[kind], name, [...known, 'custom_fields.<name>'], 'fields')
      ctx.addIssue({ code: 'custom', message: 'is not a field', params: { hint }, input: name })
    })
    .optional()
    .describe('Only changes of this field, or of `custom_fields.<name>`.')

/** A record of the kind of the path. */
const anyRecord = z.union(kindNames.map(recordSchema))

const mergeBody = z
  .strictObject({ from: z.uuid().toLowerCase().describe('The id of the duplicate.') })
  .meta({ id: 'MergeRequest' })

const sensitiveValues = z
  .object({
    object: z.literal('sensitive_values'),
    entity: z.enum(kindNames),
    id: z.uuid(),
    custom_fields: z.record(z.string(), z.unknown()),
  })
  .meta({ id: 'SensitiveValues' })

const revertBody = z
  .strictObject({ version: z.int().min(1).describe('A version of its history.') })
  .meta({ id: 'RevertRequest' })

/** Restore and merge, and the history and revert of all kinds. */
export const recordLifeRoutes: Route[] = [
  ...kindNames.map(restoreRoute),
  ...mergeableKinds.map(mergeRoute),
  historyRoute(),
  revealRoute(),
  revertRoute(),
]

/** What the routes have in common that answer with the record, as its change does. */
function answeringRecord(kind: KindName) {
  const schema = recordSchema(kind)
  return {
    method: 'POST' as const,
    scope: `${kind}:write` as const,
    tag: tagOf(kind),
    params: recordParams,
    response: { status: 200 as const, schema },
    exampleOf: `update${title(kinds[kind].object)}`,
    etag: true as const,
    ifMatch: true as const,
  }
}

function restoreRoute(kind: KindName): Route {
  const { object } = kinds[kind]
  return route({
    ...answeringRecord(kind),
    path: `/objects/${kind}/{entity_id}/restore`,
    id: `restore${title(object)}`,
    summary: `Restore a deleted ${object}`,
    description: RESTORE,
    handler: async ({ params, headers, tenant, setHeader }) => {
      const ifVersion = ifMatch(headers)
      return withETag(
        setHeader,
        await tenant((tx) => restoreRecord(tx, kind, params.entity_id, { ifVersion })),
      )
    },
  })
}

function mergeRoute(kind: MergeableKind): Route {
  const { object } = kinds[kind]
  return route({
    ...answeringRecord(kind),
    path: `/objects/${kind}/{entity_id}/merge`,
    id: `merge${title(object)}`,
    summary: `Merge a duplicate into ${withArticle(object)}`,
    description: MERGE,
    body: mergeBody,
    example: { from: '01890a5d-ac96-774b-bcce-b302099a8057' },
    handler: async ({ params, body, headers, tenant, setHeader }) => {
      const ifVersion = ifMatch(headers)
      return withETag(
        setHeader,
        await tenant((tx) => mergeRecords(tx, kind, params.entity_id, body.from, { ifVersion })),
      )
    },
  })
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
    query: {
      of: ({ entity }) => historyQuery(entity),
      documented: z.strictObject({ ...pageControls, order, field: historyField() }),
    },
    response: { status: 200, schema: listEnvelope(namedEntry) },
    handler: async ({ params: { entity, entity_id }, query, caller, tenant }) => {
      const offset = offsetOf(query)
      const readable = kindNames.filter((kind) => allows(caller.scopes, `${kind}:read`))
      const page = await tenant(async (tx) => {
        const found = await listHistory(tx, entity, entity_id, { ...query, offset })
        return { ...found, data: await withNames(tx, entity, found.data, readable) }
      })
      return presentList(page)
    },
  })
}

function revealRoute(): Route {
  return route({
    method: 'POST',
    path: '/objects/{entity}/{entity_id}/reveal',
    scope: ({ entity }) => [`${entity}:read` as const, 'records:reveal' as const],
    id: 'revealSensitiveValues',
    tag: 'Records',
    // A kept answer would have the values in plain text, and a repetition changes nothing.
    idempotent: false,
    summary: 'Reveal the sensitive values of a record',
    description:
      'The values of the sensitive custom fields, of which the record itself has masks. The audit log notes who retrieved which fields.',
    params: recordParams.extend(kindParams.shape),
    response: { status: 200, schema: sensitiveValues },
    handler: async ({ params: { entity, entity_id }, tenant }) => ({
      object: 'sensitive_values',
      entity,
      id: entity_id,
      custom_fields: await tenant((tx) => revealSensitive(tx, entity, entity_id)),
    }),
  })
}

function revertRoute(): Route {
  return route({
    method: 'POST',
    path: '/objects/{entity}/{entity_id}/revert',
    scope: ({ entity }) => [`${entity}:write` as const],
    id: 'revertRecord',
    grows: true,
    tag: 'Records',
    summary: 'Revert a record to a version',
    description:
      'Gives the fields the values that they had at a version of the history, as a new version. Links without a field, files, merges and `alternate_keys` stay. A reference that changes also needs the write scope of its kind.',
    params: recordParams.extend(kindParams.shape),
    body: revertBody,
    response: { status: 200, schema: anyRecord },
    example: { version: 1 },
    etag: true,
    ifMatch: true,
    handler: async ({ params: { entity, entity_id }, body, headers, tenant, requireScopes, setHeader }) => {
      const options = {
        ifVersion: ifMatch(headers),
        check: (values: object) => requireScopes(linkScopes(entity, values as RecordInput)),
      }
      return withETag(
        setHeader,
        await tenant((tx) => revertRecord(tx, entity, entity_id, body.version, options)),
      )
    },
  })
}
