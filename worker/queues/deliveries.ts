import type { Client } from '@temporalio/client'
import type { Knex } from 'knex'
import type { Logger } from '../../db/log.ts'
import { DUE, HELD } from '../../db/outgoing/slots.ts'
import { claimAlone } from '../../db/postgres/queue-lock.ts'
import type { deliver } from '../../workflows/deliver.ts'
import { summaryOf } from '../../workflows/summary.ts'
import type { Queue } from '../relay.ts'
import { searchAttributes } from '../search-attributes.ts'
import { type StartWorkflow, workflowStarter } from './start-workflow.ts'

const LEASE_SECONDS = 30

/** A delivery that was claimed. */
export interface DeliveryRow {
  organization_id: string
  id: string
  webhook_id: string
  webhook_name: string
  event_id: string
  event_name: string
  releases: number
  failing: boolean
}

/** Each release of a delivery that was held is a workflow of its own, for an id is used once. */
export const deliveryWorkflowId = (row: { id: string; releases: number }) =>
  row.releases === 0 ? `delivery:${row.id}` : `delivery:${row.id}:${row.releases}`

/** Deliveries of events to endpoints. `taskQueue` is their own, so that slow receivers hold no run up. */
export function deliveriesQueue({ taskQueue, log }: { taskQueue: string; log: Logger }): Queue<DeliveryRow> {
  const startWorkflow = workflowStarter(taskQueue, log)
  return {
    name: 'deliveries',
    channel: 'agx_deliveries',
    claim,
    start: (client, row) => startDelivery(startWorkflow, client, row),
    async started(db, rows) {
      // A row held and released since its start is queued again, for a workflow that nobody has started yet.
      // One that is locked is in its first attempt, which says the same: nothing waits for it, nor it for others.
      await db.raw(
        `update deliveries d set status = 'delivering', started_at = now(), lease_until = null
         from (
           select d.organization_id, d.id
           from jsonb_to_recordset(?) as s(organization_id uuid, id uuid, releases integer)
           join deliveries d on d.organization_id = s.organization_id and d.id = s.id and d.releases = s.releases
           where d.status = 'queued' for update of d skip locked) s
         where d.organization_id = s.organization_id and d.id = s.id`,
        [
          JSON.stringify(
            rows.map(({ organization_id, id, releases }) => ({ organization_id, id, releases })),
          ),
        ],
      )
    },
    async refused(db, row, reason) {
      await db
        .system('deliveries')
        .where({ organization_id: row.organization_id, id: row.id, releases: row.releases, status: 'queued' })
        .update({ status: 'failed', error: reason, ended_at: db.system.fn.now(), lease_until: null })
    },
  }
}

/**
 * Half of an endpoint's slots, of one slot every other time, are left to retries that are due, or new events would
 * take each one first. Organizations take turns. The lanes (endpoints) with something queued are found by skipping through the index: what
 * waits costs nothing.
 */
const claim = (db: Knex, limit: number): Promise<DeliveryRow[]> =>
  claimAlone(db, 'deliveries', CLAIM, { limit, lease: LEASE_SECONDS })

const CLAIM = `
  with recursive lanes as (
    (select organization_id, webhook_id from deliveries where status = 'queued'
     order by organization_id, webhook_id limit 1)
    union all
    select next.* from lanes cross join lateral (
      select d.organization_id, d.webhook_id from deliveries d
      where d.status = 'queued' and (d.organization_id, d.webhook_id) > (lanes.organization_id, lanes.webhook_id)
      order by d.organization_id, d.webhook_id limit 1) next
  ), endpoints as materialized (
    select w.organization_id, w.id, w.name, w.status, w.failing_since is not null as failing,
      (w.concurrency - ${HELD} - least(${DUE}, floor(w.concurrency / 2.0 + random())))::integer as free
    from lanes l join outgoing_webhooks w on w.organization_id = l.organization_id and w.id = l.webhook_id
  ), candidates as (
    select q.organization_id, q.id, w.name, w.failing,
      row_number() over (partition by q.organization_id order by q.id) as turn
    from endpoints w cross join lateral (
      select d.organization_id, d.id from deliveries d
      where d.organization_id = w.organization_id and d.webhook_id = w.id and d.status = 'queued'
        and (w.status = 'Active' or d.test)
        and (d.lease_until is null or d.lease_until < now())
      order by d.id limit greatest(0, least(w.free, :limit))) q
  ), chosen as materialized (select * from candidates order by turn, id limit :limit)
  update deliveries d set lease_until = now() + make_interval(secs => :lease)
  from chosen c, events e
  where d.organization_id = c.organization_id and d.id = c.id
    -- not as the queue's index has it, which would be read whole for each row, while this is by primary key
    and d.status || '' = 'queued'
    and e.organization_id = d.organization_id and e.id = d.event_id
  returning d.organization_id, d.id, d.webhook_id, c.name as webhook_name, d.event_id, d.releases,
    c.failing, e.name as event_name`

function startDelivery(startWorkflow: StartWorkflow, client: Client, row: DeliveryRow): Promise<void> {
  const { organization_id, id, event_id } = row
  const summary = summaryOf(`${row.event_name} to ${row.webhook_name}`)
  return startWorkflow<typeof deliver>(client, {
    workflow: 'deliver',
    workflowId: deliveryWorkflowId(row),
    organizationId: organization_id,
    summary,
    memo: { delivery_id: id, event_id },
    attributes: [{ key: searchAttributes.endpoint, value: row.webhook_id }],
    taskTimeout: '30 seconds',
    args: [{ organization_id, delivery_id: id, summary, release: row.releases, failing: row.failing }],
  })
}
