import type { Knex } from 'knex'
import { v7 as uuidv7 } from 'uuid'
import { chargeDeliveries } from '../db/outgoing/quota.ts'
import { transaction } from '../db/postgres/transaction.ts'
import type { Queue } from './relay.ts'

const BATCH = 500

/**
 * The first stage of outgoing webhooks: events out of the outbox become deliveries. Nothing is started here, so the
 * queue never hands out a row; its claim is the whole work.
 */
export function eventsQueue(): Queue<never> {
  return {
    name: 'events',
    channel: 'agx_events',
    async claim(db) {
      while ((await matchEvents(db)) === BATCH);
      return []
    },
    start: async () => {},
    started: async () => {},
    refused: async () => {},
  }
}

/**
 * One transaction: a delivery for each endpoint that wants an event, and the event marked as matched. Where the
 * endpoint is off, or the month's quota is used up, the delivery is held. @returns how many events were matched.
 */
export async function matchEvents(db: Knex): Promise<number> {
  const { events, queued } = await transaction(db, undefined, async ({ trx }) => {
    // One row for each event and endpoint that wants it; one without an endpoint where nobody does.
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
      [BATCH],
    )
    const events = new Set(rows.map(({ event_id }) => event_id)).size
    const wanted = rows.filter((row): row is WantedRow => row.webhook_id !== null)
    const deliveries: ReturnType<typeof toDelivery>[] = []
    for (const [organizationId, rows] of byOrganization(wanted)) {
      let granted = await chargeDeliveries(trx, organizationId, rows.filter((row) => row.active).length)
      for (const row of rows) deliveries.push(toDelivery(row, row.active && granted-- > 0))
    }
    if (deliveries.length > 0)
      await trx('deliveries')
        .insert(deliveries)
        .onConflict(['organization_id', 'event_id', 'webhook_id', 'generation'])
        .ignore()
    return { events, queued: deliveries.filter(({ charged }) => charged).length }
  })
  // After the commit: NOTIFY inside it would lock the whole database until then.
  if (queued > 0) await db.raw("select pg_notify('agx_deliveries', '')")
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

/** In the same order in every process, for the quotas' rows are locked one after the other. */
function byOrganization(rows: WantedRow[]): [string, WantedRow[]][] {
  const groups = new Map<string, WantedRow[]>()
  for (const row of rows) {
    const group = groups.get(row.organization_id)
    if (group) group.push(row)
    else groups.set(row.organization_id, [row])
  }
  return [...groups].sort(([a], [b]) => (a < b ? -1 : 1))
}

const toDelivery = ({ active, ...row }: WantedRow, charged: boolean) => ({
  ...row,
  id: uuidv7(),
  status: charged ? ('queued' as const) : ('held' as const),
  held_for: charged ? null : active ? ('quota' as const) : ('endpoint' as const),
  charged,
})
