import { incomingMonth } from '../incoming/quota.ts'
import type { Tenant } from '../postgres/tenancy.ts'
import { usedOfWindow, windowAt } from './limits.ts'
import { limitOf, type Plan, type Subscription } from './plans.ts'

/** `limit`: null if unlimited. */
export interface Used {
  used: number
  limit: number | null
}

/** What an organization has used of its plan. */
export interface Usage {
  plan: Plan
  /** The calendar month (UTC) that counts. */
  month: { from: Date; to: Date }
  incoming: { webhooks: Used; requests: Used; per_minute: number | null }
  outgoing: { webhooks: Used }
}

export async function getUsage(tx: Tenant): Promise<Usage> {
  const { organizationId } = tx
  const subscription = await tx
    .trx('organizations')
    .where({ id: organizationId })
    .first<Subscription>('plan', 'limits')
  const { rows } = await tx.trx.raw<{ rows: { incoming: number; outgoing: number }[] }>(
    `select (select count(*)::integer from incoming_webhooks where organization_id = :organizationId) as incoming,
            (select count(*)::integer from outgoing_webhooks where organization_id = :organizationId) as outgoing`,
    { organizationId },
  )
  const { incoming, outgoing } = rows[0]!
  const limit = (name: Parameters<typeof limitOf>[1]) => finite(limitOf(subscription, name))
  const { start, end } = windowAt('month', Date.now())
  return {
    plan: subscription.plan,
    month: { from: new Date(start), to: new Date(end) },
    incoming: {
      webhooks: { used: incoming, limit: limit('incoming_webhooks') },
      requests: {
        used: await usedOfWindow(tx.trx, incomingMonth(organizationId)),
        limit: limit('incoming_per_month'),
      },
      per_minute: limit('incoming_per_minute'),
    },
    outgoing: { webhooks: { used: outgoing, limit: limit('outgoing_webhooks') } },
  }
}

const finite = (limit: number): number | null => (Number.isFinite(limit) ? limit : null)
