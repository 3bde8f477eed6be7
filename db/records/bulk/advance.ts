import type { Actor } from '../../model/actor.ts'
import { AppError, fullMessage } from '../../model/errors.ts'
import type { BulkAction, BulkItemStatus } from '../../model/records/bulk-statuses.ts'
import type { KindName } from '../../model/records/kind.ts'
import { type RecordInput, updateSchema } from '../../model/records/schemas.ts'
import { isRefusal } from '../../postgres/sql-state.ts'
import { savepoint, type Tenant } from '../../postgres/tenancy.ts'
import { definePagedJobs } from '../../queue/paged-jobs.ts'
import { fullError, requireFreeStorage } from '../../storage/usage.ts'
import { deleteRecord } from '../delete.ts'
import { listRecords } from '../list.ts'
import { requireFieldTypes } from '../selection.ts'
import { type Failed, settle } from '../sets.ts'
import { updateMany } from '../update.ts'
import { inTurn } from './hand-over.ts'
import { alone, type BulkItem, type BulkOutcome, type Listed } from './items.ts'
import type { BulkError, BulkFailure, KeptSelection } from './jobs.ts'
import { listChanged, undoRecords } from './undo.ts'

/** A job as a worker claims it. */
export interface ClaimedBulkJob {
  organization_id: string
  id: string
  entity: KindName
  action: BulkAction
  list_query: KeptSelection | null
  data: Record<string, unknown> | null
  undoes: string | null
  created_by: Actor
}

/** Records that one transaction lists. */
const LISTED_AT_ONCE = 200

export const bulkJobs = definePagedJobs<ClaimedBulkJob>('bulk_jobs', 'ended_at is null', 1, [
  'entity',
  'action',
  'list_query',
  'data',
  'undoes',
  'created_by',
])

/**
 * Lists the next records of an open job, or changes the next ones and notes the outcome of each. No record is changed
 * before all are listed: a job that cannot list them all fails. The history of a changed record names the job.
 * @returns whether there may be more.
 */
export async function advanceBulkJob(
  tenant: Tenant,
  job: ClaimedBulkJob,
  limit: number,
  listedAtOnce = LISTED_AT_ONCE,
): Promise<boolean> {
  const tx = { ...tenant, job: job.id }
  const row = () => tx.trx('bulk_jobs').where({ organization_id: tx.organizationId, id: job.id })
  const open = await row()
    .whereNull('ended_at')
    .forNoKeyUpdate()
    .first<{ listing: boolean; cursor: string | null; done: number; refused: number } | undefined>(
      'listing',
      'cursor',
      'done',
      'refused',
    )
  if (!open) return false
  if (open.listing) {
    const listed = await listNext(tx, job, open.cursor, listedAtOnce)
    if ('error' in listed) {
      await row().update({ listing: false, ended_at: tx.trx.fn.now(), error: failureOf(listed) })
      return false
    }
    const { items, cursor } = listed
    await addItems(tx, job.id, items)
    const total = tx.trx.raw('total + ?', [items.length])
    await row().update({ total, cursor, listing: cursor !== null })
    return true
  }
  const items = () => tx.trx('bulk_job_items').where({ organization_id: tx.organizationId, job_id: job.id })
  const pending = await items()
    .where({ status: 'pending' })
    .orderBy([{ column: 'step' }, { column: 'record_id', order: 'desc' }])
    .limit(limit)
    .select<BulkItem[]>('entity', 'record_id', 'step')
  const first = open.done + open.refused
  const outcomes = await changeAll(
    tx,
    job,
    pending.map((item, place) => ({ ...item, number: first + place })),
  )
  await tx.trx.raw(
    `update bulk_job_items i set status = o.status, error = o.error
     from jsonb_to_recordset(?) as o (record_id uuid, status text, error jsonb)
     where i.organization_id = ? and i.job_id = ? and i.record_id = o.record_id`,
    [
      JSON.stringify(pending.map(({ record_id }, i) => ({ record_id, ...outcomes[i] }))),
      tx.organizationId,
      job.id,
    ],
  )
  const refused = outcomes.filter(({ status }) => status === 'refused').length
  const isLast = pending.length < limit
  await row().update({
    done: tx.trx.raw('done + ?', [outcomes.length - refused]),
    refused: tx.trx.raw('refused + ?', [refused]),
    ...(isLast && { ended_at: tx.trx.fn.now() }),
  })
  return !isLast
}

async function listNext(
  tx: Tenant,
  { entity, list_query, undoes, action }: ClaimedBulkJob,
  cursor: string | null,
  limit: number,
): Promise<Listed | Failed> {
  if (undoes !== null) return listChanged(tx, undoes, cursor, limit)
  const { types, ...selection } = list_query!
  const page = await settle(async () => {
    if (action !== 'delete') await requireFreeStorage(tx)
    await requireFieldTypes(tx, entity, selection, types)
    return listRecords(tx, entity, {
      ...selection,
      // One that a version without exchange rates began goes on without them.
      rates: selection.rates ?? null,
      limit,
      offset: 0,
      count: 'none',
      cursor: cursor ?? undefined,
    })
  })
  if ('error' in page) return page
  return {
    items: page.data.map(({ id }) => ({ entity, record_id: id, step: 0 })),
    cursor: page.next_cursor,
  }
}

const failureOf = ({ error }: Failed): BulkFailure => ({
  message: fullMessage(error),
  hint: `no record was changed: ${error.type === 'quota_exceeded' ? '' : 'check the query, and '}start another bulk job`,
})

async function addItems(tx: Tenant, jobId: string, items: BulkItem[]): Promise<void> {
  await tx.trx.raw(
    `insert into bulk_job_items (organization_id, job_id, entity, record_id, step)
     select ?, ?, entity, record_id, step from jsonb_to_recordset(?) as i (entity text, record_id uuid, step integer)
     on conflict do nothing`,
    [tx.organizationId, jobId, JSON.stringify(items)],
  )
}

interface Noted {
  status: BulkItemStatus
  error: BulkError | null
}

/** An item with its number in the job, by which users take turns. */
type NumberedItem = BulkItem & { number: number }

/** Changes the records together; if PostgreSQL refuses that, each alone, so that only the refused one fails. */
async function changeAll(tx: Tenant, job: ClaimedBulkJob, items: NumberedItem[]): Promise<Noted[]> {
  const attempt = (some: NumberedItem[]) =>
    savepoint(tx, (inner) => change(inner, job, some)).catch((error: unknown) => {
      if (!isRefusal(error)) throw error
      return undefined
    })
  const together = await attempt(items)
  if (together) return together.map(noted)
  const outcomes: BulkOutcome[] = []
  for (const item of items) {
    const alone = await attempt([item])
    outcomes.push(alone ? alone[0] : new AppError('internal_error', 'the database refused it'))
  }
  return outcomes.map(noted)
}

const noted = (error: BulkOutcome): Noted =>
  error
    ? { status: 'refused', error: { code: error.type, message: error.message } }
    : { status: 'done', error: null }

async function change(tx: Tenant, job: ClaimedBulkJob, items: NumberedItem[]): Promise<BulkOutcome[]> {
  const { entity, undoes, data, action } = job
  if (undoes !== null) return undoRecords(tx, undoes, items)
  if (action === 'delete') {
    const outcomes: BulkOutcome[] = []
    for (const { record_id } of items)
      outcomes.push(await alone(tx, (one) => deleteRecord(one, entity, record_id)))
    return outcomes
  }
  const full = await fullError(tx)
  if (full) return items.map(() => full)
  const outcomes = await updateMany(
    tx,
    entity,
    items.map(({ record_id, number }) => ({
      id: record_id,
      patch: updateSchema(entity).parse(inTurn(data!, number)) as RecordInput,
    })),
  )
  return outcomes.map((outcome) => ('error' in outcome ? outcome.error : undefined))
}
