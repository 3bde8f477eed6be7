import type { System, Tenant } from '../postgres/tenancy.ts'
import { queuedLanes, skipScan } from '../queue/lanes.ts'
import { defineQueue } from '../queue/queue.ts'
import { claimAlone } from '../queue/queue-lock.ts'
import { firstIdAt } from '../retention/purge.ts'
import { isLive } from '../runs/relays.ts'
import { holdsFor } from './moves/holds.ts'
import type { Release } from './moves/queue.ts'
import { LEFT_OF_RATE } from './rate.ts'
import { START_END } from './slot-lease.ts'
import { ATTEMPTS, DUE_RETRIES, IS_QUEUED, leasedSlots, WAITS_FOR_SLOT } from './slots.ts'

/**
 * Queries of the relay and the sweep on deliveries; `moves/` has the status changes. The claim of deliveries is not one
 * of `defineQueue`: it gives out slots of endpoints and organizations, also to retries, which are no longer queued.
 */

/** The claim of a dead relay occupies a slot for so long. */
const LEASE_SECONDS = 10

/**
 * SQL: an endpoint is failing when all its attempts have failed for this long. An endpoint that fails only now and then
 * keeps its first attempts in the workflow task: as an activity, an attempt takes twice the CPU time.
 */
const FAILING = "interval '10 seconds'"

/** A claimed delivery. */
export interface ClaimedDelivery extends Release {
  /** It was given a slot for a due retry: its workflow exists, and must be signalled. */
  retry: boolean
  webhook_id: string
  webhook_name: string
  event_id: string
  event_name: string
  /** Whether all attempts of the endpoint have failed for a while. */
  failing: boolean
}

/**
 * Gives slots to up to `limit` deliveries: leases those that are queued and whose endpoint has a free slot, and makes
 * retries that wait for a slot attempts that are about to begin. The organization with the fewest attempts in progress
 * comes first, and of its endpoints the one with the fewest: an event of an idle endpoint does not wait for the burst of
 * another. New deliveries and due retries of an endpoint have half of its slots each (every other claim of a single
 * slot): neither starves the other. A queued delivery of a dead relay, which may have started its workflow, gets a new
 * release.
 */
export const claimDeliveries = (system: System, relayId: string, limit: number): Promise<ClaimedDelivery[]> =>
  claimAlone(system, 'deliveries', CLAIM, { relay: relayId, limit, lease: LEASE_SECONDS })

/**
 * SQL: whether the queued delivery `d` must wait for an earlier one about the same record. Waiting for a retry, or held,
 * counts: otherwise the receiver would get the events in another order.
 */
const FOLLOWS = `(d.subject_id is not null and not d.test and exists (
  select from deliveries earlier
  where earlier.organization_id = d.organization_id and earlier.webhook_id = d.webhook_id
    and earlier.subject_id = d.subject_id and earlier.id < d.id and not earlier.test
    and earlier.status in ('held', 'queued', 'delivering')))`

/** SQL: whether the delivery `d` of the endpoint `w` waits for nothing but its turn. */
const CLAIMABLE = `d.organization_id = w.organization_id and d.webhook_id = w.id and ${IS_QUEUED}
  and w.status = 'Active' and not d.test`
/** SQL: whether the delivery `d` is a test that a user waits for: it overtakes, also where the endpoint backs off. */
const IS_TEST = `d.organization_id = w.organization_id and d.webhook_id = w.id and ${IS_QUEUED} and d.test`
const READ = 'd.ctid, d.organization_id, d.webhook_id, d.id, d.subject_id, d.test'

/**
 * Queued deliveries of an ordered endpoint that a claim reads, the oldest, and again from a random one in a longer queue.
 * Most may have to wait: reading all of 100,000 took 500 ms, in which nobody got a delivery.
 */
const ORDERED_READ = 500

/** SQL: a random id in the queue of the ordered endpoint `w`; null in a short queue. */
const ORDERED_START = `(
  select ${firstIdAt(`first.created_at + random() * (now() - first.created_at)`)} from deliveries first
  where first.organization_id = w.organization_id and first.webhook_id = w.id and first.status = 'queued'
    and exists (
      select from deliveries d where d.organization_id = w.organization_id and d.webhook_id = w.id
        and d.status = 'queued' order by d.id offset ${ORDERED_READ} limit 1)
  order by first.id limit 1)`

/** SQL: the slots of the endpoint `w` that new deliveries may take while retries are due; the others are for those. */
const OF_NEW = `(w.concurrency - least(${DUE_RETRIES}, h.half))`
/** SQL: the slots that retries may take while new deliveries are queued. An ordered endpoint's may all wait for them. */
const OF_RETRIES = `(w.concurrency - case when w.ordered then 0 else least(w.concurrency - h.half, (
  select count(*) from (select from deliveries d where ${CLAIMABLE} order by d.id limit w.concurrency) queued)) end)`

const CLAIM = `
  with recursive ${queuedLanes('deliveries', 'webhook_id')},
  ${skipScan('waiting', 'deliveries', 'webhook_id', "status = 'delivering' and slot_wanted_at is not null")},
  held as materialized (
    select organization_id, webhook_id, count(*)::integer as count,
      (count(*) filter (where retry))::integer as retries
    from ${leasedSlots()} slot group by 1, 2
  ), endpoints as materialized (
    select w.organization_id, w.id, w.name, w.status, w.ordered, w.concurrency,
      coalesce(w.failing_since < now() - ${FAILING}, false) as failing,
      h.own, h.organization, h.total, random() as lot, w.concurrency - h.own as free,
      least(${OF_NEW} - (h.own - h.retries),
        ${ATTEMPTS.all} - h.total - h.organization - h.own,
        case when w.backoff_until > now() then 0 when w.backoff_until is not null then 1 - h.own end,
        ${LEFT_OF_RATE})::integer as free_new,
      case when l.waiting then ${OF_RETRIES} - h.retries else 0 end as free_retries
    from (
      select organization_id, webhook_id, bool_or(waits) as waiting from (
        select *, false as waits from lanes union all select *, true from waiting) lane group by 1, 2) l
    join outgoing_webhooks w on w.organization_id = l.organization_id and w.id = l.webhook_id
    cross join lateral (
      select coalesce(sum(count), 0)::integer as total,
        coalesce(sum(count) filter (where held.organization_id = w.organization_id), 0)::integer as organization,
        coalesce(sum(count) filter (where held.webhook_id = w.id), 0)::integer as own,
        coalesce(sum(retries) filter (where held.webhook_id = w.id), 0)::integer as retries,
        floor(w.concurrency / 2.0 + random())::integer as half
      from held) h
  ), candidates as (
    select q.ctid, q.organization_id, q.id, q.retry, w.name, w.failing, w.organization, w.total, w.lot, w.concurrency,
      w.own + row_number() over (
        partition by q.organization_id, w.id order by q.retry desc, q.slot_wanted_at, q.id) as turn
    from endpoints w cross join lateral (
      (select d.ctid, d.organization_id, d.id, true as retry, d.slot_wanted_at from deliveries d
       where d.organization_id = w.organization_id and d.webhook_id = w.id and ${WAITS_FOR_SLOT}
       order by d.slot_wanted_at limit greatest(0, least(w.free, w.free_retries, :limit)))
      union all
      (select d.ctid, d.organization_id, d.id, false, null from deliveries d where ${IS_TEST}
       order by d.id limit greatest(0, least(w.free, :limit)))
      union all
      (select d.ctid, d.organization_id, d.id, false, null from (
        (select ${READ} from deliveries d where ${CLAIMABLE}
         order by d.id
         limit case when w.ordered then ${ORDERED_READ} else greatest(0, least(w.free, w.free_new, :limit)) end)
        union
        (select ${READ} from deliveries d where ${CLAIMABLE} and w.ordered and d.id > ${ORDERED_START}
         order by d.id limit ${ORDERED_READ})) d
      where not w.ordered or not ${FOLLOWS}
      order by d.id limit greatest(0, least(w.free, w.free_new, :limit)))) q
  ), placed as (
    -- by lot, because by age the endpoints that have a backlog would always come before one that has none
    select c.*, row_number() over (partition by c.organization_id order by c.turn, c.lot, c.id) as place
    from candidates c where c.turn <= c.concurrency
  ), ordered as (
    select p.*, row_number() over (order by p.organization + p.place, p.lot, p.id) as position from placed p
  ), chosen as materialized (
    select * from ordered
    where turn + organization + place + case when retry then 0 else total + position end
      <= case when retry then ${ATTEMPTS.organization} else ${ATTEMPTS.all} end
    order by position limit :limit
  )
  update deliveries d set
    relay_id = case when c.retry then d.relay_id else cast(:relay as uuid) end,
    releases = d.releases + case when c.retry or d.relay_id is null or d.relay_id = :relay
      or ${isLive('d.relay_id')} then 0 else 1 end,
    lease_until = case when c.retry then d.lease_until else now() + make_interval(secs => :lease) end,
    next_attempt_at = case when c.retry then null else d.next_attempt_at end,
    slot_until = case when c.retry then ${START_END} else d.slot_until end
  from chosen c
  -- by ctid, and the event in a subquery: a plan that was made for small tables joined all events of the organization
  where d.ctid = c.ctid
    -- an expression, so that the planner does not scan the index of the queue for each row
    and d.status || '' = case when c.retry then 'delivering' else 'queued' end
    and (not c.retry or (${WAITS_FOR_SLOT}))
  returning d.organization_id, d.id, d.webhook_id, c.name as webhook_name, d.event_id, d.releases, c.failing, c.retry,
    (select e.name from events e where e.organization_id = d.organization_id and e.id = d.event_id) as event_name`

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

/** Deliveries that were cancelled, held or made due, and whose workflow is not signalled yet. */
export const deliveryChanges = defineQueue<ClaimedChange>({
  table: 'deliveries',
  key: ['organization_id', 'id'],
  waits: "changes > changes_told and status <> 'queued'",
  order: 'id',
  returning: ['releases', 'changes'],
  lease: 'changes_lease_until',
  // A later change needs another signal.
  done: { sets: 'changes_told = s.changes', if: 'r.changes_told < s.changes' },
})

/**
 * Returns up to `limit` deliveries in progress that were not checked for `idle` (a PostgreSQL interval), nor since
 * `before`, the longest unchecked first, and marks them as checked. It is not one of `defineQueue`: no work is queued and
 * no lease ends. The rows of a page are those that the sweep, which one worker runs at a time, has not come to yet.
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

/** The deliveries among `releases` that are being delivered. */
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

/**
 * Has the workflow read a delivery again whose attempt no worker reports, or whose retry is due, and neither begins nor
 * waits for a slot. @returns whether there is such an attempt.
 */
export async function signalInterrupted(tx: Tenant, { id, releases }: Release): Promise<boolean> {
  const count = await tx
    .trx('deliveries')
    .where({ organization_id: tx.organizationId, id, releases, status: 'delivering', slot_wanted_at: null })
    .whereNull('held_for')
    .whereRaw("coalesce(next_attempt_at + interval '1 minute', slot_until) < now()")
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
