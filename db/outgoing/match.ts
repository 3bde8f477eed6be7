import { notify } from '../postgres/notify.ts'
import type { System } from '../postgres/tenancy.ts'
import { transaction } from '../postgres/transaction.ts'
import { insertDeliveries, type NewDelivery } from './moves/queue.ts'
import { chargeDeliveries } from './quota.ts'

/** Events per transaction. */
export const MATCHED_AT_ONCE = 500

/**
 * Creates the deliveries of the next events in the outbox, in one transaction: one for each endpoint that subscribes to
 * the event. A delivery is held if its endpoint is Inactive or the quota is used up.
 * @returns the number of matched events.
 */
export async function matchEvents(system: System): Promise<number> {
  const { events, queued } = await transaction(system, undefined, async ({ trx }) => {
    // One row per event and subscribed endpoint; a single row without an endpoint if none subscribes.
    const { rows } = await trx.raw<{ rows: MatchedRow[] }>(
      `with matched as (
         update events e set matched_at = now() from (
           select organization_id, id from events where matched_at is null order by id limit ?
           for update skip locked) o
         where e.organization_id = o.organization_id and e.id = o.id returning e.organization_id, e.id, e.name)
       select m.organization_id, m.id as event_id, w.id as webhook_id, w.status = 'Active' as active
       from matched m left join outgoing_webhooks w on w.organization_id = m.organization_id
         and w.events && array[m.name, split_part(m.name, '.', 1) || '.*', '*']
       order by m.id`,
      [MATCHED_AT_ONCE],
    )
    const events = new Set(rows.map(({ event_id }) => event_id)).size
    const subscribed = rows.filter((row): row is SubscribedRow => row.webhook_id !== null)
    const deliveries: NewDelivery[] = []
    for (const [organizationId, rows] of byOrganization(subscribed)) {
      let granted = await chargeDeliveries(trx, organizationId, rows.filter((row) => row.active).length)
      for (const row of rows) deliveries.push({ ...row, charged: row.active && granted-- > 0 })
    }
    return { events, queued: await insertDeliveries(trx, deliveries) }
  })
  // After the commit: NOTIFY locks the whole database until its transaction ends.
  if (queued > 0) await notify(system, 'agx_deliveries')
  return events
}

interface MatchedRow {
  organization_id: string
  event_id: string
  webhook_id: string | null
}

interface SubscribedRow extends MatchedRow {
  webhook_id: string
  active: boolean
}

/** Sorted, so that all processes lock the quota rows in the same order. */
function byOrganization(rows: SubscribedRow[]): [string, SubscribedRow[]][] {
  const groups = new Map<string, SubscribedRow[]>()
  for (const row of rows) {
    const group = groups.get(row.organization_id)
    if (group) group.push(row)
    else groups.set(row.organization_id, [row])
  }
  return [...groups].sort(([a], [b]) => (a < b ? -1 : 1))
}
