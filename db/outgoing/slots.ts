import { lockClaims } from '../postgres/queue-lock.ts'
import type { Tenant } from '../postgres/tenancy.ts'
import { SLOT_END } from './slot-lease.ts'

/**
 * The slots of an endpoint; their number is `concurrency`. A delivery leases a slot while an attempt is in progress or
 * about to start, and has none while it waits for a retry. The relay takes slots for first attempts; retries, and
 * attempts whose lease has expired, take them here.
 */

/** SQL: whether the delivery `d` is in an attempt that holds a slot; or is being started, and holds one. */
const IN_ATTEMPT = `d.in_attempt and d.slot_until > now()`
const IN_START = `d.status = 'queued' and d.lease_until > now()`

/** SQL: whether the delivery `d` has a leased slot. */
export const HAS_SLOT = `coalesce((${IN_ATTEMPT}) or (${IN_START}), false)`

/** SQL: the leased slots, as rows with organization_id and webhook_id, of the deliveries `d` for which `condition` holds. */
export const leasedSlots = (condition = 'true'): string => `(
  select d.organization_id, d.webhook_id from deliveries d where ${IN_ATTEMPT} and ${condition}
  union all
  select d.organization_id, d.webhook_id from deliveries d where ${IN_START} and ${condition})`

/** SQL: the number of leased slots of the endpoint `w`. */
const HELD = `(
  select count(*) from ${leasedSlots('d.organization_id = w.organization_id and d.webhook_id = w.id')} held)`

/**
 * Attempts in progress at once, so that receivers that do not answer leave slots to others. The relay starts a delivery
 * only while its endpoint has fewer attempts than are left of `all`, where those of its own organization count twice: of
 * n endpoints that hang none can take the last slots. A retry is made while its endpoint has fewer than its organization
 * has left of `organization`.
 */
export const ATTEMPTS = { organization: 200, all: 500 }

/**
 * SQL: the number of due retries without a slot, of the endpoint `w`, counted up to `limit`. One that is paused in
 * Temporal cannot be woken.
 */
export const dueRetries = (limit: string): string => `(
  select count(*) from (
    select from deliveries d where d.organization_id = w.organization_id and d.webhook_id = w.id
      and d.status = 'delivering' and d.next_attempt_at <= now() and d.held_for is null limit ${limit}) due)`

const MAX_WAIT_SECONDS = 300

/**
 * Takes a slot for an attempt that is due and has none. The slot is reserved until the end of the transaction, which
 * must begin the attempt.
 * @returns the milliseconds until the next try if no slot is free; undefined if the slot was taken or none is needed
 * (the delivery is not due, or it has a slot).
 */
export async function takeSlot(tx: Tenant, deliveryId: string): Promise<number | undefined> {
  const before = await slotsFor(tx, deliveryId)
  if (!before || (before.next_attempt_at && before.next_attempt_at.getTime() > Date.now())) return undefined
  if (before.free <= 0) {
    if (!before.next_attempt_at) await markDue(tx, deliveryId)
    return waitFor(before)
  }
  // The statement after the lock sees the slots that others took before it.
  await lockClaims(tx.trx, 'deliveries')
  // The relay cannot claim meanwhile and must try again.
  tx.wake('agx_deliveries')
  const now = await slotsFor(tx, deliveryId)
  return now && now.free <= 0 ? waitFor(now) : undefined
}

/** Makes an interrupted attempt a due retry, which the next free slot wakes. */
async function markDue(tx: Tenant, deliveryId: string): Promise<void> {
  await tx.trx.raw(
    `update deliveries set next_attempt_at = now()
     where organization_id = ? and id = ? and status = 'delivering' and next_attempt_at is null
       and slot_until <= now()`,
    [tx.organizationId, deliveryId],
  )
}

/**
 * Renews the lease of an attempt. @returns false if the delivery was held or has ended: the attempt may stop. That of a
 * paused delivery goes on, because its result saves an attempt.
 */
export async function renewSlot(tx: Tenant, deliveryId: string, attempt: number): Promise<boolean> {
  const { rowCount } = await tx.trx.raw<{ rowCount: number }>(
    `update deliveries set slot_until = ${SLOT_END}
     where organization_id = ? and id = ? and attempts = ? and next_attempt_at is null
       and (status = 'delivering' or (status = 'held' and held_for = 'paused'))`,
    [tx.organizationId, deliveryId, attempt],
  )
  return rowCount > 0
}

/** Wakes as many due retries as slots are free, the longest due first. */
export async function wakeDueRetries(tx: Tenant, webhookId: string): Promise<void> {
  const { rowCount } = await tx.trx.raw<{ rowCount: number }>(
    `update deliveries d set changes = d.changes + 1 from (
       select id from deliveries
       where organization_id = :organizationId and webhook_id = :webhookId
         and status = 'delivering' and next_attempt_at <= now() and held_for is null
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
  /** null: the attempt was interrupted or has not begun. */
  next_attempt_at: Date | null
  concurrency: number
  free: number
  due: number
}

async function slotsFor(tx: Tenant, deliveryId: string): Promise<Slots | undefined> {
  const { rows } = await tx.trx.raw<{ rows: Slots[] }>(
    `select this.next_attempt_at, w.concurrency,
       least(w.concurrency - held.own, floor((${ATTEMPTS.organization} - held.total - held.own) / 2.0)) as free,
       ${dueRetries(`${MAX_WAIT_SECONDS} * w.concurrency`)} as due
     from (
       select d.*, ${HAS_SLOT} as has_slot from deliveries d
       where d.organization_id = :organizationId and d.id = :deliveryId) this
     join outgoing_webhooks w on w.organization_id = this.organization_id and w.id = this.webhook_id
     cross join lateral (
       select count(*) as total, count(*) filter (where slot.webhook_id = w.id) as own
       from ${leasedSlots('d.organization_id = :organizationId')} slot) held
     where this.status in ('queued', 'delivering') and not this.has_slot`,
    { organizationId: tx.organizationId, deliveryId },
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
