import { z } from 'zod'
import { conflict, type Issue, invalid } from '../../db/model/errors.ts'
import { BULK_ACTIONS } from '../../db/model/records/bulk-statuses.ts'
import type { KindName } from '../../db/model/records/kind.ts'
import { kindNames, kinds } from '../../db/model/records/kinds/index.ts'
import { actor, type RecordInput, updateSchema } from '../../db/model/records/schemas.ts'
import { check } from '../../db/model/validate.ts'
import {
  type BulkJob,
  createBulkJob,
  createUndo,
  getBulkJob,
  JOB_DAYS,
  listBulkJobs,
  type NewBulkJob,
  previewBulk,
  previewUndo,
  SHOWN_REFUSALS,
} from '../../db/records/bulk/jobs.ts'
import { patchIssues } from '../../db/records/pipelines/pipelines.ts'
import type { Selection } from '../../db/records/selection.ts'
import { listEnvelope, offsetOf, pageControls, presentList } from '../http/list-query.ts'
import { type Route, type RouteRequest, route } from '../http/route.ts'
import { allows } from '../http/scopes.ts'
import { confirmation } from './confirmation.ts'
import { filterScopes } from './filter-scopes.ts'
import { jobError } from './import-shapes.ts'
import { linkScopes, writeScopes } from './link-scopes.ts'
import { tagOf, title } from './record-shapes.ts'
import { asTexts, parseSelection, storedQuery } from './stored-query.ts'

const BULK = 'bulk jobs'
const ACTIONS = BULK_ACTIONS.filter((action) => action !== 'undo')
const tag = 'Bulk jobs'

const newJob = z
  .strictObject({
    action: z.enum(ACTIONS),
    query: storedQuery(BULK).describe('Filters and `q`, as parameters of the list; `{}` for all records.'),
    data: z
      .record(z.string(), z.unknown())
      .optional()
      .describe('For `update`: the patch of each record, as in the update of one.'),
    owner_id: z.uuid().toLowerCase().nullable().optional().describe('For `reassign`: the new owner.'),
    confirm: z.boolean().default(false),
  })
  .meta({ id: 'BulkRequest' })

const preview = confirmation(
  'BulkPreview',
  'bulk_preview',
  z.object({
    action: z.enum(ACTIONS),
    count: z.int().meta({ description: 'The number of records that match now.' }),
    record_ids: z.array(z.uuid()).meta({ description: 'The first of these records.' }),
  }),
)

const undoBody = z.strictObject({ confirm: z.boolean().default(false) }).default({ confirm: false })

const undoPreview = confirmation(
  'UndoPreview',
  'undo_preview',
  z.object({
    created: z.int().meta({ description: 'Records that were created: the undo deletes them.' }),
    updated: z.int().meta({ description: 'Records whose fields get their former values.' }),
    deleted: z.int().meta({ description: 'Records that were deleted: the undo restores them.' }),
  }),
)

const job = z
  .object({
    object: z.literal('bulk_job'),
    id: z.uuid(),
    entity: z.enum(kindNames),
    action: z.enum(BULK_ACTIONS),
    status: z.enum(['running', 'completed', 'failed']).describe('`failed`: no record was changed.'),
    query: z.record(z.string(), z.unknown()).nullable(),
    data: z.record(z.string(), z.unknown()).nullable(),
    undoes: z.uuid().nullable().describe('For an undo: the bulk job or the import.'),
    total: z.int().describe('The number of records; it grows while `listing` is true.'),
    listing: z.boolean().describe('Whether the records are still being listed. None is changed before.'),
    done: z.int(),
    refused: z.int(),
    pending: z.int().describe('Records that the job will still change.'),
    refusals: z
      .array(
        z.object({
          object: z.string(),
          id: z.uuid(),
          error: z.object({ code: z.string(), message: z.string() }),
        }),
      )
      .describe(`The first ${SHOWN_REFUSALS} records that stay as they are, with the reasons.`),
    created_by: actor,
    created_at: z.date(),
    ended_at: z.date().nullable(),
    error: jobError.nullable(),
  })
  .meta({ id: 'BulkJob' })

const one = { tag, params: z.object({ job_id: z.uuid().toLowerCase() }) }

/** Changes of many records by filter, and the undo of such a change or of an import. */
export const bulkRoutes: Route[] = [
  ...kindNames.map(bulkRoute),
  route({
    method: 'GET',
    path: '/bulk-jobs',
    scope: { ofRecords: 'read' },
    id: 'listBulkJobs',
    tag,
    summary: 'List bulk jobs',
    description: 'Lists the jobs of the kinds that the key can read, newest first.',
    query: z.strictObject(pageControls),
    response: { status: 200, schema: listEnvelope(job) },
    handler: async ({ query, caller, tenant }) => {
      const readable = kindNames.filter((kind) => allows(caller.scopes, `${kind}:read`))
      const page = await tenant((tx) => listBulkJobs(tx, readable, { ...query, offset: offsetOf(query) }))
      return presentList({ ...page, data: page.data.map(present) })
    },
  }),
  route({
    ...one,
    method: 'GET',
    path: '/bulk-jobs/{job_id}',
    scope: { ofRecords: 'read' },
    id: 'getBulkJob',
    summary: 'Retrieve a bulk job',
    description: `Returns its progress. Jobs are kept for ${JOB_DAYS} days after their end.`,
    response: { status: 200, schema: job },
    handler: async ({ params, tenant, requireScopes }) => {
      const found = await tenant((tx) => getBulkJob(tx, params.job_id))
      requireScopes([`${found.entity}:read`])
      return present(found)
    },
  }),
  route({
    ...one,
    method: 'POST',
    path: '/bulk-jobs/{job_id}/undo',
    scope: { ofRecords: 'write' },
    id: 'undoBulkJob',
    grows: true,
    summary: 'Undo a bulk job',
    description: `Restores what the job deleted, and gives the fields that it changed their former values, as another job;
an undo can be undone. Records that were changed since are among its \`refusals\`, and stay as they are. A reference that
changes also needs the write scope of its kind. Without \`confirm: true\` the response is a preview. 409 while the job, or
another undo of it, is running.`,
    body: undoBody,
    response: { status: 201, schema: job, preview: undoPreview.schema },
    example: { confirm: true },
    handler: async (request) => {
      const { params, tenant, requireScopes } = request
      const found = await tenant((tx) => getBulkJob(tx, params.job_id))
      requireScopes([`${found.entity}:write`])
      return undo(request, found)
    },
  }),
]

function bulkRoute(entity: KindName): Route {
  const first = title(kindNames[0]!)
  return route({
    method: 'POST',
    path: `/objects/${entity}/bulk`,
    scope: `${entity}:write`,
    id: `bulk${title(entity)}`,
    ...(title(entity) !== first && { exampleOf: `bulk${first}` }),
    grows: ({ action }) => action !== 'delete',
    tag: tagOf(entity),
    summary: `Update, delete or reassign many ${entity}`,
    description: `Changes all records that match the filters. Without \`confirm: true\` the response is a preview with their
number. A confirmed job lists the records, then changes each once, also one that no longer matches by then; what cannot
be changed is among the \`refusals\`. If a custom field of the query is deleted, defined or changes its type during the
listing, the job fails and changes nothing. It can be undone for ${JOB_DAYS} days.`,
    body: newJob,
    response: { status: 201, schema: job, preview: preview.schema },
    example: {
      action: 'update',
      query: { 'created_at[lt]': '2020-01-01' },
      data: { tags: ['stale'] },
      confirm: true,
    },
    handler: async ({ body, tenant, requireScopes, asPreview }) => {
      const unplaced =
        kinds[entity].hasPipelines && body.data ? await tenant((tx) => patchIssues(tx, body.data!)) : []
      const wanted = jobOf(entity, body, unplaced)
      requireScopes([
        ...writeScopes(entity, (wanted.data ?? {}) as RecordInput),
        ...filterScopes(wanted.selection),
      ])
      if (!body.confirm) {
        asPreview()
        const found = await tenant((tx) => previewBulk(tx, wanted))
        return preview.answer({ action: body.action, ...found })
      }
      return tenant(async (tx) => present(await getBulkJob(tx, await createBulkJob(tx, wanted))))
    },
  })
}

/** The undo of an import, whose row the caller has read. */
export const undoOfImport = { body: undoBody, schema: job, preview: undoPreview.schema }

/**
 * Starts the undo of an ended bulk job or import, or answers with its preview. Throws insufficient_scope for the kinds of
 * the records that it changed, and of those to which a reference changes; conflict.
 */
export async function undo(
  { body, tenant, requireScopes, asPreview }: RouteRequest<unknown, unknown, z.output<typeof undoBody>>,
  source: { id: string; entity: KindName; ended_at: Date | null },
): Promise<object> {
  requireUndoable(source.ended_at)
  const { fields, ...counts } = await tenant((tx) => previewUndo(tx, source.id))
  for (const [kind, names] of fields) {
    const changed = Object.fromEntries(names.map((name) => [name, true]))
    requireScopes([`${kind}:write`, ...linkScopes(kind, changed)])
  }
  if (!body.confirm) {
    asPreview()
    return undoPreview.answer(counts)
  }
  return tenant(async (tx) => present(await getBulkJob(tx, await createUndo(tx, source))))
}

function requireUndoable(endedAt: Date | null): void {
  if (!endedAt) throw conflict('it is still running', { hint: 'wait until it has ended, or stop the import' })
  if (endedAt.getTime() < Date.now() - JOB_DAYS * 86_400_000)
    throw conflict(`it ended more than ${JOB_DAYS} days ago`)
}

/** Throws `validation_error` with all issues that depend on the kind or the action, and those of the data. */
function jobOf(
  entity: KindName,
  { action, query: given, data, owner_id }: z.output<typeof newJob>,
  ofData: readonly Issue[],
): NewBulkJob & { selection: Selection } {
  const issues: Issue[] = []
  const misplaced = (name: string, of: string) =>
    issues.push({ loc: ['body', name], msg: `belongs to the action ${of}`, type: 'unrecognized_key' })
  const missing = (name: string) =>
    issues.push({ loc: ['body', name], msg: `is required for the action ${action}`, type: 'missing' })
  if (action === 'update' ? data === undefined : data !== undefined)
    action === 'update' ? missing('data') : misplaced('data', 'update')
  if (action === 'reassign' ? owner_id === undefined : owner_id !== undefined)
    action === 'reassign' ? missing('owner_id') : misplaced('owner_id', 'reassign')
  const query = asTexts(given)
  const schema = z.unknown().transform((_, ctx) => parseSelection(entity, query, BULK, ctx))
  const selection = check(schema, null, 'body')
  if ('issues' in selection) issues.push(...selection.issues)
  if (action === 'update' && data) {
    const patch = check(updateSchema(entity), data, 'body')
    const wrong = [...('issues' in patch ? patch.issues : []), ...ofData]
    issues.push(...wrong.map((issue) => ({ ...issue, loc: ['body', 'data', ...issue.loc.slice(1)] })))
    if (Object.keys(data).length === 0)
      issues.push({ loc: ['body', 'data'], msg: 'must have at least one field', type: 'too_small' })
  }
  if (issues.length > 0 || 'issues' in selection) throw invalid(issues)
  const changes = { update: data, reassign: { owner_id }, delete: undefined }[action]
  return { entity, action, query, selection: selection.value as Selection, data: changes ?? null }
}

function present(row: BulkJob) {
  return {
    object: 'bulk_job' as const,
    ...row,
    status: statusOf(row),
    pending: row.error ? 0 : row.total - row.done - row.refused,
    refusals: row.refusals.map(({ object, ...one }) => ({
      object: kinds[object as KindName].object,
      ...one,
    })),
  }
}

function statusOf({ ended_at, error }: BulkJob): 'running' | 'completed' | 'failed' {
  if (error) return 'failed'
  return ended_at ? 'completed' : 'running'
}
