import { v7 as uuidv7 } from 'uuid'
import { conflict, notFound } from '../errors.ts'
import { type IdPage, pageById } from '../lists/id-list.ts'
import type { Page } from '../lists/page.ts'
import type { Tenant } from '../postgres/tenancy.ts'
import { endDelivery } from './moves/attempts.ts'
import { insertDelivery } from './moves/queue.ts'
import { type DeliveryEnd, type DeliveryStatus, type HeldFor, isDeliveryEnd } from './moves/statuses.ts'
import { chargeDeliveries } from './quota.ts'

/** A delivery as lists show it. */
export interface Delivery {
  id: string
  webhook_id: string
  event_id: string
  event: string
  test: boolean
  /** The number of earlier resends of the event. */
  generation: number
  status: DeliveryStatus
  held_for: HeldFor | null
  attempt_count: number
  next_attempt_at: Date | null
  error: string | null
  created_at: Date
  started_at: Date | null
  ended_at: Date | null
}

/** `unknown`: in progress or interrupted. It does not count as one of the attempts that the retry schedule allows. */
export const ATTEMPT_STATUSES = ['unknown', 'succeeded', 'failed'] as const
export type AttemptStatus = (typeof ATTEMPT_STATUSES)[number]

export interface Attempt {
  attempt: number
  status: AttemptStatus
  started_at: Date
  http_status: number | null
  duration_ms: number | null
  response_headers: Record<string, string> | null
  response_body: string | null
  error: string | null
}

export interface DeliveryDetails extends Delivery {
  data: Record<string, unknown>
  previous: Record<string, unknown> | null
  attempts: Attempt[]
}

export interface DeliveryFilter {
  status?: DeliveryStatus | undefined
  event?: string | undefined
}

const SHOWN = [
  ...[
    'd.id',
    'd.webhook_id',
    'd.event_id',
    'e.name as event',
    'd.test',
    'd.generation',
    'd.status',
    'd.held_for',
  ],
  ...[
    'd.attempts as attempt_count',
    'd.next_attempt_at',
    'd.error',
    'd.created_at',
    'd.started_at',
    'd.ended_at',
  ],
]

const withEvents = (tx: Tenant) =>
  tx
    .trx('deliveries as d')
    .join('events as e', (on) => on.on('e.organization_id', 'd.organization_id').andOn('e.id', 'd.event_id'))
    .where('d.organization_id', tx.organizationId)

/** Deliveries of an endpoint, newest first. */
export function listDeliveries(
  tx: Tenant,
  webhookId: string,
  filter: DeliveryFilter,
  page: IdPage,
): Promise<Page<Delivery>> {
  const found = withEvents(tx).where('d.webhook_id', webhookId).select(SHOWN)
  if (filter.status) found.where('d.status', filter.status)
  if (filter.event) found.where('e.name', filter.event)
  // A derived table, so that `id` is unambiguous.
  const rows = tx.trx.from(found.as('shown')).select('*')
  return pageById(tx, rows, page, { of: ['deliveries', webhookId, filter] })
}

/** Throws not_found. */
export async function getDelivery(tx: Tenant, id: string): Promise<DeliveryDetails> {
  const row = await withEvents(tx)
    .where('d.id', id)
    .first<Omit<DeliveryDetails, 'attempts'> | undefined>(...SHOWN, 'e.data', 'e.previous')
  if (!row) throw notFound('delivery')
  const attempts = await tx
    .trx('delivery_attempts')
    .where({ organization_id: tx.organizationId, delivery_id: id })
    .orderBy('attempt')
    .select<Attempt[]>(
      ...['attempt', 'status', 'started_at', 'http_status', 'duration_ms'],
      ...['response_headers', 'response_body', 'error'],
    )
  return { ...row, attempts }
}

/** Cancels a delivery; it succeeds if an attempt in flight still arrives. Throws not_found, conflict. @returns its id. */
export async function cancelDelivery(tx: Tenant, id: string): Promise<string> {
  const { status } = await lock(tx, id)
  if (isDeliveryEnd(status)) throw conflict(`the delivery has already ${ENDED[status]}`)
  await endDelivery(tx, id, 'cancelled', null)
  if (status === 'delivering') await signalWorkflow(tx, id)
  return id
}

/** Makes the next attempt due now. Throws not_found, conflict. @returns its id. */
export async function retryDelivery(tx: Tenant, id: string): Promise<string> {
  const { status, next_attempt_at } = await lock(tx, id)
  if (isDeliveryEnd(status))
    throw conflict(`the delivery has already ${ENDED[status]}`, { hint: 'resend sends the event again' })
  if (status === 'held') throw conflict('the delivery is held', { hint: 'activate its webhook' })
  if (!next_attempt_at) throw conflict('an attempt is already in progress')
  // Already due: it is signalled when a slot is free.
  if (next_attempt_at.getTime() <= Date.now()) return id
  await tx
    .trx('deliveries')
    .where({ organization_id: tx.organizationId, id })
    .update({ next_attempt_at: tx.trx.fn.now() })
  await signalWorkflow(tx, id)
  return id
}

/**
 * Resends the event of an ended delivery as a new delivery, unless a resend is in progress. Throws not_found, conflict.
 * @returns the id of the new delivery.
 */
export async function resendDelivery(tx: Tenant, id: string): Promise<string> {
  const { status, webhook_id, event_id, test } = await lock(tx, id)
  if (!isDeliveryEnd(status))
    throw conflict('the delivery has not ended yet', { hint: 'retry makes its next attempt now' })
  // Serializes resends of different deliveries of one event.
  await tx
    .trx('events')
    .where({ organization_id: tx.organizationId, id: event_id })
    .forNoKeyUpdate()
    .first('id')
  const last = await tx
    .trx('deliveries')
    .where({ organization_id: tx.organizationId, webhook_id, event_id })
    .orderBy('generation', 'desc')
    .first<{ id: string; generation: number; status: DeliveryStatus }>('id', 'generation', 'status')
  if (!isDeliveryEnd(last.status))
    throw conflict('the event is already being resent', { hint: `see delivery ${last.id}` })
  return addDelivery(tx, { webhook_id, event_id, test, generation: last.generation + 1 })
}

/**
 * Sends an example event to one endpoint, Active or Inactive: one attempt, which counts neither against the quota nor
 * for the endpoint's health. @returns the delivery's id.
 */
export async function testDelivery(
  tx: Tenant,
  webhookId: string,
  event: { name: string; data: Record<string, unknown> },
): Promise<string> {
  const id = uuidv7()
  await tx.trx('events').insert({
    organization_id: tx.organizationId,
    id,
    name: event.name,
    data: JSON.stringify(event.data),
    actor: JSON.stringify(tx.actor),
    // Already matched: no other endpoint receives it.
    matched_at: tx.trx.fn.now(),
  })
  return addDelivery(tx, { webhook_id: webhookId, event_id: id, test: true, generation: 0 })
}

async function addDelivery(
  tx: Tenant,
  delivery: { webhook_id: string; event_id: string; test: boolean; generation: number },
): Promise<string> {
  const webhook = await tx
    .trx('outgoing_webhooks')
    .where({ organization_id: tx.organizationId, id: delivery.webhook_id })
    .first<{ status: string }>('status')
  const active = webhook.status === 'Active'
  const charged = !delivery.test && active && (await chargeDeliveries(tx.trx, tx.organizationId, 1)) === 1
  return insertDelivery(tx, { ...delivery, active, charged })
}

/** Locks the row against changes by its workflow and by other requests. */
async function lock(tx: Tenant, id: string) {
  const row = await tx.trx('deliveries').where({ organization_id: tx.organizationId, id }).forUpdate().first<
    | {
        status: DeliveryStatus
        next_attempt_at: Date | null
        webhook_id: string
        event_id: string
        test: boolean
      }
    | undefined
  >('status', 'next_attempt_at', 'webhook_id', 'event_id', 'test')
  if (!row) throw notFound('delivery')
  return row
}

async function signalWorkflow(tx: Tenant, id: string): Promise<void> {
  await tx.trx('deliveries').where({ organization_id: tx.organizationId, id }).increment('changes', 1)
  tx.wake('agx_delivery_changes')
}

const ENDED: Record<DeliveryEnd, string> = {
  succeeded: 'succeeded',
  failed: 'failed',
  cancelled: 'been cancelled',
}
