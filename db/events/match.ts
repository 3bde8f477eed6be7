import type { Knex } from 'knex'
import { createDeliveries, type Subscription } from '../outgoing/match.ts'
import { selectByCondition } from '../outgoing/when.ts'
import { notify } from '../postgres/notify.ts'
import { takesLock } from '../postgres/queue-lock.ts'
import type { System } from '../postgres/tenancy.ts'
import { transaction } from '../postgres/transaction.ts'
import { answerEventWaits, isAwaited } from '../runs/event-waits.ts'
import { createTriggeredRuns } from '../runs/triggered.ts'
import { type FoundProblem, recordProblems } from '../workflows/triggers.ts'

/** Events per transaction. */
export const MATCHED_AT_ONCE = 500

export interface Matched {
  /** The number of matched events. */
  events: number
  /** Whether the outbox may have more. */
  more: boolean
  /** Whether the batch was too large for its time: the next one should be smaller. */
  cut: boolean
  /** The last problem of each trigger that failed. */
  problems: FoundProblem[]
}

/**
 * Matches the next events of the outbox, in one transaction: creates a delivery for each endpoint that subscribes to an
 * event, and a run of each workflow that the event triggers, and answers the nodes that wait for the event. One process at a time, so that the runs of a record's events
 * are created in the order of the events. `limit`: the most events.
 */
export async function matchEvents(system: System, limit = MATCHED_AT_ONCE): Promise<Matched> {
  const { deliveries, runs, waits, ...matched } = await transaction(system, undefined, async ({ trx }) => {
    const rows = await takeEvents(trx, limit)
    const events = [...new Map(rows.map((row) => [row.event_id, row])).values()]
    const isSubscription = (row: Row): row is Row & Subscription => row.webhook_id !== null
    const { selected, since: unchecked } = await selectByCondition(trx, rows.filter(isSubscription))
    const isChecked = ({ event_id }: Row) => unchecked === undefined || event_id < unchecked
    const { since = unchecked, ...triggered } = await createTriggeredRuns(
      trx,
      events.filter((row) => row.triggers && isChecked(row)),
    )
    const { runs, problems } = triggered
    const isLeft = ({ event_id }: Row) => since !== undefined && event_id >= since
    const left = events.filter(isLeft)
    if (left.length > 0) await putBack(trx, left)
    const subscriptions = selected.filter((row) => !isLeft(row))
    const awaited = events.filter((row) => row.awaited && !isLeft(row))
    return {
      waits: await answerEventWaits(trx, awaited),
      events: events.length - left.length,
      more: left.length > 0 || events.length === limit,
      cut: left.length > 0,
      ...{ problems, runs, deliveries: await createDeliveries(trx, subscriptions) },
    }
  })
  // After the commit: NOTIFY locks the whole database until its transaction ends.
  await Promise.all([
    runs > 0 && notify(system, 'agx_runs'),
    waits.answered > 0 && notify(system, 'agx_waits'),
    waits.due && notify(system, 'agx_due_waits'),
    deliveries > 0 && notify(system, 'agx_deliveries'),
    matched.problems.length > 0 && recordProblems(system, matched.problems),
  ])
  return matched
}

/** An event and a subscribed endpoint; without an endpoint if none subscribes. */
interface Row {
  organization_id: string
  event_id: string
  subject_id: string | null
  /** Whether any workflow has a trigger for it. */
  triggers: boolean
  /** Whether any node waits for such an event. */
  awaited: boolean
  webhook_id: string | null
  active: boolean | null
  /** The condition of the endpoint. */
  when: string | null
}

/**
 * Marks the next events as matched, none while another process matches.
 * @returns them with the endpoints that subscribe, in the order of the events.
 */
async function takeEvents(trx: Knex, limit: number): Promise<Row[]> {
  const { rows } = await trx.raw<{ rows: Row[] }>(
    `with matched as (
       update events e set matched_at = now() from (
         select organization_id, id from events where matched_at is null and ${takesLock('events')}
         order by id limit ? for update skip locked) o
       where e.organization_id = o.organization_id and e.id = o.id returning e.organization_id, e.id, e.name, e.subject_id)
     select m.organization_id, m.id as event_id, m.subject_id, w.id as webhook_id, w."when", w.status = 'Active' as active,
       exists (select from workflow_triggers t where t.organization_id = m.organization_id and t.type = 'event'
         and t.events @> array[m.name]) as triggers,
       ${isAwaited('m')} as awaited
     from matched m left join outgoing_webhooks w on w.organization_id = m.organization_id
       and w.events && array[m.name, split_part(m.name, '.', 1) || '.*', '*']
     order by m.id`,
    [limit],
  )
  return rows
}

/** Leaves events in the outbox for the next batch. */
async function putBack(trx: Knex, events: Row[]): Promise<void> {
  await trx.raw(
    `update events e set matched_at = null
     from unnest(cast(? as uuid[]), cast(? as uuid[])) as o(organization_id, id)
     where e.organization_id = o.organization_id and e.id = o.id`,
    [events.map((row) => row.organization_id), events.map((row) => row.event_id)],
  )
}
