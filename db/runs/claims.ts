import { ENGINE } from '../../workflows/nodes/engine.ts'
import type { System } from '../postgres/tenancy.ts'
import { skipScan } from '../queue/lanes.ts'
import { claimAlone } from '../queue/queue-lock.ts'
import { ACTIVE_RUNS, activeRuns, ORGANIZATION_LIMIT, runningInLane } from './admission.ts'
import type { ClaimedRun } from './queue.ts'
import { isLive, LIVE_SINCE, type RelayCapacity } from './relays.ts'

/**
 * The claims of relays on queued runs, in a small table of their own: a claim in the row of the run would rewrite its
 * entry in every index. A claim holds a slot as long as its relay lives, its start has not failed, and the run is still
 * queued. It is deleted when the start is recorded; until then it also says that Temporal may know the run. It is not one
 * of `defineQueue`, because limits of workers, organizations and workflows decide together which runs have a slot.
 */

/** An organization without a run in its first segment may always start one, so that its own ends wake the relay. */
const RESERVED_STARTS = 1
/** An organization may always have so many active runs: others, whose calls hang, cannot occupy all workers. */
const RESERVED_ACTIVE = 10

/**
 * Claims up to `limit` queued runs that have a free slot, of workers, organization and workflow. Those of the
 * organization with the fewest runs in progress come first; within an organization, those that a client may wait for.
 */
export const claimRuns = (system: System, relay: RelayCapacity, limit: number): Promise<ClaimedRun[]> =>
  claimAlone(system, 'runs', CLAIM, {
    limit,
    engine: ENGINE,
    relay: relay.id,
    starts: relay.starts,
    active: relay.active,
  })

/** SQL: whether a queued run may start; others are held, see `holds/`. The condition of a partial index. */
const CLAIMABLE = `status = 'queued' and hold is null`

/** A lane is a workflow of an organization. */
const CLAIM = `
  with recursive ${skipScan('lanes', 'runs', 'lane', CLAIMABLE)}, claims as materialized (
    -- a claim whose run has left the queue waits for its deletion
    select c.run_id, c.organization_id, r.lane, c.relay_id,
      c.retry_at is null and (c.relay_id = :relay or ${isLive('c.relay_id')}) as held,
      coalesce(c.retry_at > now(), c.relay_id = :relay or ${isLive('c.relay_id')}) as barred
    from run_claims c cross join lateral (
      select r.lane from runs r where r.organization_id = c.organization_id and r.id = c.run_id
        and r.status || '' = 'queued' limit 1) r
  ), heads as materialized (
    select q.*, row_number() over (partition by q.organization_id, q.lane order by q.priority, q.id) as place
    from lanes l cross join lateral (
      select r.organization_id, r.lane, r.priority, r.id, r.concurrency from runs r
      where r.organization_id = l.organization_id and r.lane = l.lane and ${CLAIMABLE}
        and r.id not in (select run_id from claims where barred)
        -- others are left to newer workers
        and r.engine <= :engine
      order by r.priority, r.id limit :limit) q
  ), busy as materialized (
    select l.organization_id, l.lane, ${runningInLane('l', 'l.most')} + (
      select count(*) from claims c
      where c.organization_id = l.organization_id and c.lane = l.lane and c.held) as count
    from (
      select organization_id, lane, max(concurrency) as most from heads
      where concurrency is not null group by organization_id, lane) l
  ), organizations_busy as materialized (
    select o.id, o.name, ${ORGANIZATION_LIMIT} as most, c.held, ${ACTIVE_RUNS} + c.held as count
    from organizations o cross join lateral (
      select count(*) as held from claims c where c.organization_id = o.id and c.held) c
    where o.id in (select organization_id from lanes)
  ), capacity as materialized (
    select coalesce(sum(v.active), 0) + cast(:active as integer) as active from relays v
    where v.id <> :relay and v.seen_at > ${LIVE_SINCE}
  ), workers as materialized (
    select cast(:starts as integer) - (select count(*) from claims where held and relay_id = :relay) as starts,
      k.active - (select count(*) from claims where held) -
        ${activeRuns('k.active')} as active
    from capacity k
  ), candidates as (
    select h.organization_id, h.id, o.name, o.most, o.held, o.count,
      row_number() over (partition by h.organization_id order by h.priority, h.id) as turn
    from heads h join organizations_busy o on o.id = h.organization_id
      left join busy b on b.organization_id = h.organization_id and b.lane = h.lane
    where h.concurrency is null or b.count + h.place <= h.concurrency
  ), ordered as (
    select c.*, row_number() over (order by c.count + c.turn, c.id) as position from candidates c
    where c.count + c.turn <= c.most
  ), chosen as materialized (
    select o.organization_id, o.id, o.name from ordered o cross join workers w
    where (o.position <= w.starts or o.held + o.turn <= ${RESERVED_STARTS})
      and (o.position <= w.active or o.count + o.turn <= ${RESERVED_ACTIVE})
    order by o.position limit :limit
  ), claimed as materialized (
    select r.*, c.name as organization_name from chosen c join runs r
      on r.organization_id = c.organization_id and r.id = c.id
    -- an expression, so that the planner uses the primary key instead of a full scan of the queue's index per row
    where r.status || '' = 'queued'
    -- against a cancellation at the same time
    for no key update of r skip locked
  ), saved as (
    insert into run_claims (organization_id, run_id, relay_id) select organization_id, id, cast(:relay as uuid) from claimed
    on conflict (organization_id, run_id) do update
      set relay_id = excluded.relay_id, attempts = run_claims.attempts + 1, claimed_at = now(), retry_at = null
  )
  select r.organization_id, r.id, r.kind, r.workflow_id, r.workflow_name, r.workflow_version,
    case when r.kind = 'node_test' then (select r.node ->> 'pool' from organizations o
      where o.id = r.organization_id and r.node ->> 'pool' = any (o.pools)) end as pool,
    r.trigger ->> 'type' as trigger_type, r.record_id, r.expected_by, r.starts_with, r.organization_name, r.resumes, r.temporal_run_id,
    r.history_length,
    case when r.resumes > 0 then (select max(s.segment) + 1 from run_segments s
      where s.organization_id = r.organization_id and s.run_id = r.id and s.temporal_run_id = r.temporal_run_id
    ) end as segment
  from claimed r`

/** Seconds after the failed start number `attempts`. */
const BACKOFF = 'least(5, 0.25 * power(2, least(attempts, 5)))'

/** Lets any relay claim runs again whose start has failed, after a short backoff. */
export async function releaseRuns(
  system: System,
  relay: Pick<RelayCapacity, 'id'>,
  runs: Pick<ClaimedRun, 'organization_id' | 'id'>[],
): Promise<void> {
  await system.raw(
    `update run_claims c set retry_at = now() + make_interval(secs => ${BACKOFF})
     from jsonb_to_recordset(?) as s(organization_id uuid, id uuid)
     where c.organization_id = s.organization_id and c.run_id = s.id and c.relay_id = ?`,
    [JSON.stringify(runs.map(({ organization_id, id }) => ({ organization_id, id }))), relay.id],
  )
}

/**
 * Repairs the claims that a relay does not know (the answer of a claim or of a release was lost), and deletes those that
 * dead relays left on runs that have been started. `known`: the ids of the runs that the relay is starting.
 */
export async function repairClaims(
  system: System,
  relay: Pick<RelayCapacity, 'id'>,
  known: string[],
): Promise<void> {
  await system.raw(
    `with stale as materialized (
       select c.organization_id, c.run_id, c.relay_id, c.retry_at, (
         select r.status from runs r where r.organization_id = c.organization_id and r.id = c.run_id) as status
       from run_claims c
       where c.claimed_at < now() - interval '5 seconds'
         and case when c.relay_id = :relay then c.run_id <> all(cast(:known as uuid[])) else not ${isLive('c.relay_id')} end
     ), started as (
       delete from run_claims c using stale s
       where c.organization_id = s.organization_id and c.run_id = s.run_id and c.relay_id = s.relay_id
         and s.status <> 'queued'
     )
     update run_claims c set retry_at = now() from stale s
     where c.organization_id = s.organization_id and c.run_id = s.run_id and c.relay_id = s.relay_id
       and s.status = 'queued' and s.relay_id = :relay and s.retry_at is null`,
    { relay: relay.id, known },
  )
}
