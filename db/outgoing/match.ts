import { notify } from '../postgres/notify.ts'
import type { System } from '../postgres/tenancy.ts'
import { transaction } from '../postgres/transaction.ts'
import { insertDeliveries, type NewDelivery } from './moves/queue.ts'
import { chargeDeliveries } from './quota.ts'

/** Events of one transaction. */
export const MATCHED_AT_ONCE = 500

/**
 * Makes deliveries of the next events in the outbox, in one transaction: a delivery for each endpoint that selects an
 * event, and the event marked as matched. A delivery is held where its endpoint is Inactive or the quota is used up.
 * @returns how many events were matched.
 */
export async function matchEvents(system: System): Promise<number> {
  const { events, queued } = await transaction(system, undefined, async ({ trx }) => {
    // One row for each event and endpoint that selects it; one without an endpoint where none does.
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
    const wanted = rows.filter((row): row is WantedRow => row.webhook_id !== null)
    const deliveries: NewDelivery[] = []
    for (const [organizationId, rows] of byOrganization(wanted)) {
      let granted = await chargeDeliveries(trx, organizationId, rows.filter((row) => row.active).length)
      for (const row of rows) deliveries.push({ ...row, charged: row.active && granted-- > 0 })
    }
    return { events, queued: await insertDeliveries(trx, deliveries) }
  })
  // After the commit: NOTIFY takes a lock on the whole database until its transaction ends.
  if (queued > 0) await notify(system, 'agx_deliveries')
  return events
}

interface MatchedRow {
  organization_id: string
  event_id: string
  webhook_id: string | null
}

interface WantedRow extends MatchedRow {
  webhook_id: string
  active: boolean
}

/** In the same order in every process: the quotas' rows are locked one after the other. */
function byOrganization(rows: WantedRow[]): [string, WantedRow[]][] {
  const groups = new Map<string, WantedRow[]>()
  for (const row of rows) {
    const group = groups.get(row.organization_id)
    if (group) group.push(row)
    else groups.set(row.organization_id, [row])
  }
  return [...groups].sort(([a], [b]) => (a < b ? -1 : 1))
}
