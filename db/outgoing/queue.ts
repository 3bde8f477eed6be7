import { queuedLanes } from '../postgres/lanes.ts'
import { claimAlone } from '../postgres/queue-lock.ts'
import type { System, Tenant } from '../postgres/tenancy.ts'
import { holdsFor } from './moves/holds.ts'
import type { Release } from './moves/queue.ts'
import { LEFT_OF_RATE } from './rate.ts'
import { DUE, HELD } from './slots.ts'

/** Queries of the relay and the sweep on deliveries; `moves/` has the status changes. */

/** A claim of a dead relay occupies a slot for so long. */
const LEASE_SECONDS = 10

/** A claimed delivery. */
export interface ClaimedDelivery extends Release {
  webhook_id: string
  webhook_name: string
  event_id: string
  event_name: string
  /** Whether the endpoint's last attempt failed. */
  failing: boolean
}

/**
 * Leases up to `limit` queued deliveries whose endpoint has a free slot, round-robin by organization. Half of an
 * endpoint's slots (every other claim for a single slot) are reserved for due retries, which new events would starve.
 */
export const claimDeliveries = (system: System, limit: number): Promise<ClaimedDelivery[]> =>
  claimAlone(system, 'deliveries', CLAIM, { limit, lease: LEASE_SECONDS })

/**
 * SQL: whether the queued delivery `d` must wait for an earlier one about the same record. Waiting for a retry, or held,
 * counts: otherwise the receiver would get the events in another order.
 */
const FOLLOWS = `(d.subject_id is not null and not d.test and exists (
  select from deliveries earlier
  where earlier.organization_id = d.organization_id and earlier.webhook_id = d.webhook_id
    and earlier.subject_id = d.subject_id and earlier.id < d.id and not earlier.test
    and earlier.status in ('held', 'queued', 'delivering')))`

const CLAIM = `
  with recursive ${queuedLanes('deliveries', 'webhook_id')}, endpoints as materialized (
    select w.organization_id, w.id, w.name, w.status, w.ordered, w.failing_since is not null as failing,
      least(w.concurrency - ${HELD} - least(${DUE}, floor(w.concurrency / 2.0 + random())),
        ${LEFT_OF_RATE})::integer as free
    from lanes l join outgoing_webhooks w on w.organization_id = l.organization_id and w.id = l.webhook_id
  ), candidates as (
    select q.organization_id, q.id, w.name, w.failing,
      row_number() over (partition by q.organization_id order by q.id) as turn
    from endpoints w cross join lateral (
      select d.organization_id, d.id from deliveries d
      where d.organization_id = w.organization_id and d.webhook_id = w.id and d.status = 'queued'
        and (w.status = 'Active' or d.test)
        and (d.lease_until is null or d.lease_until < now())
        and (not w.ordered or not ${FOLLOWS})
      order by d.id limit greatest(0, least(w.free, :limit))) q
  ), chosen as materialized (select * from candidates order by turn, id limit :limit)
  update deliveries d set lease_until = now() + make_interval(secs => :lease)
  from chosen c, events e
  where d.organization_id = c.organization_id and d.id = c.id
    -- an expression, so that the planner uses the primary key instead of a full scan of the queue's index per row
    and d.status || '' = 'queued'
    and e.organization_id = d.organization_id and e.id = d.event_id
  returning d.organization_id, d.id, d.webhook_id, c.name as webhook_name, d.event_id, d.releases,
    c.failing, e.name as event_name`

/** Lets deliveries be claimed again whose start has failed, after a second. */
export async function shortenLeases(system: System, deliveries: Release[]): Promise<void> {
  await system.raw(
    `update deliveries d set lease_until = least(d.lease_until, now() + interval '1 second')
     from jsonb_to_recordset(?) as r(organization_id uuid, id uuid, releases integer)
     where d.organization_id = r.organization_id and d.id = r.id and d.releases = r.releases and d.status = 'queued'`,
    [
      JSON.stringify(
        deliveries.map(({ organization_id, id, releases }) => ({ organization_id, id, releases })),
      ),
    ],
  )
}

/** A delivery that was changed while its workflow runs. */
export interface ClaimedChange extends Release {
  /** The number of changes. */
  changes: number
}

/** Leases up to `limit` deliveries that were cancelled, held or made due, and whose workflow is not signalled yet. */
export async function claimDeliveryChanges(system: System, limit: number): Promise<ClaimedChange[]> {
  const { rows } = await system.raw<{ rows: ClaimedChange[] }>(
    `update deliveries set lease_until = now() + interval '10 seconds'
     where (organization_id, id) in (
       select organization_id, id from deliveries
       where changes > changes_told and status <> 'queued' and (lease_until is null or lease_until < now())
       order by id limit ? for update skip locked)
     returning organization_id, id, releases, changes`,
    [limit],
  )
  return rows
}

/** Records that the workflows were signalled for these changes; a later change needs another signal. */
export async function markChangesSignalled(system: System, deliveries: ClaimedChange[]): Promise<void> {
  await system.raw(
    `update deliveries d set changes_told = r.changes,
       lease_until = case when d.status = 'queued' then d.lease_until end
     from jsonb_to_recordset(?) as r(organization_id uuid, id uuid, changes integer)
     where d.organization_id = r.organization_id and d.id = r.id and d.changes_told < r.changes`,
    [JSON.stringify(deliveries)],
  )
}

/**
 * Returns up to `limit` deliveries in progress that were not checked for `idle` (a PostgreSQL interval), nor since
 * `before`, the longest unchecked first, and marks them as checked.
 */
export async function claimIdleDeliveries(
  system: System,
  idle: string,
  before: Date,
  limit: number,
): Promise<Release[]> {
  const { rows } = await system.raw<{ rows: Release[] }>(
    // By ctid, because a semi-join on the key may be planned as a scan of the whole table.
    `update deliveries set checked_at = now() where ctid = any(array(
       select ctid from deliveries
       where status = 'delivering' and coalesce(checked_at, started_at) <
         least(now() - cast(? as interval), cast(? as timestamptz))
       order by coalesce(checked_at, started_at) limit ? for update skip locked))
     returning organization_id, id, releases`,
    [idle, before, limit],
  )
  return rows
}

/** Those of `releases` that are being delivered. */
export async function listOpenDeliveries(system: System, releases: Release[]): Promise<Release[]> {
  const { rows } = await system.raw<{ rows: Release[] }>(
    `select d.organization_id, d.id, d.releases
     from jsonb_to_recordset(?) as s(organization_id uuid, id uuid, releases integer)
     join deliveries d on d.organization_id = s.organization_id and d.id = s.id and d.releases = s.releases
     where d.status = 'delivering'`,
    [JSON.stringify(releases)],
  )
  return rows
}

/** Has the workflow read a delivery again whose attempt no worker reports. @returns whether there is such an attempt. */
export async function signalInterrupted(tx: Tenant, { id, releases }: Release): Promise<boolean> {
  const count = await tx
    .trx('deliveries')
    .where({ organization_id: tx.organizationId, id, releases, status: 'delivering', next_attempt_at: null })
    .where('slot_until', '<', tx.trx.fn.now())
    .increment('changes', 1)
  if (count > 0) tx.wake('agx_delivery_changes')
  return count > 0
}

/**
 * Active endpoints with held deliveries: a race between matching an event and activating its endpoint.
 */
export async function listStrandedEndpoints(
  system: System,
): Promise<{ organization_id: string; id: string }[]> {
  const { rows } = await system.raw<{ rows: { organization_id: string; id: string }[] }>(
    `select w.organization_id, w.id from outgoing_webhooks w
     where w.status = 'Active' and ${holdsFor('endpoint')}`,
  )
  return rows
}
