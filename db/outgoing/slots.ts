import { lockClaims } from '../postgres/queue-lock.ts'
import type { Tenant } from '../postgres/tenancy.ts'

/**
 * The slots of an endpoint, `concurrency` of them: a delivery holds one while an attempt of it is made, or is about to
 * be, and none while it waits for the next. First attempts get theirs from the relay, retries take them here.
 */

/** SQL, of the endpoint `w`: how many of its slots are held. */
export const HELD = `(
  (select count(*) from deliveries d where d.organization_id = w.organization_id and d.webhook_id = w.id
     and d.status = 'delivering' and d.next_attempt_at is null) +
  (select count(*) from deliveries d where d.organization_id = w.organization_id and d.webhook_id = w.id
     and d.status = 'queued' and d.lease_until > now()))`

/** SQL, of the endpoint `w`: how many retries are due and have none. */
export const DUE = `(
  select count(*) from deliveries d where d.organization_id = w.organization_id and d.webhook_id = w.id
     and d.status = 'delivering' and d.next_attempt_at <= now())`

const LONGEST_WAIT_SECONDS = 300

/**
 * Takes a slot for a delivery whose retry is due, for the rest of the transaction, which is to begin the attempt.
 * @returns in how many milliseconds to ask again, where none is free; undefined with the slot, or where the delivery
 * needs none: it is not due, or the attempt that it has a slot for is made again.
 */
export async function takeRetrySlot(tx: Tenant, deliveryId: string): Promise<number | undefined> {
  const before = await slotsFor(tx, deliveryId)
  if (!before || before.next_attempt_at.getTime() > Date.now()) return undefined
  if (before.free <= 0) return waitFor(before)
  // What others took before the lock is seen by the statement after it.
  await lockClaims(tx.trx, 'deliveries')
  // The relay claims nothing meanwhile, and is to look again.
  tx.wake('agx_deliveries')
  const now = await slotsFor(tx, deliveryId)
  return now && now.free <= 0 ? waitFor(now) : undefined
}

/** Slots are free again: as many of the retries that are due are told, the longest first, and need not ask later. */
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
 * For when nothing wakes it before: the more are due, the later each asks again, so that all together ask about once
 * a second for each slot.
 */
function waitFor({ due, concurrency }: Slots): number {
  const seconds = Math.min(Math.max(1, due / concurrency), LONGEST_WAIT_SECONDS)
  return seconds * (1 + Math.random() / 2) * 1_000
}
