import { v7 as uuidv7 } from 'uuid'
import { fieldsOf, recorded } from '../access/audit-log.ts'
import { lockSubscription, requireFreeWebhook } from '../access/plans.ts'
import { type IdPage, pageById } from '../lists/id-list.ts'
import { invalid, notFound } from '../model/errors.ts'
import type { WebhookStatus } from '../model/incoming/types.ts'
import type { Page } from '../model/lists/page.ts'
import type { Tenant } from '../postgres/tenancy.ts'
import { holdDeliveries, releaseDeliveries } from './moves/holds.ts'
import { followSchedule, type RetrySchedule } from './retry-schedule.ts'

/** An endpoint that receives events, as in the API. */
export interface OutgoingWebhook {
  id: string
  name: string
  url: string
  events: string[]
  /** A placeholder; events for which it does not hold are not delivered. */
  when: string | null
  /** Whether deliveries of one record's events are sent in sequence, in the order of the events. */
  ordered: boolean
  status: WebhookStatus
  /** The reason why the service made it Inactive. */
  status_reason: string | null
  header_names: string[]
  retry_schedule: RetrySchedule
  timeout_ms: number
  concurrency: number
  /** Maximum number of attempts per minute. */
  rate_per_minute: number | null
  failing_since: Date | null
  /** Nobody answers: no new delivery is started until then. */
  backoff_until: Date | null
  /** The end of a rotation, until which the previous secret signs too; it may be in the past. */
  previous_secret_expires_at: Date | null
  created_at: Date
  updated_at: Date
}

/** The values that users set. `headers_sealed` is sealed JSON of names and values. */
export type OutgoingValues = Pick<
  OutgoingWebhook,
  | 'name'
  | 'url'
  | 'events'
  | 'when'
  | 'ordered'
  | 'header_names'
  | 'retry_schedule'
  | 'timeout_ms'
  | 'concurrency'
  | 'rate_per_minute'
> & { headers_sealed: string | null }
type Patch = { [K in keyof OutgoingValues]?: OutgoingValues[K] | undefined }

const COLUMNS = [
  'id',
  'name',
  'url',
  'events',
  'when',
  'ordered',
  'status',
  'status_reason',
  'header_names',
  'retry_schedule',
  'timeout_ms',
  'concurrency',
  'rate_per_minute',
  'failing_since',
  'backoff_until',
  'previous_secret_expires_at',
  'created_at',
  'updated_at',
]

/** Creates an endpoint with status Active. Throws plan_limit. */
export async function createOutgoingWebhook(
  tx: Tenant,
  values: OutgoingValues,
  secretSealed: string,
): Promise<OutgoingWebhook> {
  const subscription = await lockSubscription(tx)
  requireFreeWebhook(subscription, 'outgoing', await countOutgoingWebhooks(tx))
  const [row] = await tx
    .trx('outgoing_webhooks')
    .insert({ organization_id: tx.organizationId, id: uuidv7(), secret_sealed: secretSealed, ...values })
    .returning(COLUMNS)
  return recorded(tx, 'outgoing_webhook.created', row as OutgoingWebhook)
}

/** Endpoints, newest first. */
export function listOutgoingWebhooks(tx: Tenant, page: IdPage): Promise<Page<OutgoingWebhook>> {
  const rows = tx.trx('outgoing_webhooks').where({ organization_id: tx.organizationId }).select(COLUMNS)
  return pageById(tx, rows, page, { of: 'outgoing webhooks' })
}

async function countOutgoingWebhooks(tx: Tenant): Promise<number> {
  const [row] = await tx
    .trx('outgoing_webhooks')
    .where({ organization_id: tx.organizationId })
    .count<{ count: number }[]>()
  return row!.count
}

/** Throws not_found. */
export async function getOutgoingWebhook(tx: Tenant, id: string): Promise<OutgoingWebhook> {
  const row = await tx
    .trx('outgoing_webhooks')
    .where({ organization_id: tx.organizationId, id })
    .first<OutgoingWebhook | undefined>(COLUMNS)
  if (!row) throw notFound('webhook')
  return row
}

/**
 * Updates an endpoint; effective from the next attempt, also of open deliveries. Waiting deliveries follow a changed
 * retry schedule at once. Throws not_found.
 */
export async function updateOutgoingWebhook(tx: Tenant, id: string, patch: Patch): Promise<OutgoingWebhook> {
  if (patch.url !== undefined && patch.headers_sealed === undefined)
    await requireSameServer(tx, id, patch.url)
  const before = patch.retry_schedule === undefined ? undefined : await lockSchedule(tx, id)
  const [row] = await tx
    .trx('outgoing_webhooks')
    .where({ organization_id: tx.organizationId, id })
    .update({
      ...patch,
      // What was changed may be what it failed for.
      backoff_until: null,
      updated_at: tx.trx.fn.now(),
    })
    .returning(COLUMNS)
  if (!row) throw notFound('webhook')
  if (before && patch.retry_schedule !== undefined)
    await followSchedule(tx, id, { from: before.retry_schedule, to: patch.retry_schedule })
  tx.wake('agx_deliveries')
  return recorded(tx, 'outgoing_webhook.updated', row as OutgoingWebhook, fieldsOf(patch))
}

/** Headers may have a credential: it is sent to the server that it was given for, and to no other. */
async function requireSameServer(tx: Tenant, id: string, url: string): Promise<void> {
  const row = await tx
    .trx('outgoing_webhooks')
    .where({ organization_id: tx.organizationId, id })
    .forUpdate()
    .first<Pick<OutgoingWebhook, 'url' | 'header_names'> | undefined>('url', 'header_names')
  if (!row || row.header_names.length === 0 || new URL(row.url).origin === new URL(url).origin) return
  throw invalid([
    {
      loc: ['body', 'headers'],
      msg: 'are required with another server',
      type: 'missing',
      hint: `send the headers ${row.header_names.join(', ')} again, or {} for none`,
    },
  ])
}

const lockSchedule = (tx: Tenant, id: string) =>
  tx
    .trx('outgoing_webhooks')
    .where({ organization_id: tx.organizationId, id })
    .forUpdate()
    .first<{ retry_schedule: RetrySchedule } | undefined>('retry_schedule')

/** Inactive holds open deliveries, Active releases them. Throws not_found. */
export async function setOutgoingStatus(
  tx: Tenant,
  id: string,
  status: OutgoingWebhook['status'],
): Promise<OutgoingWebhook> {
  const [row] = await tx
    .trx('outgoing_webhooks')
    .where({ organization_id: tx.organizationId, id })
    .whereNot({ status })
    .update({
      status,
      status_reason: null,
      failing_since: null,
      backoff_until: null,
      updated_at: tx.trx.fn.now(),
    })
    .returning(COLUMNS)
  if (!row) return getOutgoingWebhook(tx, id)
  await (status === 'Active' ? releaseDeliveries : holdDeliveries)(tx, id)
  const action = status === 'Active' ? 'outgoing_webhook.activated' : 'outgoing_webhook.deactivated'
  return recorded(tx, action, row as OutgoingWebhook)
}

/** Deliveries are signed with both secrets for `overlapHours`. Throws not_found. */
export async function rotateOutgoingSecret(
  tx: Tenant,
  id: string,
  secretSealed: string,
  overlapHours: number,
): Promise<OutgoingWebhook> {
  await tx.trx.raw(
    `update outgoing_webhooks set
       previous_secret_sealed = case when :hours > 0 then secret_sealed end,
       previous_secret_expires_at = case when :hours > 0 then now() + make_interval(hours => :hours) end,
       secret_sealed = :sealed,
       updated_at = now()
     where organization_id = :organizationId and id = :id`,
    { hours: overlapHours, sealed: secretSealed, organizationId: tx.organizationId, id },
  )
  return recorded(tx, 'outgoing_webhook.secret_rotated', await getOutgoingWebhook(tx, id))
}

/** Deletes an endpoint with its deliveries; an attempt in flight still arrives. Throws not_found. */
export async function deleteOutgoingWebhook(tx: Tenant, id: string): Promise<void> {
  const [row] = await tx
    .trx('outgoing_webhooks')
    .where({ organization_id: tx.organizationId, id })
    .delete()
    .returning<Pick<OutgoingWebhook, 'id' | 'name'>[]>(['id', 'name'])
  if (!row) throw notFound('webhook')
  await recorded(tx, 'outgoing_webhook.deleted', row)
}
