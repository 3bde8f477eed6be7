import type { KindObject } from '../../workflows/shared/record-kinds.ts'
import type { IncomingWebhook, Write } from '../model/incoming/types.ts'
import type { Tenant } from '../postgres/tenancy.ts'

/** Deliveries: a request that its sender repeats is answered as the first time, and writes nothing. */

/** What makes a request equal to another one. */
export interface Delivery {
  /** SHA-256 of the delivery id and the body; of an event of Stripe its id only. */
  fingerprint: Buffer
  /** Without an id, an equal request can be a new one. */
  has_delivery_id: boolean
  /**
   * SHA-256 of what was signed with its time, if an id in a header is not: the same signed request is a repetition,
   * whatever its id. A retry of the sender has another time.
   */
  signed?: Buffer
}

/** The answer to a delivery, stored for retries of the sender. */
export interface DeliveryAnswer {
  record_id: string | null
  entity: KindObject | null
  action: Write
}

/** With the runs that may answer the sender, if the webhook waits for one. */
export interface StoredAnswer extends DeliveryAnswer {
  run_ids?: string[]
}

/**
 * Days in which a delivery id, and what was signed, is recognised: longer than any signed time is accepted, and than all
 * known senders but one repeat a request, such as Stripe and Square for 3 days and Chargebee for 3 days and 7 hours.
 * Customer.io does for 7 days, with pauses that double, so that a repetition is at most half of them after the attempt that
 * was accepted.
 */
export const DELIVERY_DAYS = 4

const ID_WINDOW = DELIVERY_DAYS * 86_400

/** What a request claims: its id or body, and what its sender signed. Empty if a repetition is a new request. */
export function claimsOf(
  webhook: Pick<IncomingWebhook, 'dedupe_window'>,
  delivery: Pick<Delivery, 'fingerprint' | 'has_delivery_id' | 'signed'>,
): Claim[] {
  const { fingerprint, signed } = delivery
  const window = windowOf(webhook, delivery)
  return [
    ...(window > 0 ? [{ fingerprint, window }] : []),
    ...(signed ? [{ fingerprint: signed, window: ID_WINDOW }] : []),
  ]
}

/** Seconds in which a request is taken for a repetition of an equal one; 0: never. */
export const windowOf = (
  { dedupe_window }: Pick<IncomingWebhook, 'dedupe_window'>,
  { has_delivery_id }: Pick<Delivery, 'has_delivery_id'>,
) => (has_delivery_id ? ID_WINDOW : dedupe_window)

/** A fingerprint, and the seconds in which its first request is looked for. */
export interface Claim {
  fingerprint: Buffer
  window: number
}

/**
 * Claims the fingerprints of different deliveries for this transaction; for those that have an answer within
 * their window, returns it. A concurrent request with the same delivery waits here until the first one commits or rolls
 * back.
 */
export async function claimFingerprints(
  tx: Tenant,
  webhookId: string,
  claims: Claim[],
): Promise<(StoredAnswer | undefined)[]> {
  if (claims.length === 0) return []
  const fingerprints = claims.map(({ fingerprint }) => fingerprint)
  const { rows: claimed } = await tx.trx.raw<{ rows: { fingerprint: Buffer }[] }>(
    // In order: two transactions could wait for each other.
    `insert into incoming_deliveries as d (organization_id, webhook_id, fingerprint)
     select :organizationId, :webhookId, f from unnest(:fingerprints::bytea[]) f order by f
     on conflict (organization_id, webhook_id, fingerprint) do update set created_at = now(), answer = null
       where d.created_at < now() - make_interval(secs => (
         select c.seconds from unnest(:fingerprints::bytea[], :windows::integer[]) as c (fingerprint, seconds)
         where c.fingerprint = excluded.fingerprint))
     returning fingerprint`,
    {
      organizationId: tx.organizationId,
      webhookId,
      fingerprints,
      windows: claims.map(({ window }) => window),
    } as never,
  )
  if (claimed.length === fingerprints.length) return fingerprints.map(() => undefined)
  const ours = new Set(claimed.map((row) => hex(row.fingerprint)))
  const { rows } = await tx.trx.raw<{ rows: { fingerprint: Buffer; answer: StoredAnswer }[] }>(
    `select fingerprint, answer from incoming_deliveries
     where organization_id = ? and webhook_id = ? and fingerprint = any(?::bytea[])`,
    [tx.organizationId, webhookId, fingerprints.filter((one) => !ours.has(hex(one)))],
  )
  const answers = new Map(rows.map((row) => [hex(row.fingerprint), row.answer]))
  return fingerprints.map((one) => answers.get(hex(one)))
}

export const hex = (fingerprint: Buffer): string => fingerprint.toString('hex')

/** Stores the answers of claimed deliveries. */
export async function storeDeliveries(
  tx: Tenant,
  webhookId: string,
  deliveries: { fingerprint: Buffer; answer: StoredAnswer }[],
): Promise<void> {
  if (deliveries.length === 0) return
  await tx.trx.raw(
    `update incoming_deliveries d set answer = a.answer
     from unnest(?::bytea[], ?::text[]) as given (fingerprint, json) cross join lateral (select given.json::jsonb) a (answer)
     where d.organization_id = ? and d.webhook_id = ? and d.fingerprint = given.fingerprint`,
    [
      deliveries.map(({ fingerprint }) => fingerprint),
      deliveries.map(({ answer }) => JSON.stringify(answer)),
      tx.organizationId,
      webhookId,
    ],
  )
}
