import type { Knex } from 'knex'
import { v7 as uuidv7 } from 'uuid'
import { windowAt } from '../access/limits.ts'
import type { Subscription } from '../access/plans.ts'
import { type TargetEntity, withKind } from '../model/incoming/target-entity.ts'
import type { IncomingWebhook } from '../model/incoming/types.ts'
import { SENSITIVE_TARGETS, withTargets } from './sensitive-targets.ts'

/** The webhook of a request: its settings, its sealed secrets, and the block state of the sender's address. */
export interface Receiver extends IncomingWebhook, Subscription {
  organization_id: string
  /** Whether the organization stores as much as its plan allows. */
  storage_full: boolean
  secret_sealed: string
  /** The secret before the last rotation, while it is still valid. */
  previous_secret_sealed: string | null
  /** End of the block of the address, if it is blocked. */
  blocked_until: Date | null
  /** The log row of the requests during this block. */
  block_log_id: string | null
  /** Requests that counted in this minute. */
  used_of_minute: number
}

/** Who calls which webhook. */
export interface Caller {
  webhookId: string
  /** An IPv4 address or the /64 of an IPv6 one. */
  source: string
}

/** The window of a webhook's requests in a minute. */
export const incomingMinute = (organizationId: string, webhookId: string) =>
  ({ organizationId, subject: `${MINUTE_SUBJECT}${webhookId}`, period: 60 }) as const

/** Before the id of the webhook. */
export const MINUTE_SUBJECT = 'incoming:'

/** Identifies a caller. */
export const callerKey = ({ webhookId, source }: Caller): string => `${webhookId.toLowerCase()} ${source}`

/**
 * Loads the webhooks of several callers in one round trip; across organizations, because the URL contains none.
 * @returns the webhooks by `callerKey`.
 */
export async function findReceivers(system: Knex, callers: Caller[]): Promise<Map<string, Receiver>> {
  const { rows } = await system.raw<{ rows: Row[] }>(
    `select w.*, ${SENSITIVE_TARGETS} as sensitive, o.plan, o.limits, o.storage_full, c.source as caller, coalesce(m.used, 0) as used_of_minute,
       case when w.previous_secret_expires_at > now() then w.previous_secret_sealed end as previous_secret_sealed,
       case when s.blocked_until > now() then s.blocked_until end as blocked_until, s.block_log_id
     from unnest(?::uuid[], ?::text[]) as c (webhook_id, source)
     join incoming_webhooks w on w.id = c.webhook_id
     join organizations o on o.id = w.organization_id
     left join incoming_sources s
       on s.organization_id = w.organization_id and s.webhook_id = w.id and s.source_ip = c.source
     left join limit_windows m
       on m.organization_id = w.organization_id and m.subject = ? || w.id and m.window_start = ?`,
    [
      callers.map(({ webhookId }) => webhookId),
      callers.map(({ source }) => source),
      MINUTE_SUBJECT,
      new Date(windowAt(60, Date.now()).start),
    ],
  )
  return new Map(
    rows.map(({ caller, sensitive, ...receiver }) => [
      callerKey({ webhookId: receiver.id, source: caller }),
      withKind({ ...receiver, secret_fields: withTargets(receiver.secret_fields, sensitive) }),
    ]),
  )
}

type Row = Omit<Receiver, 'kind'> & { target_entity: TargetEntity; caller: string; sensitive: string[] }

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
