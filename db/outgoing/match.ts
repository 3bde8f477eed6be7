import type { Knex } from 'knex'
import { insertDeliveries, type NewDelivery } from './moves/queue.ts'
import { chargeDeliveries } from './quota.ts'

/** An event and an endpoint that subscribes to it. */
export interface Subscription {
  organization_id: string
  event_id: string
  subject_id: string | null
  webhook_id: string
  active: boolean
}

/** SQL: whether the endpoint `w` subscribes to events of the name of `e`. */
export const subscribes = (w: string, e: string): string =>
  `${w}.events && array[${e}.name, split_part(${e}.name, '.', 1) || '.*', '*']`

/**
 * Creates a delivery for each subscription. It is held if its endpoint is Inactive or the quota is used up.
 * @returns the number of queued deliveries.
 */
export async function createDeliveries(trx: Knex, subscriptions: Subscription[]): Promise<number> {
  const deliveries: NewDelivery[] = []
  for (const [organizationId, rows] of byOrganization(subscriptions)) {
    let granted = await chargeDeliveries(trx, organizationId, rows.filter((row) => row.active).length)
    for (const { event_id, subject_id, webhook_id, active } of rows)
      deliveries.push({
        organization_id: organizationId,
        event_id,
        subject_id,
        webhook_id,
        active,
        charged: active && granted-- > 0,
      })
  }
  return insertDeliveries(trx, deliveries)
}

/** Sorted, so that all processes lock the quota rows in the same order. */
function byOrganization(rows: Subscription[]): [string, Subscription[]][] {
  const groups = new Map<string, Subscription[]>()
  for (const row of rows) {
    const group = groups.get(row.organization_id)
    if (group) group.push(row)
    else groups.set(row.organization_id, [row])
  }
  return [...groups].sort(([a], [b]) => (a < b ? -1 : 1))
}
