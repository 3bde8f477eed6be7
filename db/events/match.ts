import type { Knex } from 'knex'
import type { UnstartedCode } from '../model/runs/chain.ts'
import type { WorkEnd } from '../model/work-end.ts'
import { createDeliveries, type Subscription, subscribes } from '../outgoing/match.ts'
import { selectByCondition } from '../outgoing/when.ts'
import { notify } from '../postgres/notify.ts'
import { type System, Wakes } from '../postgres/tenancy.ts'
import { transaction } from '../postgres/transaction.ts'
import { takesLock } from '../queue/queue-lock.ts'
import { isListed, queueListChanges } from '../records/lists/changes.ts'
import { isCancelEvent, queueEventCancels } from '../runs/event-cancels.ts'
import { answerEventWaits, isAwaited } from '../runs/event-waits.ts'
import { QueuedRuns } from '../runs/queued-runs.ts'
import { createTriggeredRuns } from '../runs/triggered.ts'
import { type FoundProblem, recordProblems } from '../workflows/triggers.ts'
import { keysOf } from './by-key.ts'

/** Maximum number of events per transaction. */
export const MATCHED_AT_ONCE = 500

export interface Matched {
  /** The number of matched events. */
  events: number
  /** Whether the outbox may have more. */
  more: boolean
  /** Whether the batch exceeded its time limit: the next one should be smaller. */
  cut: boolean
  /** The codes of the errors of runs that were not started, one for each. */
  skipped: UnstartedCode[]
  /** The ends of runs that were recorded as failed or skipped instead of queued. */
  ended: WorkEnd[]
  /** The last problem of each trigger that failed. */
  problems: FoundProblem[]
}

/**
 * Matches the next events of the outbox, in one transaction: creates a delivery for each subscribed endpoint and a run
 * for each triggered workflow, answers the nodes that wait for the event, and queues its comparison with the runs that
 * it may cancel and with the lists that its record may enter or leave. Organizations are served round-robin. One process
 * at a time matches events: the transaction holds the lock of the queue, hence they need no lease. Those of an
 * organization are matched in the order of their ids, so that the runs of a record's events are created in that order: the
 * id of an event is made while its record is locked, whereas its transaction, and with it `created_at`, may have begun
 * before it waited for that lock. `limit`: the maximum number of events; `queued`: limits the queued runs.
 */
export async function matchEvents(
  system: System,
  limit = MATCHED_AT_ONCE,
  queued = new QueuedRuns(),
): Promise<Matched> {
  const wakes = new Wakes()
  const { deliveries, runs, waits, cancels, listed, ...matched } = await transaction(
    system,
    undefined,
    async ({ trx }) => {
      const rows = await takeEvents(trx, limit)
      const events = [...new Map(rows.map((row) => [row.event_id, row])).values()]
      const isSubscription = (row: Row): row is Row & Subscription => row.webhook_id !== null
      const { selected, since: unchecked } = await selectByCondition(trx, rows.filter(isSubscription))
      const places = new Map(events.map(({ event_id }, place) => [event_id, place]))
      const isBefore = ({ event_id }: Row, since: string | undefined) =>
        since === undefined || places.get(event_id)! < places.get(since)!
      const { since = unchecked, ...triggered } = await createTriggeredRuns(
        trx,
        events.filter((row) => row.triggers && isBefore(row, unchecked)),
        { queued, wakes },
      )
      const { runs, problems, skipped, ended } = triggered
      const isLeft = (row: Row) => !isBefore(row, since)
      const left = events.filter(isLeft)
      if (left.length > 0) await putBack(trx, left)
      const subscriptions = selected.filter((row) => !isLeft(row))
      const awaited = events.filter((row) => row.awaited && !isLeft(row))
      const cancelling = events.filter((row) => row.cancels && !isLeft(row))
      const changed = events.filter((row) => row.listed && !isLeft(row))
      return {
        listed: await queueListChanges(trx, changed),
        cancels: await queueEventCancels(trx, cancelling),
        waits: await answerEventWaits(trx, awaited),
        events: events.length - left.length,
        more: left.length > 0 || events.length === limit,
        cut: left.length > 0,
        problems,
        skipped,
        ended,
        runs,
        deliveries: await createDeliveries(trx, subscriptions),
      }
    },
  )
  // After the commit: NOTIFY holds a database-wide lock until its transaction ends.
  await Promise.all([
    ...[...wakes.all()].map(([channel]) => notify(system, channel)),
    runs > 0 && notify(system, 'agx_runs'),
    waits.answered > 0 && notify(system, 'agx_waits'),
    waits.due && notify(system, 'agx_due_waits'),
    listed > 0 && notify(system, 'agx_lists'),
    cancels > 0 && notify(system, 'agx_event_cancels'),
    deliveries > 0 && notify(system, 'agx_deliveries'),
    matched.problems.length > 0 && recordProblems(system, matched.problems),
  ])
  return matched
}

/** An event with a subscribed endpoint; without one if no endpoint subscribes. */
interface Row {
  organization_id: string
  event_id: string
  subject_id: string | null
  /** Whether the event triggers any workflow. */
  triggers: boolean
  /** Whether any node waits for the event. */
  awaited: boolean
  /** Whether some workflow names the event in `cancel_on`. */
  cancels: boolean
  /** Whether there are lists of the kind of its record. */
  listed: boolean
  webhook_id: string | null
  active: boolean | null
  /** The endpoint's condition. */
  when: string | null
}

/**
 * Marks the next events as matched; none while another process matches. Organizations are served round-robin: the
 * oldest event of each comes before the second of any, so that a flood of one organization does not delay the others.
 * @returns the events with their subscribed endpoints, in that order.
 */
async function takeEvents(trx: Knex, limit: number): Promise<Row[]> {
  const { rows } = await trx.raw<{ rows: Row[] }>(
    `with recursive organizations_waiting as (
       (select organization_id as id from events where matched_at is null and ${takesLock('events')}
        order by organization_id limit 1)
       union all
       select next.organization_id from organizations_waiting o cross join lateral (
         select e.organization_id from events e where e.matched_at is null and e.organization_id > o.id
         order by e.organization_id limit 1) next
     ), taken as materialized (
       select q.* from organizations_waiting o cross join lateral (
         select e.organization_id, e.id, row_number() over (order by e.id) as place from events e
         where e.organization_id = o.id and e.matched_at is null order by e.id limit :limit) q
       order by q.place, q.id limit :limit
     ), matched as (
       update events e set matched_at = now() from taken t
       -- again, because another process may have matched it since the snapshot of this statement
       where e.organization_id = t.organization_id and e.id = t.id and e.matched_at is null
       returning e.organization_id, e.id, e.name, e.subject_id, t.place)
     select m.organization_id, m.id as event_id, m.subject_id, w.id as webhook_id, w."when", w.status = 'Active' as active,
       exists (select from workflow_triggers t where t.organization_id = m.organization_id and t.type = 'event'
         and t.events @> array[m.name]) as triggers,
       ${isAwaited('m')} as awaited, ${isCancelEvent('m')} as cancels,
       ${isListed('m')} as listed
     from matched m left join outgoing_webhooks w on w.organization_id = m.organization_id
       and ${subscribes('w', 'm')}
     order by m.place, m.id`,
    { limit },
  )
  return rows
}

/** Leaves events in the outbox for the next batch. */
async function putBack(trx: Knex, events: Row[]): Promise<void> {
  await trx.raw(
    `update events e set matched_at = null
     from unnest(cast(:organizationIds as uuid[]), cast(:eventIds as uuid[])) as o(organization_id, id)
     where e.organization_id = o.organization_id and e.id = o.id`,
    keysOf(events),
  )
}
