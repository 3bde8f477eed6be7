import { v7 as uuidv7 } from 'uuid'
import { conflict, invalid, notFound } from '../model/errors.ts'
import {
  type DeliveryEnd,
  type DeliveryStatus,
  type HeldFor,
  isDeliveryEnd,
} from '../model/outgoing/statuses.ts'
import type { Tenant } from '../postgres/tenancy.ts'
import { endDelivery } from './moves/attempts.ts'
import { pauseDelivery as pause, resumeDelivery as resume } from './moves/holds.ts'
import { insertDelivery } from './moves/queue.ts'
import { chargeDeliveries } from './quota.ts'

/** The actions of users on one delivery. Each action locks its row, so that its workflow and other requests wait. */

/**
 * Cancels a delivery. It still succeeds if an attempt in flight arrives. Throws not_found, conflict. @returns its id.
 */
export async function cancelDelivery(tx: Tenant, id: string): Promise<string> {
  const { status } = await lock(tx, id)
  if (isDeliveryEnd(status)) throw conflict(`the delivery has already ${ENDED[status]}`)
  await endDelivery(tx, id, 'cancelled', null)
  if (status === 'delivering') await signalWorkflow(tx, id)
  return id
}

/** Makes the next attempt due now. Throws not_found, conflict. @returns its id. */
export async function retryDelivery(tx: Tenant, id: string): Promise<string> {
  const { status, held_for, next_attempt_at } = await lock(tx, id)
  if (isDeliveryEnd(status))
    throw conflict(`the delivery has already ${ENDED[status]}`, {
      hint: 'resend the delivery to send the event again',
    })
  if (status === 'held') throw conflict('the delivery is held', { hint: RELEASE[held_for ?? 'endpoint'] })
  if (held_for) throw conflict('the delivery is held', { hint: RELEASE[held_for] })
  // Already due: it is sent when a slot is free.
  if (next_attempt_at ? next_attempt_at.getTime() <= Date.now() : status === 'queued') return id
  if (!next_attempt_at) throw conflict('an attempt is already in progress')
  await tx
    .trx('deliveries')
    .where({ organization_id: tx.organizationId, id })
    .update({ next_attempt_at: tx.trx.fn.now() })
  await signalWorkflow(tx, id)
  return id
}

/** Maximum number of days until a scheduled attempt. */
export const MAX_AHEAD_DAYS = 30

/**
 * Sets the time of the next attempt; later retries keep the schedule. A held delivery keeps the time until its release.
 * Throws not_found, conflict, validation_error. @returns its id.
 */
export async function rescheduleDelivery(tx: Tenant, id: string, at: Date): Promise<string> {
  const { status, next_attempt_at } = await lock(tx, id)
  if (isDeliveryEnd(status))
    throw conflict(`the delivery has already ${ENDED[status]}`, {
      hint: 'resend the delivery to send the event again',
    })
  const isRunning = status === 'delivering'
  if (isRunning && !next_attempt_at) throw conflict('an attempt is already in progress')
  const refuse = (msg: string, hint: string) =>
    invalid([{ loc: ['body', 'at'], msg, type: 'time_out_of_range', hint, input: at.toISOString() }])
  if (at.getTime() < Date.now())
    throw refuse('is in the past', 'retry the delivery to start the next attempt at once')
  if (at.getTime() > Date.now() + MAX_AHEAD_DAYS * 86_400_000)
    throw refuse(`is more than ${MAX_AHEAD_DAYS} days ahead`, 'pause the delivery, and resume it later')
  await tx
    .trx('deliveries')
    .where({ organization_id: tx.organizationId, id })
    .update({ next_attempt_at: at, slot_wanted_at: null })
  if (isRunning) await signalWorkflow(tx, id)
  return id
}

/**
 * Pauses an open delivery: no further attempt starts until it is resumed. An attempt in progress finishes. Throws
 * not_found, conflict. @returns its id.
 */
export async function pauseDelivery(tx: Tenant, id: string): Promise<string> {
  const { status } = await lock(tx, id)
  if (isDeliveryEnd(status)) throw conflict(`the delivery has already ${ENDED[status]}`)
  // No-op if it is already paused.
  await pause(tx, id)
  return id
}

/**
 * Resumes a paused delivery: its next attempt starts when it is due. The delivery is held if its endpoint is Inactive
 * or the quota is used up. Throws not_found, conflict. @returns its id.
 */
export async function resumeDelivery(tx: Tenant, id: string): Promise<string> {
  const { webhook_id } = await find(tx, id)
  const active = await lockEndpoint(tx, webhook_id)
  const { status, held_for, test, charged } = await lock(tx, id)
  if (held_for !== 'paused')
    throw conflict(
      'the delivery is not paused',
      held_for ? { hint: RELEASE[held_for] } : { hint: `its status is ${status}` },
    )
  const granted = !test && active && !charged ? await chargeDeliveries(tx.trx, tx.organizationId, 1) : 0
  const waitsFor = test || (active && (charged || granted === 1)) ? null : active ? 'quota' : 'endpoint'
  await resume(tx, id, { waitsFor, charged: charged || granted === 1 })
  return id
}

/**
 * Sends the event of a delivery to another endpoint, as a new delivery with that endpoint's secret, headers and retry
 * schedule. The delivery itself is cancelled if it is open. Throws not_found, conflict, validation_error.
 * @returns the id of the new delivery.
 */
export async function retargetDelivery(tx: Tenant, id: string, webhookId: string): Promise<string> {
  const { status, webhook_id, event_id, subject_id, test } = await lock(tx, id)
  const refuse = (msg: string, type: string, hint: string) =>
    invalid([{ loc: ['body', 'webhook_id'], msg, type, hint, input: webhookId }])
  if (webhookId === webhook_id)
    throw refuse(
      'is the webhook of the delivery',
      'same_webhook',
      'resend the delivery to send the event again',
    )
  const target = await tx
    .trx('outgoing_webhooks')
    .where({ organization_id: tx.organizationId, id: webhookId })
    .first('id')
  if (!target)
    throw refuse(
      'is not an outgoing webhook',
      'unknown_webhook',
      'GET /webhooks/outgoing lists them, below /v1 or /app',
    )
  const generation = await nextGeneration(tx, { webhook_id: webhookId, event_id })
  const created = await addDelivery(tx, { webhook_id: webhookId, event_id, subject_id, test, generation })
  if (!isDeliveryEnd(status)) {
    await endDelivery(tx, id, 'cancelled', `retargeted: delivery ${created} sends the event instead`)
    if (status === 'delivering') await signalWorkflow(tx, id)
  }
  return created
}

/**
 * Resends the event of an ended delivery as a new delivery, unless a resend is in progress. Throws not_found, conflict.
 * @returns the id of the new delivery.
 */
export async function resendDelivery(tx: Tenant, id: string): Promise<string> {
  const { status, webhook_id, event_id, subject_id, test } = await lock(tx, id)
  if (!isDeliveryEnd(status))
    throw conflict('the delivery has not ended yet', {
      hint: 'retry the delivery to start its next attempt now',
    })
  const generation = await nextGeneration(tx, { webhook_id, event_id })
  return addDelivery(tx, { webhook_id, event_id, subject_id, test, generation })
}

/**
 * Sends an example event to one endpoint, Active or Inactive. It has a single attempt, which counts neither against the
 * quota nor for the endpoint's health. @returns the delivery's id.
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
    // Already matched, so that no other endpoint receives it.
    matched_at: tx.trx.fn.now(),
  })
  return addDelivery(tx, { webhook_id: webhookId, event_id: id, subject_id: null, test: true, generation: 0 })
}

/** The generation of a further delivery of an event to an endpoint. Throws conflict if one is open. */
async function nextGeneration(
  tx: Tenant,
  { webhook_id, event_id }: { webhook_id: string; event_id: string },
): Promise<number> {
  // Serialises resends of different deliveries of one event.
  await tx
    .trx('events')
    .where({ organization_id: tx.organizationId, id: event_id })
    .forNoKeyUpdate()
    .first('id')
  const last = await tx
    .trx('deliveries')
    .where({ organization_id: tx.organizationId, webhook_id, event_id })
    .orderBy('generation', 'desc')
    .first<{ id: string; generation: number; status: DeliveryStatus } | undefined>(
      'id',
      'generation',
      'status',
    )
  if (!last) return 0
  if (!isDeliveryEnd(last.status))
    throw conflict('the event is already being resent', { hint: `see delivery ${last.id}` })
  return last.generation + 1
}

async function addDelivery(
  tx: Tenant,
  delivery: Pick<Row, 'webhook_id' | 'event_id' | 'subject_id' | 'test'> & { generation: number },
): Promise<string> {
  const active = await lockEndpoint(tx, delivery.webhook_id)
  const charged = !delivery.test && active && (await chargeDeliveries(tx.trx, tx.organizationId, 1)) === 1
  return insertDelivery(tx, { ...delivery, active, charged })
}

interface Row {
  status: DeliveryStatus
  held_for: HeldFor | null
  next_attempt_at: Date | null
  webhook_id: string
  event_id: string
  subject_id: string | null
  test: boolean
  charged: boolean
}
const COLUMNS = [
  'status',
  'held_for',
  'next_attempt_at',
  'webhook_id',
  'event_id',
  'subject_id',
  'test',
  'charged',
]

const rowOf = (tx: Tenant, id: string) =>
  tx.trx('deliveries').where({ organization_id: tx.organizationId, id }).select<Row[]>(COLUMNS)

async function find(tx: Tenant, id: string): Promise<Row> {
  const [row] = await rowOf(tx, id)
  if (!row) throw notFound('delivery')
  return row
}

/** Locks the row against changes by its workflow and by other requests. */
async function lock(tx: Tenant, id: string): Promise<Row> {
  const [row] = await rowOf(tx, id).forUpdate()
  if (!row) throw notFound('delivery')
  return row
}

/** Locks the status of an endpoint until the end of the transaction. @returns whether it is Active. */
async function lockEndpoint(tx: Tenant, id: string): Promise<boolean> {
  const { status } = await tx
    .trx('outgoing_webhooks')
    .where({ organization_id: tx.organizationId, id })
    .forShare()
    .first<{ status: string }>('status')
  return status === 'Active'
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

/** The conditions that release a held delivery, for error messages. */
const RELEASE: Record<HeldFor, string> = {
  endpoint: 'activate its webhook',
  quota: 'it is sent when the month or the plan changes',
  paused: 'resume it',
  operator: 'unpause its activity in Temporal',
}
