import { v7 as uuidv7 } from 'uuid'
import type { RunError } from '../../workflows/interpret/run-state.ts'
import type { RunStatus } from '../../workflows/shared/statuses.ts'
import type { Actor } from '../model/actor.ts'
import { AppError, conflict, notFound } from '../model/errors.ts'
import type { BatchItemStatus } from '../model/runs/batch-statuses.ts'
import { isRefusal } from '../postgres/sql-state.ts'
import { savepoint, type Tenant } from '../postgres/tenancy.ts'
import { definePagedJobs } from '../queue/paged-jobs.ts'
import { filteredRuns, type RunFilter } from './filter.ts'
import { ensureVersion, findVersion, listMigrationRefusals, type WantedVersion } from './migrate.ts'
import { cancelRun } from './moves/ends.ts'
import { createRetry, prepareRetryOf, type RetryOptions } from './retry.ts'

export const BATCH_ACTIONS = ['retry', 'cancel', 'migrate'] as const
export type BatchAction = (typeof BATCH_ACTIONS)[number]

/** Runs of a batch at most. */
export const MAX_BATCH = 10_000
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
  done: number
  refused: number
  refusals: { run_id: string; error: RunError }[]
  created_at: Date
  ended_at: Date | null
}

export interface BatchPreview {
  count: number
  run_ids: string[]
  /** Of a migration: what of the first `checked` runs would be refused now. */
  migration?: { checked: number; refused: number; refusals: RunBatch['refusals'] }
}

/**
 * The number of runs that a batch would have, and the newest of them. Throws `conflict` above MAX_BATCH, and for a
 * migration of one workflow the errors of `findVersion`.
 */
export async function previewBatch(tx: Tenant, request: BatchRequest): Promise<BatchPreview> {
  const ids = await listRuns(tx, request)
  const preview = { count: ids.length, run_ids: ids.slice(0, 10) }
  if (request.action !== 'migrate') return preview
  const checked = ids.slice(0, MAX_CHECKED)
  const refusals: RunBatch['refusals'] = []
  for (let n = 0; n < checked.length; n += CHECKED_AT_ONCE)
    for (const { run_id, error } of await listMigrationRefusals(
      tx,
      checked.slice(n, n + CHECKED_AT_ONCE),
      request.options.version,
    ))
      refusals.push({ run_id, error: errorOf(error) })
  const shown = refusals.slice(0, SHOWN_REFUSALS)
  return { ...preview, migration: { checked: checked.length, refused: refusals.length, refusals: shown } }
}

async function listRuns(tx: Tenant, { action, filter, options }: BatchRequest): Promise<string[]> {
  if (action !== 'migrate') return listMatching(tx, filter)
  const version =
    filter.workflow_id === undefined ? undefined : await findVersion(tx, filter.workflow_id, options.version)
  return listMatching(tx, filter, { otherThan: version })
}

/** The newest first. With `migration`: those that do not have the version yet, by default the newest of their workflow. */
async function listMatching(
  tx: Tenant,
  filter: RunFilter,
  migration?: { otherThan: number | undefined },
): Promise<string[]> {
  const { query } = await filteredRuns(tx, filter)
  if (migration)
    query.whereRaw(
      `runs.workflow_version <> coalesce(cast(? as integer), (select w.version from workflows w
         where w.organization_id = runs.organization_id and w.id = runs.workflow_id))`,
      [migration.otherThan ?? null],
    )
  const rows: { id: string }[] = await query
    .orderBy('id', 'desc')
    .limit(MAX_BATCH + 1)
    .select('id')
  if (rows.length > MAX_BATCH)
    throw conflict(`more than ${MAX_BATCH} runs match`, {
      param: 'filter',
      hint: 'narrow the filter, for instance by workflow_id, from and to',
    })
  return rows.map(({ id }) => id)
}

/** Stores a batch with the runs that match now; workers make it. Throws as `previewBatch`. @returns its id. */
export async function createBatch(tx: Tenant, request: BatchRequest): Promise<string> {
  const { action, filter, options } = request
  const ids = await listRuns(tx, request)
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
  await tx.trx.raw(
    `insert into run_batch_items (organization_id, batch_id, run_id) select cast(? as uuid), cast(? as uuid), unnest(cast(? as uuid[]))`,
    [organization_id, id, ids],
  )
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

export const runBatches = definePagedJobs<ClaimedBatch>('run_batches', 'ended_at is null', [
  'action',
  'options',
  'created_by',
])

/** Makes the next page of an open batch, and notes the outcome of each run. @returns whether there may be more. */
export async function advanceBatch(tx: Tenant, batch: ClaimedBatch, limit: number): Promise<boolean> {
  const { organizationId: organization_id } = tx
  const row = () => tx.trx('run_batches').where({ organization_id, id: batch.id })
  if (!(await row().whereNull('ended_at').forNoKeyUpdate().first('id'))) return false
  const items = () => tx.trx('run_batch_items').where({ organization_id, batch_id: batch.id })
  const pending = await items()
    .where({ status: 'pending' })
    .orderBy('run_id')
    .limit(limit)
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
  const more = pending.length === limit
  if (!more) await row().update({ ended_at: tx.trx.fn.now() })
  return more
}

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

async function makeOne(tx: Tenant, { action, options }: ClaimedBatch, runId: string): Promise<Outcome> {
  if (action === 'cancel') {
    await cancelRun(tx, runId)
    return { status: 'done' }
  }
  if (action === 'migrate') {
    await ensureVersion(tx, runId, options.version)
    return { status: 'done' }
  }
  const prepared = await prepareRetryOf(tx, runId, options)
  return { status: 'done', new_run_id: await createRetry(tx, prepared, 1) }
}
