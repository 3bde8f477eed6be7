import type { Knex } from 'knex'
import { v7 as uuidv7 } from 'uuid'
import type { Subscription } from '../access/plans.ts'
import type { Tenant } from '../postgres/tenancy.ts'
import type { IncomingWebhook } from './types.ts'

/** The webhook of a request: its settings, its sealed secrets, and the block state of the sender's address. */
export interface Receiver extends IncomingWebhook, Subscription {
  organization_id: string
  secret_sealed: string
  /** The secret before the last rotation, while it is still valid. */
  previous_secret_sealed: string | null
  /** End of the block of the address, if it is blocked. */
  blocked_until: Date | null
  /** The log row of the requests during this block. */
  block_log_id: string | null
}

/**
 * Loads the webhook in one round trip; across organizations, because the URL contains none.
 * @param source the address or, for IPv6, its /64.
 */
export async function findReceiver(system: Knex, id: string, source: string): Promise<Receiver | undefined> {
  const { rows } = await system.raw<{ rows: Receiver[] }>(
    `select w.*, o.plan, o.limits,
       case when w.previous_secret_expires_at > now() then w.previous_secret_sealed end as previous_secret_sealed,
       case when s.blocked_until > now() then s.blocked_until end as blocked_until, s.block_log_id
     from incoming_webhooks w
     join organizations o on o.id = w.organization_id
     left join incoming_sources s
       on s.organization_id = w.organization_id and s.webhook_id = w.id and s.source_ip = ?
     where w.id = ?`,
    [source, id],
  )
  return rows[0]
}

type Source = { organizationId: string; webhookId: string; sourceIp: string }

/** Blocks an address for `blockFor` seconds after `times` violations within `within` seconds. */
export interface Tolerance {
  counter: 'failures' | 'breaches'
  times: number
  within: number
  blockFor: number
}

/** Counts a violation of an address. At the limit the address is blocked and the count restarts. */
export async function countAgainst(system: Knex, source: Source, tolerance: Tolerance): Promise<void> {
  const { counter, times, within, blockFor } = tolerance
  const since = `${counter}_since`
  // The new count; a new window starts at 1.
  const next = `case when s.:since: > now() - make_interval(secs => :within) then s.:counter: + 1 else 1 end`
  await system.raw(
    `insert into incoming_sources as s (organization_id, webhook_id, source_ip, :counter:, block_log_id, blocked_until)
     values (:organizationId, :webhookId, :sourceIp, 1, :logId,
             case when :times <= 1 then now() + make_interval(secs => :blockFor) end)
     on conflict (organization_id, webhook_id, source_ip) do update set
       :counter: = case when ${next} >= :times then 0 else ${next} end,
       :since: = case when ${next} = 1 then now() else s.:since: end,
       block_log_id = case when ${next} >= :times then excluded.block_log_id else s.block_log_id end,
       blocked_until = case when ${next} >= :times then now() + make_interval(secs => :blockFor)
                            else s.blocked_until end`,
    { ...source, counter, since, times, within, blockFor, logId: uuidv7() },
  )
}

/** The answer to a delivery, stored for retries of the sender. */
export interface DeliveryAnswer {
  record_id: string
  entity: string
  action: 'created' | 'updated' | 'skipped'
}

/**
 * Claims a delivery for this transaction, or returns its stored answer of the last 24 hours. A concurrent request with
 * the same delivery waits here until the first one commits or rolls back.
 */
export async function claimDelivery(
  tx: Tenant,
  webhookId: string,
  fingerprint: Buffer,
): Promise<DeliveryAnswer | undefined> {
  const { rows: claimed } = await tx.trx.raw<{ rows: unknown[] }>(
    `insert into incoming_deliveries as d (organization_id, webhook_id, fingerprint) values (?, ?, ?)
     on conflict (organization_id, webhook_id, fingerprint) do update set created_at = now(), answer = null
       where d.created_at < now() - interval '24 hours'
     returning true`,
    [tx.organizationId, webhookId, fingerprint],
  )
  if (claimed.length > 0) return undefined
  const row = await tx
    .trx('incoming_deliveries')
    .where({ organization_id: tx.organizationId, webhook_id: webhookId, fingerprint })
    .first('answer')
  return row?.answer
}

export async function storeDelivery(
  tx: Tenant,
  webhookId: string,
  fingerprint: Buffer,
  answer: DeliveryAnswer,
): Promise<void> {
  await tx
    .trx('incoming_deliveries')
    .where({ organization_id: tx.organizationId, webhook_id: webhookId, fingerprint })
    .update({ answer: JSON.stringify(answer) })
}
