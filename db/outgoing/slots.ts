import type { Tenant } from '../postgres/tenancy.ts'
import { isUnleased } from '../queue/queue.ts'
import { SLOT_END } from './slot-lease.ts'

/**
 * The slots of an endpoint; their number is `concurrency`. A delivery leases a slot while an attempt is in progress or
 * about to start, and has none while it waits for a retry. The relay takes slots for first attempts. A due retry takes a
 * free one when it begins; if there is none, it waits until the relay gives it one, in turn with first attempts.
 */

/** SQL: whether the delivery `d` is in an attempt that holds a slot; or is being started, and holds one. */
const IN_ATTEMPT = `d.in_attempt and d.slot_until > now()`
const IN_START = `d.status = 'queued' and d.lease_until > now()`

/** SQL: whether the delivery `d` has a leased slot. */
export const HAS_SLOT = `coalesce((${IN_ATTEMPT}) or (${IN_START}), false)`

/**
 * SQL: the leased slots, as rows with organization_id, webhook_id and whether it is for a `retry`, of the deliveries `d`
 * for which `condition` holds.
 */
export const leasedSlots = (condition = 'true'): string => `(
  select d.organization_id, d.webhook_id, d.attempts > 1 or d.slot_wanted_at is not null as retry
  from deliveries d where ${IN_ATTEMPT} and ${condition}
  union all
  select d.organization_id, d.webhook_id, false from deliveries d where ${IN_START} and ${condition})`

/**
 * SQL: whether the retry `d` waits for a slot. One that was given a slot has no next_attempt_at; it waits again if it has
 * not begun when the lease ends. One that is paused in Temporal cannot be woken.
 */
export const WAITS_FOR_SLOT = `d.status = 'delivering' and d.slot_wanted_at is not null and d.held_for is null
  and coalesce(d.next_attempt_at, d.slot_until, now()) <= now()`

/** SQL: whether the delivery `d` waits for its first attempt, or that of a release, and no relay is starting it. */
export const IS_QUEUED = `d.status = 'queued' and ${isUnleased('d.lease_until')}`

/**
 * SQL: whether deliveries of an endpoint wait for a first attempt, or retries for a slot. In the order of an index: to
 * find any the planner expects one soon, and reads the whole table, where those that have ended come first.
 */
export const anyQueued = (endpoint: string): string => any(`${endpoint} and ${IS_QUEUED}`, 'd.id')
export const anyWaits = (endpoint: string): string =>
  any(`${endpoint} and ${WAITS_FOR_SLOT}`, 'd.slot_wanted_at')
const any = (condition: string, order: string) =>
  `coalesce((select true from deliveries d where ${condition} order by ${order} limit 1), false)`

/**
 * Attempts in progress at once, so that receivers that do not answer leave slots to others. The relay starts a delivery
 * only while its endpoint has fewer attempts than are left of `all`, where those of its own organization count twice: of
 * n endpoints that hang none can take the last slots. A retry is made while its endpoint has fewer than its organization
 * has left of `organization`.
 */
export const ATTEMPTS = { organization: 200, all: 500 }

/** About as long as an attempt of a prompt receiver holds its slot. */
const SOON = `interval '250 milliseconds'`

/**
 * SQL: the number of retries of the endpoint `w` that are due or soon will be, and have no slot; counted up to its
 * concurrency. The relay leaves them slots: a retry that finds a slot when it is due costs a third of one that has to be
 * woken.
 */
export const DUE_RETRIES = `(
  select count(*) from (
    select from deliveries d where d.organization_id = w.organization_id and d.webhook_id = w.id
      and d.status = 'delivering' and d.next_attempt_at <= now() + ${SOON} and d.held_for is null
    order by d.next_attempt_at limit w.concurrency) due)`

/**
 * The relay wakes a retry that waits for a slot. The retry also looks by itself, in case a wake-up is lost: seldom,
 * because 10,000 may wait, and a look costs as much as an attempt.
 */
const RECHECK_SECONDS = 900
/** Before the start of a delivery is recorded: no notification is sent when the relay's lease ends and frees the slot. */
const RECHECK_START_SECONDS = 2

/**
 * SQL: the number of slots of the endpoint `w` that the due retry `:deliveryId` may take: not those of retries that wait
 * already, nor the half of new deliveries.
 */
export const FREE_FOR_RETRY = `(
  select least(
    w.concurrency - held.own - waiting.count,
    floor((${ATTEMPTS.organization} - held.total - held.own) / 2.0),
    case when ${anyQueued('d.organization_id = w.organization_id and d.webhook_id = w.id')} then ceil(w.concurrency / 2.0) - held.retries end)
  from (
    select count(*) as total, count(*) filter (where slot.webhook_id = w.id) as own,
      count(*) filter (where slot.webhook_id = w.id and slot.retry) as retries
    from ${leasedSlots('d.organization_id = :organizationId')} slot) held,
  (select count(*) from (
    select from deliveries d where d.organization_id = w.organization_id and d.webhook_id = w.id
      and ${WAITS_FOR_SLOT} and d.id <> :deliveryId order by d.slot_wanted_at limit w.concurrency) d) waiting)`

/**
 * Has the relay give a due retry the next free slot, and signal its workflow; an interrupted attempt becomes a due retry.
 * @returns the milliseconds until it should look again.
 */
export async function waitForSlot(tx: Tenant, deliveryId: string): Promise<number> {
  const { rowCount } = await tx.trx.raw<{ rowCount: number }>(
    `update deliveries set slot_wanted_at = coalesce(slot_wanted_at, now()),
       next_attempt_at = coalesce(next_attempt_at, now())
     where organization_id = ? and id = ? and status = 'delivering' and coalesce(next_attempt_at, slot_until) <= now()`,
    [tx.organizationId, deliveryId],
  )
  // A slot may have become free meanwhile.
  tx.wake('agx_deliveries')
  const seconds = rowCount > 0 ? RECHECK_SECONDS : RECHECK_START_SECONDS
  return seconds * (1 + Math.random() / 2) * 1_000
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
