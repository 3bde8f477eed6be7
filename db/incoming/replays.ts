import { v7 as uuidv7 } from 'uuid'
import type { Subscription } from '../access/plans.ts'
import { SYSTEM } from '../model/actor.ts'
import { AppError, conflict, notFound } from '../model/errors.ts'
import type { Body, Mapping } from '../model/incoming/map-body.ts'
import type { FieldMapping, IncomingWebhook } from '../model/incoming/types.ts'
import type { ReplayStatus } from '../model/replays/statuses.ts'
import type { Database } from '../postgres/connect.ts'
import type { Tenant } from '../postgres/tenancy.ts'
import type { SecretsKey } from '../process/seal.ts'
import type { JobKey } from '../queue/paged-jobs.ts'
import { replaysIn } from '../queue/replays.ts'
import { storageExceeded } from '../storage/usage.ts'
import {
  countEntries,
  getEntry,
  MAX_REPLAY,
  type Period,
  type ReplayInclude,
  readEntries,
} from './replay-entries.ts'
import { bodyOf, type Outcome, type Parsed, QUOTA_EXCEEDED, replayEntry } from './replay-entry.ts'
import { withSensitiveTargets } from './sensitive-targets.ts'
import { getIncomingWebhook } from './webhooks.ts'

/**
 * Replays: stored requests are mapped and written again, through the mapping of the webhook or a draft. Workers do those
 * of a period, entry by entry; an entry and the position behind it are one transaction, so that each is replayed once.
 */

export interface Replay {
  id: string
  webhook_id: string
  /** One entry, or those of a period. */
  log_id: string | null
  include: ReplayInclude[]
  since: Date | null
  until: Date | null
  /** The draft mapping; null: the webhook's. */
  field_mapping: FieldMapping | null
  status: ReplayStatus
  /** Why it was paused. */
  problem: string | null
  total: number
  created: number
  updated: number
  triggered: number
  skipped: number
  failed: number
  created_at: Date
  ended_at: Date | null
}

interface Progress extends Period {
  webhook_id: string
  field_mapping: FieldMapping | null
  position: string | null
}

const { lockActive, insertReplay, startReplay, readRunning, lockRunning, ...life } = replaysIn<
  Replay,
  Progress
>({
  table: 'incoming_replays',
  webhooks: 'incoming_webhooks',
  channel: 'agx_incoming_replays',
  shown: [
    'id',
    'webhook_id',
    'log_id',
    'include',
    'since',
    'until',
    'field_mapping',
    'status',
    'problem',
    'total',
    'created',
    'updated',
    'triggered',
    'skipped',
    'failed',
    'created_at',
    'ended_at',
  ],
  inactiveHint: 'activate it first',
  cleared: { problem: null },
  progress: ['webhook_id', 'include', 'since', 'until', 'field_mapping', 'position'],
})
export const { getReplay, setReplayStatus, recordPage, replays: incomingReplays } = life

/** Parses and maps a body; `Compute` of the API, or a pool of the worker. */
export type MapBody = (
  organizationId: string,
  body: Body,
  mapping: Mapping,
) => Promise<Exclude<Parsed, AppError>>

/** What a replay needs of its process. */
export interface ReplayDeps {
  mapBody: MapBody
  secretsKey: SecretsKey
}

/** The mapping of a body; what is wrong with the body is a value. */
export async function parsedBy(
  mapBody: MapBody,
  organizationId: string,
  { secretFields = [], ...body }: Body & { secretFields?: string[] },
  mapping: Mapping,
): Promise<Parsed> {
  const secret_fields = [...new Set([...mapping.secret_fields, ...secretFields])]
  try {
    return await mapBody(organizationId, body, { ...mapping, secret_fields })
  } catch (error) {
    if (error instanceof AppError && error.type !== 'unavailable') return error
    throw error
  }
}

/** The number of entries that a replay would have now. Throws not_found; conflict above MAX_REPLAY. */
export async function previewReplay(tx: Tenant, webhookId: string, period: Period): Promise<number> {
  await getIncomingWebhook(tx, webhookId)
  const count = await countEntries(tx, webhookId, period)
  if (count > MAX_REPLAY)
    throw conflict(`more than ${MAX_REPLAY} log entries match`, {
      param: 'since',
      hint: 'give a shorter period',
    })
  return count
}

/** Throws as `previewReplay`, and conflict if the webhook is Inactive or has an open replay. @returns its id. */
export const createReplay = (
  tx: Tenant,
  webhookId: string,
  period: Period,
  draft: FieldMapping | null,
): Promise<string> =>
  startReplay(tx, webhookId, async () => ({
    ...period,
    total: await previewReplay(tx, webhookId, period),
    ...drafted(draft),
  }))

const drafted = (draft: FieldMapping | null) => ({ field_mapping: draft && JSON.stringify(draft) })

/**
 * Replays one entry in the caller's transaction.
 * Throws not_found; quota_exceeded; conflict if the webhook is Inactive or the entry cannot be replayed.
 */
export async function replayOne(
  tx: Tenant,
  webhook: IncomingWebhook,
  logId: string,
  parsed: Parsed,
  draft: FieldMapping | null,
): Promise<{ id: string; outcome: Outcome }> {
  await lockActive(tx, webhook.id)
  const entry = await getEntry(tx, webhook.id, logId)
  const id = uuidv7()
  const subscription = await subscriptionOf(tx)
  if (subscription.storage_full) throw await storageExceeded(tx)
  const outcome = await replayEntry(tx, webhook, subscription, entry, parsed, id)
  if (outcome === QUOTA_EXCEEDED) throw new AppError('quota_exceeded', QUOTA)
  if (!outcome) throw notFound('log entry')
  await insertReplay(tx, id, webhook.id, {
    log_id: logId,
    include: [],
    total: 1,
    [outcome.outcome]: 1,
    ...drafted(draft),
    status: 'completed',
    ended_at: tx.trx.fn.now(),
  })
  return { id, outcome }
}

const QUOTA = 'the monthly quota of requests is exceeded'

const subscriptionOf = (tx: Tenant): Promise<Subscription & { storage_full: boolean }> =>
  tx.trx('organizations').where({ id: tx.organizationId }).first('plan', 'limits', 'storage_full')

/** The most entries of a page. */
const PAGE = 100

/**
 * Replays the next entries, until `keepOn` is false, and completes the replay after the last one.
 * @returns whether there may be more.
 */
export async function advanceReplay(
  db: Database,
  { organization_id, id }: JobKey,
  { mapBody, secretsKey }: ReplayDeps,
  keepOn: () => boolean,
): Promise<boolean> {
  const tenant = <T>(work: (tx: Tenant) => Promise<T>) => db.tenant(organization_id, SYSTEM, work)
  const progress = await tenant((tx) => readRunning(tx, id))
  if (!progress) return false
  let { position } = progress
  const ids = await tenant((tx) => readEntries(tx, progress.webhook_id, progress, position, PAGE))
  if (ids.length === 0) {
    await tenant(async (tx) => {
      if ((await lockRunning(tx, id))?.position === position)
        await recordPage(tx, id, { status: 'completed' })
    })
    return false
  }
  for (const entryId of ids) {
    if (!keepOn() || !(await advanceBy(tenant, id, entryId, position, { mapBody, secretsKey }))) return false
    position = entryId
  }
  return true
}

/** Replays the next entry. @returns whether the replay goes on here. */
async function advanceBy(
  tenant: <T>(work: (tx: Tenant) => Promise<T>) => Promise<T>,
  id: string,
  entryId: string,
  position: string | null,
  { mapBody, secretsKey }: ReplayDeps,
): Promise<boolean> {
  // Mapped outside of the transaction that writes: it can take seconds in a thread.
  const read = await tenant(async (tx) => {
    const progress = await readRunning(tx, id)
    if (!progress || progress.position !== position) return undefined
    const stored = await getIncomingWebhook(tx, progress.webhook_id)
    const field_mapping = progress.field_mapping ?? stored.field_mapping
    const webhook = await withSensitiveTargets(tx, { ...stored, field_mapping })
    const entry = await getEntry(tx, webhook.id, entryId).catch(undefinedIfGone)
    return { webhook, entry, subscription: await subscriptionOf(tx), organizationId: tx.organizationId }
  })
  if (!read) return false
  const { webhook, entry, subscription, organizationId } = read
  if (subscription.storage_full)
    return tenant(async (tx) => {
      const { message } = await storageExceeded(tx)
      if ((await lockRunning(tx, id))?.position === position)
        await recordPage(tx, id, { status: 'paused', problem: message })
      return false
    })
  const parsed =
    entry && (await parsedBy(mapBody, organizationId, bodyOf(organizationId, entry, secretsKey), webhook))
  return tenant(async (tx) => {
    if ((await lockRunning(tx, id))?.position !== position) return false
    const outcome =
      entry && parsed ? await replayEntry(tx, webhook, subscription, entry, parsed, id) : undefined
    if (outcome === QUOTA_EXCEEDED) {
      await recordPage(tx, id, { status: 'paused', problem: QUOTA })
      return false
    }
    return recordPage(tx, id, { position: entryId, counts: { [outcome?.outcome ?? 'skipped']: 1 } })
  })
}

/** An entry can expire while its replay runs. */
function undefinedIfGone(error: unknown): undefined {
  if (error instanceof AppError && ['not_found', 'conflict'].includes(error.type)) return undefined
  throw error
}
