import { NIL, v7 as uuidv7 } from 'uuid'
import { recordChange } from '../../access/audit-log.ts'
import { type IdPage, pageById } from '../../lists/id-list.ts'
import type { Actor } from '../../model/actor.ts'
import { conflict, invalid, notFound } from '../../model/errors.ts'
import type { Page } from '../../model/lists/page.ts'
import type { BulkAction } from '../../model/records/bulk-statuses.ts'
import type { KindName } from '../../model/records/kind.ts'
import { kindNames, kinds } from '../../model/records/kinds/index.ts'
import { ofCaller } from '../../model/records/of-caller.ts'
import type { AgxRecord } from '../../model/records/schemas.ts'
import type { Tenant } from '../../postgres/tenancy.ts'
import { lockFieldRules } from '../custom-fields/rules.ts'
import { listRecords } from '../list.ts'
import { organizationTimezone } from '../local-times.ts'
import { referenceIssues } from '../references.ts'
import {
  checkSelection,
  type FieldTypes,
  lockFieldTypes,
  ratesOfSelection,
  type Selection,
} from '../selection.ts'

/** Refusals that a job shows. */
export const SHOWN_REFUSALS = 20
/** Days after its end for which a job is kept, and can be undone. */
export const JOB_DAYS = 30

/** A change of all records of a selection. */
export interface NewBulkJob {
  entity: KindName
  action: Exclude<BulkAction, 'undo'>
  /** The parameters of the list, as sent and as parsed. */
  query: Record<string, string | string[]>
  selection: Selection
  /** The patch of each record, as sent; null for a deletion. */
  data: Record<string, unknown> | null
}

/** What the listing of a job reads. */
export interface KeptSelection extends Selection {
  /** The types of its custom fields when the job was confirmed. */
  types: FieldTypes
}

/** Why a record was not changed. */
export interface BulkError {
  code: string
  message: string
}

/** Why a job failed. */
export interface BulkFailure {
  message: string
  hint: string
}

/** A job as the API shows it. */
export interface BulkJob {
  id: string
  entity: KindName
  action: BulkAction
  query: Record<string, string | string[]> | null
  data: Record<string, unknown> | null
  undoes: string | null
  total: number
  listing: boolean
  done: number
  refused: number
  refusals: { object: string; id: string; error: BulkError }[]
  created_by: Actor
  created_at: Date
  ended_at: Date | null
  /** Not null: the job failed, and changed nothing. */
  error: BulkFailure | null
}

type Row = Omit<BulkJob, 'refusals'>

const COLUMNS = [
  'id',
  'entity',
  'action',
  'query',
  'data',
  'undoes',
  'total',
  'listing',
  'created_by',
  'created_at',
  'ended_at',
  'error',
  'done',
  'refused',
]

const jobs = (tx: Tenant) => tx.trx('bulk_jobs').where({ organization_id: tx.organizationId })

/** The number of records that match now, and the first of them. Throws `validation_error`. */
export async function previewBulk(
  tx: Tenant,
  { entity, selection, action, data }: Pick<NewBulkJob, 'entity' | 'selection' | 'action' | 'data'>,
): Promise<{ count: number; record_ids: string[] }> {
  await checkPatch(tx, { entity, action, data })
  await checkSelection(tx, entity, selection)
  const page = await listRecords(tx, entity, { ...selection, limit: 10, offset: 0, count: 'exact' })
  return { count: page.total ?? 0, record_ids: page.data.map(({ id }) => id) }
}

/** Stores a job; workers list its records, then change them. Throws `validation_error`. @returns its id. */
export async function createBulkJob(tx: Tenant, job: NewBulkJob): Promise<string> {
  const { entity, action, query, selection, data } = job
  await checkPatch(tx, job)
  const types = await lockFieldTypes(tx, entity, selection)
  await checkSelection(tx, entity, selection)
  // Kept: the pages of the listing are of one list, whatever happens to the organization's.
  const time_zone = selection.time_zone ?? (await organizationTimezone(tx))
  const filters = ofCaller(tx.actor, kinds[entity], selection.filters)
  const rates = await ratesOfSelection(tx, entity, selection)
  const kept: KeptSelection = { ...selection, filters, time_zone, rates, types }
  return insertJob(tx, {
    entity,
    action,
    query: JSON.stringify(query),
    list_query: JSON.stringify(kept),
    data: data && JSON.stringify(data),
  })
}

/**
 * Checks what is the same for all records, so that a job does not refuse each of them. Throws `validation_error` for
 * references to what does not exist, and for sensitive custom fields: a job keeps and shows its values.
 */
async function checkPatch(
  tx: Tenant,
  { entity, action, data }: Pick<NewBulkJob, 'entity' | 'action' | 'data'>,
): Promise<void> {
  if (!data) return
  const names = Object.keys((data.custom_fields ?? {}) as object)
  const definitions = names.length > 0 ? (await lockFieldRules(tx, entity)).definitions : {}
  const sensitive = names.filter((name) => Object.hasOwn(definitions, name) && definitions[name]?.sensitive)
  const record = { ...data, id: NIL, version: 1 } as AgxRecord
  const references = await referenceIssues(tx, kinds[entity], [{ record, only: Object.keys(data) }])
  const at = action === 'update' ? ['body', 'data'] : ['body']
  const issues = [
    ...(references.get(NIL) ?? []).map((issue) => ({ ...issue, loc: [...at, ...issue.loc.slice(1)] })),
    ...sensitive.map((name) => ({
      loc: [...at, 'custom_fields', name],
      msg: 'is sensitive: a job would show its value',
      type: 'invalid_value',
      hint: 'write it in each record, such as by POST …/batch',
    })),
  ]
  if (issues.length > 0) throw invalid(issues)
}

/** What an import or a bulk job changed, by what it did to the record. */
export interface UndoPreview {
  /** Records that it created, which the undo deletes. */
  created: number
  updated: number
  /** Records that it deleted, which the undo restores. */
  deleted: number
  /** The kinds of these records, each with the fields that it changed in records that were there before. */
  fields: Map<KindName, string[]>
}

/** The number of records that an import or a job changed. */
export async function previewUndo(tx: Tenant, undoes: string): Promise<UndoPreview> {
  const { rows } = await tx.trx.raw<{
    rows: (Omit<UndoPreview, 'fields'> & { objects: { object: string; fields: string[] | null }[] })[]
  }>(
    `select count(*) filter (where made)::integer as created, count(*) filter (where gone)::integer as deleted,
       count(*) filter (where not made and not gone)::integer as updated,
       (select coalesce(json_agg(o), '[]') from (
          select object, array_agg(distinct field) filter (where field is not null) as fields
          from record_history
          left join lateral jsonb_object_keys(changes) as c (field) on action = 'updated'
          where organization_id = ? and job_id = ? group by object) o) as objects
     from (select bool_or(action in ('created', 'restored')) as made, bool_or(action = 'deleted') as gone
           from record_history where organization_id = ? and job_id = ? group by record_id) changed`,
    [tx.organizationId, undoes, tx.organizationId, undoes],
  )
  const { objects, ...counts } = rows[0]!
  const fields = kindNames.flatMap((kind) => {
    const changed = objects.find(({ object }) => object === kinds[kind].object)
    return changed ? [[kind, changed.fields ?? []] as const] : []
  })
  return { ...counts, fields: new Map(fields) }
}

/**
 * Stores the undo of an import or a job: it deletes what that created, restores what it deleted, and gives the fields
 * that it changed their former values, except in records that were changed since. Throws `conflict` while it, or another
 * undo of it, is running. @returns its id.
 */
export async function createUndo(
  tx: Tenant,
  { id, entity }: { id: string; entity: KindName },
): Promise<string> {
  // Serialises the undos of one job.
  await tx.trx.raw('select pg_advisory_xact_lock(hashtextextended(?, 0))', [
    `${tx.organizationId} undo ${id}`,
  ])
  const running = await jobs(tx).where({ undoes: id }).whereNull('ended_at').first('id')
  if (running) throw conflict('an undo of it is running', { hint: `its job is ${running.id}` })
  return insertJob(tx, { entity, action: 'undo', undoes: id })
}

/** Stores a job for the workers. @returns its id. */
export async function insertJob(
  tx: Tenant,
  values: { entity: KindName; action: BulkAction } & Record<string, string | null>,
): Promise<string> {
  const id = uuidv7()
  await tx.trx('bulk_jobs').insert({
    organization_id: tx.organizationId,
    id,
    ...values,
    listing: true,
    created_by: JSON.stringify(tx.actor),
  })
  const { entity, action, undoes } = values
  const details = { entity, action, ...(undoes && { undoes }) }
  await recordChange(tx, 'bulk_job.created', { id, name: `${action} of ${entity}`, details })
  tx.wake('agx_bulk_jobs')
  return id
}

/** Throws `not_found`. */
export async function getBulkJob(tx: Tenant, id: string): Promise<BulkJob> {
  const row = await jobs(tx).where({ id }).first<Row | undefined>(COLUMNS)
  if (!row) throw notFound('bulk job')
  return (await withRefusals(tx, [row]))[0]!
}

/** Jobs of these kinds, newest first. */
export async function listBulkJobs(
  tx: Tenant,
  kinds: readonly KindName[],
  page: IdPage,
): Promise<Page<BulkJob>> {
  const rows = jobs(tx).whereIn('entity', kinds).select(COLUMNS)
  const found = await pageById<Row>(tx, rows, page, { of: ['bulk jobs', kinds] })
  return { ...found, data: await withRefusals(tx, found.data) }
}

/** Adds the first refusals. The counts are of the row: a client that polls must not count all records again and again. */
async function withRefusals(tx: Tenant, rows: Row[]): Promise<BulkJob[]> {
  const ids = rows.flatMap(({ id, refused }) => (refused > 0 ? id : []))
  if (ids.length === 0) return rows.map((row) => ({ ...row, refusals: [] }))
  const { rows: refused } = await tx.trx.raw<{
    rows: (BulkJob['refusals'][number] & { job_id: string })[]
  }>(
    `select r.* from unnest(?::uuid[]) as j (id) cross join lateral (
       select job_id, entity as object, record_id as id, error from bulk_job_items
       where organization_id = ? and job_id = j.id and status = 'refused' order by step, record_id desc limit ?) r`,
    [ids, tx.organizationId, SHOWN_REFUSALS] as never,
  )
  return rows.map((row) => ({
    ...row,
    refusals: refused.flatMap(({ job_id, ...one }) => (job_id === row.id ? one : [])),
  }))
}
