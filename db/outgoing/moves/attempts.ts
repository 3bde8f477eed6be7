import {
  type DeliveryEnd,
  type DeliveryStatus,
  OPEN_DELIVERY_STATUSES,
} from '../../model/outgoing/statuses.ts'
import { since } from '../../model/work-end.ts'
import type { Tenant } from '../../postgres/tenancy.ts'
import { lockClaimsNext } from '../../queue/queue-lock.ts'
import { SLOT_END } from '../slot-lease.ts'
import { anyQueued, anyWaits, FREE_FOR_RETRY } from '../slots.ts'
import type { Release } from './queue.ts'

/** The attempts and the end of a delivery; the table is in `db/model/outgoing/statuses.ts`. */

export interface AttemptResult {
  succeeded: boolean
  http_status: number | null
  duration_ms: number
  response_headers: Record<string, string> | null
  response_body: string | null
  error: string | null
  /** The name of the receiver has no address. */
  unresolved?: boolean
}

/** What was read of a delivery before its attempt begins. */
export interface ReadyDelivery {
  releases: number
  next_attempt_at: Date | null
  /** Whether its slot is leased; a retry takes one otherwise. */
  has_slot: boolean
}

/**
 * Logs an attempt before it is sent. A retry without a slot takes one: after the lock, so that the statement sees the
 * slots that others took before it, and with COMMIT in the same message, because all claims wait for the lock. (One that
 * was held from before the delivery was read let 20 retries a second begin.)
 * @param relayId of the worker that makes the attempt.
 * @returns its number, from 1; undefined if no slot is free, or the delivery was held, has ended, or differs from
 * `ready`.
 */
export async function beginAttempt(
  tx: Tenant,
  id: string,
  relayId: string,
  ready?: ReadyDelivery,
): Promise<number | undefined> {
  const takes = ready?.has_slot === false
  if (takes) {
    lockClaimsNext(tx, 'deliveries')
    // The relay cannot claim meanwhile and must try again.
    tx.wake('agx_deliveries')
  }
  const { rows } = await tx.trx.raw<{ rows: { attempt: number }[] }>(
    `with d as (
       update deliveries d set attempts = attempts + 1, status = 'delivering', next_attempt_at = null,
         relay_id = :relayId, lease_until = null, held_for = null, slot_wanted_at = null,
         started_at = coalesce(started_at, now()), slot_until = ${SLOT_END}
       ${takes ? 'from outgoing_webhooks w' : ''}
       where d.organization_id = :organizationId and d.id = :deliveryId and d.status in ('queued', 'delivering')
         ${ready ? 'and d.releases = :releases and d.next_attempt_at is not distinct from cast(:due as timestamptz)' : ''}
         ${takes ? `and w.organization_id = d.organization_id and w.id = d.webhook_id and ${FREE_FOR_RETRY} > 0` : ''}
       returning attempts)
     insert into delivery_attempts (organization_id, delivery_id, attempt)
     select :organizationId, :deliveryId, attempts from d returning attempt`,
    {
      organizationId: tx.organizationId,
      deliveryId: id,
      relayId,
      ...(ready ? { releases: ready.releases, due: ready.next_attempt_at } : {}),
    } as never,
  )
  return rows[0]?.attempt
}

const OF_ENDPOINT = 'd.organization_id = :organizationId and d.webhook_id = :webhookId'

/** What is logged of the end of a delivery. */
interface Ended {
  delivery_id: string
  webhook_id: string
  event_id: string
  attempts: number
  trace_id: string | null
  created_at: string
}

/** SQL: `Ended`, for RETURNING. */
const ENDED = `jsonb_build_object('delivery_id', id, 'webhook_id', webhook_id, 'event_id', event_id,
  'attempts', attempts, 'created_at', created_at, 'trace_id', (
    select e.trace_id from events e where e.organization_id = deliveries.organization_id
      and e.id = deliveries.event_id)) as ended`

function reportEnd(tx: Tenant, status: DeliveryEnd, { trace_id, created_at, ...of }: Ended): void {
  const { organizationId: organization_id } = tx
  tx.ends.push({ work: 'delivery', status, organization_id, trace_id, ms: since(created_at), of })
}

interface EndedAttempt {
  status: DeliveryStatus | null
  ended: Ended | null
  others_wait: boolean
}

/**
 * Completes the log of an attempt. `next` is the time of the next attempt; null ends the delivery. A delivery that was
 * held or cancelled during the attempt keeps that status, unless the attempt succeeded; a paused one keeps `next`, too.
 * One that has begun another attempt meanwhile, in a new release, keeps status and time unless this one succeeded.
 * Its slot is free: wakes the relay if others wait for one. @returns the delivery's new status, undefined if it was
 * deleted.
 */
export async function endAttempt(
  tx: Tenant,
  { id, webhookId }: { id: string; webhookId: string },
  attempt: number,
  result: AttemptResult,
  next: Date | null,
): Promise<DeliveryStatus | undefined> {
  const { succeeded, response_headers } = result
  const ended = succeeded ? 'succeeded' : next ? null : 'failed'
  const { rows } = await tx.trx.raw<{ rows: EndedAttempt[] }>(
    `with attempt as (
       update delivery_attempts set status = :outcome, http_status = :httpStatus, duration_ms = :duration,
         response_headers = :headers, response_body = :body, error = :error
       where organization_id = :organizationId and delivery_id = :id and attempt = :attempt
     ), delivery as (
       update deliveries set
         status = coalesce(:ended, status), error = cast(:failure as text), next_attempt_at = :next,
         held_for = case when cast(:ended as text) is null then held_for end,
         ended_at = case when cast(:ended as text) is not null then now() end
       where organization_id = :organizationId and id = :id and (attempts <= :attempt or cast(:succeeded as boolean))
         and (status = any(:from) or (status = 'held' and held_for = 'paused')) returning status, ${ENDED})
     select coalesce((select status from delivery), (
         select status from deliveries where organization_id = :organizationId and id = :id)) as status,
       (select ended from delivery) as ended,
       ${anyQueued(OF_ENDPOINT)} or ${anyWaits(OF_ENDPOINT)} as others_wait`,
    {
      organizationId: tx.organizationId,
      id,
      webhookId,
      attempt,
      succeeded,
      outcome: succeeded ? 'succeeded' : 'failed',
      httpStatus: result.http_status,
      duration: result.duration_ms,
      headers: JSON.stringify(response_headers),
      body: result.response_body,
      error: result.error,
      ended,
      failure: succeeded ? null : result.error,
      next,
      from: ended ? endsFrom(ended) : ['delivering'],
    } as never,
  )
  const { status, others_wait, ended: end } = rows[0]!
  if (end && ended) reportEnd(tx, ended, end)
  if (others_wait) tx.wake('agx_deliveries')
  return status ?? undefined
}

/** An attempt that arrives makes the delivery succeed, even if the delivery was already failed or cancelled. */
const endsFrom = (status: DeliveryEnd): DeliveryStatus[] => [
  ...OPEN_DELIVERY_STATUSES,
  ...(status === 'succeeded' ? (['failed', 'cancelled'] as const) : []),
]

/** Gives up a delivery. Frees its slot and wakes the relay for the next one. @returns false if it has ended. */
export const endDelivery = (
  tx: Tenant,
  id: string,
  status: Exclude<DeliveryEnd, 'succeeded'>,
  error: string | null,
): Promise<boolean> => giveUp(tx, { id }, OPEN_DELIVERY_STATUSES, status, error)

/** Gives up a release whose workflow has ended without recording it. @returns false if it is not `delivering`. */
export const endUnrecordedDelivery = (
  tx: Tenant,
  { id, releases }: Release,
  status: Exclude<DeliveryEnd, 'succeeded'>,
  error: string,
): Promise<boolean> => giveUp(tx, { id, releases }, ['delivering'], status, error)

/**
 * Queues a delivery whose workflow Temporal does not have, or has completed without its end in the row (Temporal or this
 * database was restored from a backup), or whose relay is dead. A new release continues with the next attempt, when it
 * is due; the release before, if it does exist, finds its row released again and ends. @returns false if it is not
 * `delivering`, or not of the given relay.
 */
export async function requeueDelivery(
  tx: Tenant,
  { id, releases, relay_id }: Release & { relay_id?: string },
): Promise<boolean> {
  const count = await tx
    .trx('deliveries')
    .where({
      organization_id: tx.organizationId,
      id,
      releases,
      status: 'delivering',
      ...(relay_id && { relay_id }),
    })
    .update({
      status: 'queued',
      held_for: null,
      relay_id: null,
      lease_until: null,
      slot_until: null,
      releases: releases + 1,
    })
  if (count > 0) tx.wake('agx_deliveries')
  return count > 0
}

async function giveUp(
  tx: Tenant,
  key: { id: string; releases?: number },
  from: readonly DeliveryStatus[],
  status: DeliveryEnd,
  error: string | null,
): Promise<boolean> {
  const given: { ended: Ended }[] = await tx
    .trx('deliveries')
    .where({ organization_id: tx.organizationId, ...key })
    .whereIn('status', from)
    .update({ status, error, held_for: null, next_attempt_at: null, ended_at: tx.trx.fn.now() })
    .returning(tx.trx.raw(ENDED) as never)
  for (const { ended } of given) reportEnd(tx, status, ended)
  if (given.length > 0) tx.wake('agx_deliveries')
  return given.length > 0
}
