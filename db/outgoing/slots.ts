import { lockClaims } from '../postgres/queue-lock.ts'
import type { Tenant } from '../postgres/tenancy.ts'

/**
 * The slots of an endpoint; their number is `concurrency`. A delivery holds a slot while an attempt is in progress or
 * about to start, and none while it waits for a retry. The relay takes slots for first attempts; retries take them here.
 */

/** SQL: the number of held slots of the endpoint `w`. */
export const HELD = `(
  (select count(*) from deliveries d where d.organization_id = w.organization_id and d.webhook_id = w.id
     and d.status = 'delivering' and d.next_attempt_at is null) +
  (select count(*) from deliveries d where d.organization_id = w.organization_id and d.webhook_id = w.id
     and d.status = 'queued' and d.lease_until > now()))`

/** SQL: the number of due retries without a slot, of the endpoint `w`. */
export const DUE = `(
  select count(*) from deliveries d where d.organization_id = w.organization_id and d.webhook_id = w.id
     and d.status = 'delivering' and d.next_attempt_at <= now())`

const MAX_WAIT_SECONDS = 300

/**
 * Takes a slot for a delivery whose retry is due. The slot is reserved until the end of the transaction, which must
 * begin the attempt.
 * @returns the milliseconds until the next try if no slot is free; undefined if the slot was taken or none is needed
 * (the delivery is not due, or it repeats an attempt that has a slot).
 */
export async function takeRetrySlot(tx: Tenant, deliveryId: string): Promise<number | undefined> {
  const before = await slotsFor(tx, deliveryId)
  if (!before || before.next_attempt_at.getTime() > Date.now()) return undefined
  if (before.free <= 0) return waitFor(before)
  // The statement after the lock sees the slots that others took before it.
  await lockClaims(tx.trx, 'deliveries')
  // The relay cannot claim meanwhile and must try again.
  tx.wake('agx_deliveries')
  const now = await slotsFor(tx, deliveryId)
  return now && now.free <= 0 ? waitFor(now) : undefined
}

/** Wakes as many due retries as slots are free, the longest due first. */
export async function wakeDueRetries(tx: Tenant, webhookId: string): Promise<void> {
  const { rowCount } = await tx.trx.raw<{ rowCount: number }>(
    `update deliveries d set changes = d.changes + 1 from (
       select id from deliveries
       where organization_id = :organizationId and webhook_id = :webhookId
         and status = 'delivering' and next_attempt_at <= now()
       order by next_attempt_at
       limit (
         select greatest(1, w.concurrency - ${HELD}) from outgoing_webhooks w
         where w.organization_id = :organizationId and w.id = :webhookId)
       for update skip locked) due
     where d.organization_id = :organizationId and d.id = due.id`,
    { organizationId: tx.organizationId, webhookId },
  )
  if (rowCount > 0) tx.wake('agx_delivery_changes')
}

interface Slots {
  next_attempt_at: Date
  concurrency: number
  free: number
  due: number
}

async function slotsFor(tx: Tenant, deliveryId: string): Promise<Slots | undefined> {
  const { rows } = await tx.trx.raw<{ rows: Slots[] }>(
    `select this.next_attempt_at, w.concurrency, w.concurrency - ${HELD} as free, ${DUE} as due
     from deliveries this
     join outgoing_webhooks w on w.organization_id = this.organization_id and w.id = this.webhook_id
     where this.organization_id = ? and this.id = ? and this.status = 'delivering'
       and this.next_attempt_at is not null`,
    [tx.organizationId, deliveryId],
  )
  return rows[0]
}

/**
 * The polling interval of a due retry that nothing wakes: it grows with the number of due retries, so that together they
 * poll about once a second per slot.
 */
function waitFor({ due, concurrency }: Slots): number {
  const seconds = Math.min(Math.max(1, due / concurrency), MAX_WAIT_SECONDS)
  return seconds * (1 + Math.random() / 2) * 1_000
}
