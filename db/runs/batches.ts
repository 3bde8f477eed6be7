import type { Knex } from 'knex'
import { v7 as uuidv7 } from 'uuid'
import type { RunError } from '../../workflows/interpret/run-state.ts'
import type { RunStatus } from '../../workflows/shared/statuses.ts'
import { totalOfRows } from '../lists/total.ts'
import type { Actor } from '../model/actor.ts'
import { AppError, invalid, notFound } from '../model/errors.ts'
import type { BatchItemStatus } from '../model/runs/batch-statuses.ts'
import { isRefusal } from '../postgres/sql-state.ts'
import { savepoint, type Tenant } from '../postgres/tenancy.ts'
import { definePagedJobs } from '../queue/paged-jobs.ts'
import { filteredRuns, type RunFilter } from './filter.ts'
import { ensureVersion, findVersion, listMigrationRefusals, type WantedVersion } from './migrate.ts'
import { cancelRun } from './moves/ends.ts'
import { QueuedRuns } from './queued-runs.ts'
import { createRetry, prepareRetryOf, type RetryOptions } from './retry.ts'

export const BATCH_ACTIONS = ['retry', 'cancel', 'migrate'] as const
export type BatchAction = (typeof BATCH_ACTIONS)[number]

/** Runs that are listed at a time: the first ones by the request, further ones by the workers, before any is made. */
const LISTED_AT_ONCE = 10_000
/** Refusals that a batch shows. */
export const SHOWN_REFUSALS = 20
/** Runs that the preview of a migration checks, the newest: each costs the rows of its nodes. */
export const MAX_CHECKED = 1_000
/** Runs that one set of statements checks. */
const CHECKED_AT_ONCE = 200

/** What a batch does with its runs. */
export type BatchWork =
  | { action: 'retry' | 'cancel'; options: Pick<RetryOptions, 'from_start' | 'version'> }
  | { action: 'migrate'; options: { version: WantedVersion } }

export type BatchRequest = BatchWork & { filter: RunFilter & { status: readonly RunStatus[] } }

export interface RunBatch {
  id: string
  action: BatchAction
  options: BatchRequest['options']
  /** As it was requested. */
  filter: Record<string, unknown>
  total: number
  /** Whether more runs may match than `total`: the workers are still listing them. */
  listing: boolean
  done: number
  refused: number
  refusals: { run_id: string; error: RunError }[]
  created_at: Date
  ended_at: Date | null
}

export interface BatchPreview {
  count: number
  run_ids: string[]
  /** What a migration would refuse now of the first `checked` runs. */
  migration?: { checked: number; refused: number; refusals: RunBatch['refusals'] }
}

/**
 * The number of runs that a batch would have, and the newest of them. Throws for a migration of one workflow the errors
 * of `findVersion`.
 */
export async function previewBatch(tx: Tenant, request: BatchRequest): Promise<BatchPreview> {
  await requireVersion(tx, request)
  const { query } = await matchingRuns(tx, request)
  const { total } = await totalOfRows(tx.trx, query, 'exact')
  const limit = request.action === 'migrate' ? MAX_CHECKED : 10
  const ids = await listMatching(tx, request, { limit })
  const preview = { count: total ?? 0, run_ids: ids.slice(0, 10) }
  if (request.action !== 'migrate') return preview
  const refusals: RunBatch['refusals'] = []
  for (let n = 0; n < ids.length; n += CHECKED_AT_ONCE)
    for (const { run_id, error } of await listMigrationRefusals(
      tx,
      ids.slice(n, n + CHECKED_AT_ONCE),
      request.options.version,
    ))
      refusals.push({ run_id, error: errorOf(error) })
  const shown = refusals.slice(0, SHOWN_REFUSALS)
  return { ...preview, migration: { checked: ids.length, refused: refusals.length, refusals: shown } }
}

async function requireVersion(tx: Tenant, { action, filter, options }: BatchRequest): Promise<void> {
  if (action === 'migrate' && filter.workflow_id !== undefined)
    await findVersion(tx, filter.workflow_id, options.version, noSuchWorkflow)
}

const noSuchWorkflow = () =>
  invalid([
    {
      loc: ['body', 'filter', 'workflow_id'],
      msg: 'there is no such workflow, or it was deleted',
      type: 'unknown_workflow',
      hint: 'the runs of a deleted workflow go on as they are, or cancel them',
    },
  ])

/** What lists the runs of a batch. */
type Listing = BatchWork & { filter: RunFilter }

/** A migration takes the runs that do not have the version yet, by default the newest of their workflow. */
async function matchingRuns(
  tx: Tenant,
  { action, filter, options }: Listing,
): Promise<{ query: Knex.QueryBuilder }> {
  const { query } = await filteredRuns(tx, filter)
  if (action === 'migrate')
    query.whereRaw(
      `runs.workflow_version <> coalesce(cast(? as integer), (select w.version from workflows w
         where w.organization_id = runs.organization_id and w.id = runs.workflow_id))`,
      [typeof options.version === 'number' ? options.version : null],
    )
  // A promise of the query itself would execute it.
  return { query }
}

/** The newest first, of those older than `before`. */
async function listMatching(
  tx: Tenant,
  listing: Listing,
  { before, limit }: { before?: string; limit: number },
): Promise<string[]> {
  const { query } = await matchingRuns(tx, listing)
  if (before !== undefined) query.andWhere('id', '<', before)
  const rows: { id: string }[] = await query.orderBy('id', 'desc').limit(limit).select('id')
  return rows.map(({ id }) => id)
}

/** Adds runs to a batch. @returns the last run, if more may match. */
async function addItems(tx: Tenant, batchId: string, ids: string[], limit: number): Promise<string | null> {
  await tx.trx.raw(
    `insert into run_batch_items (organization_id, batch_id, run_id) select cast(? as uuid), cast(? as uuid), unnest(cast(? as uuid[]))`,
    [tx.organizationId, batchId, ids],
  )
  return ids.length === limit ? ids.at(-1)! : null
}

/**
 * Stores a batch with the runs that match now; workers make it. Those above LISTED_AT_ONCE the workers list first, page
 * by page, so that the request takes a bounded time. Throws as `previewBatch`. @returns its id.
 */
export async function createBatch(
  tx: Tenant,
  request: BatchRequest,
  limit = LISTED_AT_ONCE,
): Promise<string> {
  const { action, filter, options } = request
  await requireVersion(tx, request)
  const ids = await listMatching(tx, request, { limit })
  const { organizationId: organization_id } = tx
  const id = uuidv7()
  await tx.trx('run_batches').insert({
    organization_id,
    id,
    action,
    total: ids.length,
    filter: JSON.stringify(filter),
    options: JSON.stringify(options),
    created_by: JSON.stringify(tx.actor),
    ...(ids.length === 0 ? { ended_at: tx.trx.fn.now() } : {}),
  })
  const listed_to = await addItems(tx, id, ids, limit)
  if (listed_to !== null) await tx.trx('run_batches').where({ organization_id, id }).update({ listed_to })
  tx.wake('agx_run_batches')
  return id
}

/** Throws `not_found`. */
export async function getBatch(tx: Tenant, id: string): Promise<RunBatch> {
  const { organizationId: organization_id } = tx
  const batch = await tx
    .trx('run_batches')
    .where({ organization_id, id })
    .first<Omit<RunBatch, 'done' | 'refused' | 'refusals'> | undefined>(
      'id',
      'action',
      'filter',
      'options',
      'total',
      tx.trx.raw('listed_to is not null as listing'),
      'created_at',
      'ended_at',
    )
  if (!batch) throw notFound('batch')
  const items = () => tx.trx('run_batch_items').where({ organization_id, batch_id: id })
  const counts = await items()
    .groupBy('status')
    .select<{ status: BatchItemStatus; count: number }[]>('status', tx.trx.raw('count(*) as count'))
  const refusals = await items()
    .andWhere({ status: 'refused' })
    .orderBy('run_id')
    .limit(SHOWN_REFUSALS)
    .select<RunBatch['refusals']>('run_id', 'error')
  const count = (status: BatchItemStatus) => counts.find((row) => row.status === status)?.count ?? 0
  return { ...batch, done: count('done'), refused: count('refused'), refusals }
}

export type ClaimedBatch = BatchWork & { organization_id: string; id: string; created_by: Actor }

export const runBatches = definePagedJobs<ClaimedBatch>('run_batches', 'ended_at is null', 2, [
  'action',
  'options',
  'created_by',
])

/**
 * Lists the next runs of an open batch, or makes its next page and notes the outcome of each run. Retries wait while the
 * organization has as many queued runs as its plan allows. @returns whether there may be more now.
 */
export async function advanceBatch(
  tx: Tenant,
  batch: ClaimedBatch,
  limit: number,
  listedAtOnce = LISTED_AT_ONCE,
): Promise<boolean> {
  const { organizationId: organization_id } = tx
  const row = () => tx.trx('run_batches').where({ organization_id, id: batch.id })
  const open = await row()
    .whereNull('ended_at')
    .forNoKeyUpdate()
    .first<{ filter: RunFilter; listed_to: string | null } | undefined>('filter', 'listed_to')
  if (!open) return false
  if (open.listed_to !== null) {
    const page = { before: open.listed_to, limit: listedAtOnce }
    const ids = await listMatching(tx, { ...batch, filter: fromJson(open.filter) }, page)
    const listed_to = await addItems(tx, batch.id, ids, listedAtOnce)
    await row().update({ listed_to, total: tx.trx.raw('total + ?', [ids.length]) })
    return true
  }
  const room =
    batch.action === 'retry' ? (await new QueuedRuns().take(tx.trx, organization_id, limit)).granted : limit
  const items = () => tx.trx('run_batch_items').where({ organization_id, batch_id: batch.id })
  const pending = await items()
    .where({ status: 'pending' })
    .orderBy('run_id')
    .limit(room)
    .select<{ run_id: string }[]>('run_id')
  for (const { run_id } of pending) {
    const outcome = await savepoint(tx, (inner) => makeOne(inner, batch, run_id)).catch(
      (error: unknown): Outcome => {
        if (isRefusal(error)) return { status: 'refused', error: JSON.stringify(NOT_STORABLE) }
        if (!(error instanceof AppError)) throw error
        return { status: 'refused', error: JSON.stringify(errorOf(error)) }
      },
    )
    await items().where({ run_id }).update(outcome)
  }
  if (pending.length < room) await row().update({ ended_at: tx.trx.fn.now() })
  // Without room, the next turn goes on.
  return room === limit && pending.length === limit
}

/** The filter with the times that its JSON has as texts. */
const fromJson = ({ from, to, ...filter }: RunFilter): RunFilter => ({
  ...filter,
  ...(from && { from: new Date(from) }),
  ...(to && { to: new Date(to) }),
})

/** The error of a run that the database refuses in any case; the other runs go on. */
const NOT_STORABLE: RunError = { code: 'internal_error', message: 'the database refused it' }

const errorOf = ({ type, message, details: { obstacles } }: AppError): RunError => ({
  code: type,
  message,
  ...(obstacles && { details: { obstacles } }),
})

interface Outcome {
  status: BatchItemStatus
  new_run_id?: string
  error?: string
}

async function makeOne(tx: Tenant, { id, action, options }: ClaimedBatch, runId: string): Promise<Outcome> {
  if (action === 'cancel') {
    await cancelRun(tx, runId)
    return { status: 'done' }
  }
  if (action === 'migrate') {
    await ensureVersion(tx, runId, options.version)
    return { status: 'done' }
  }
  await requireNewest(tx, id, runId)
  const prepared = await prepareRetryOf(tx, runId, options)
  return { status: 'done', new_run_id: await createRetry(tx, prepared, 1) }
}

/** Throws `conflict` if the batch also has a later retry of the same first run: retrying both would do the work twice. */
async function requireNewest(tx: Tenant, batch_id: string, runId: string): Promise<void> {
  const { rows } = await tx.trx.raw<{ rows: { id: string }[] }>(
    `select later.id from runs r
     join runs later on later.organization_id = r.organization_id and later.retry_of = coalesce(r.retry_of, r.id)
       and later.id > r.id
     join run_batch_items i on i.organization_id = r.organization_id and i.batch_id = :batch_id and i.run_id = later.id
     where r.organization_id = :organizationId and r.id = :runId
     order by later.id desc limit 1`,
    { organizationId: tx.organizationId, batch_id, runId },
  )
  const [later] = rows
  if (later) throw new AppError('conflict', `run ${later.id}, a later retry of the same run, is in the batch`)
}
