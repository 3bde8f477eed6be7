import { conflict, notFound } from '../errors.ts'
import type { Tenant } from '../postgres/tenancy.ts'
import { firstIdAt } from '../retention/purge.ts'
import type { LogAction, LogStatus } from './logs.ts'

/** The log entries that a replay repeats. */

/**
 * What a replay includes. `failed`: verified requests that were refused for their payload or an error of ours.
 * `blocked`: verified requests over the rate limit or the quota. `succeeded`: requests that created or updated a record.
 */
export const REPLAY_INCLUDES = ['failed', 'blocked', 'succeeded'] as const
export type ReplayInclude = (typeof REPLAY_INCLUDES)[number]

/** `since` is inclusive, `until` exclusive. */
export interface Period {
  include: ReplayInclude[]
  since: Date
  until: Date
}

/** A log entry with what its replay needs. */
export interface ReplayedEntry {
  id: string
  created_at: Date
  source_ip: string
  status: LogStatus
  action: LogAction | null
  error: string | null
  record_id: string | null
  mapped_data: unknown
  headers: Record<string, string>
  content_type: string | null
  payload: string | null
  payload_truncated: boolean
  payload_size: number
  verified: boolean
  fingerprint: Buffer | null
  has_delivery_id: boolean
}

const COLUMNS = [
  ...['id', 'created_at', 'source_ip', 'status', 'action', 'error', 'record_id', 'mapped_data', 'headers'],
  ...['content_type', 'payload', 'payload_truncated', 'payload_size', 'verified', 'fingerprint'],
  'has_delivery_id',
] as const

/** Entries of a replay at most. */
export const MAX_REPLAY = 100_000
/** The clock of a process makes the ids of entries, that of the database their times. */
const CLOCKS = `interval '1 minute'`

/** SQL: the entries of a period that can be replayed. Replays of failed entries are not replayed: their originals are. */
const ENTRIES = `
  from incoming_logs l
  where l.organization_id = :organizationId and l.webhook_id = :webhookId
    and l.id >= ${firstIdAt(`:since::timestamptz - ${CLOCKS}`)} and l.id < ${firstIdAt(`:until::timestamptz + ${CLOCKS}`)}
    and l.created_at >= :since and l.created_at < :until
    and l.verified and l.payload is not null and not l.payload_truncated
    and (:failed and l.status = 'Failed' and l.replay_of is null
      or :blocked and l.status = 'Blocked' and l.replay_of is null
      or :succeeded and l.status = 'Success' and l.record_id is not null
        and (l.action = 'Created' or l.action = 'Updated' and l.replay_of is null))`

const keysOf = (tx: Tenant, webhookId: string, { include, since, until }: Period) => ({
  ...{ organizationId: tx.organizationId, webhookId, since, until },
  ...Object.fromEntries(REPLAY_INCLUDES.map((one) => [one, include.includes(one)])),
})

/** The number of entries of the period, at most one more than MAX_REPLAY. */
export async function countEntries(tx: Tenant, webhookId: string, period: Period): Promise<number> {
  const { rows } = await tx.trx.raw<{ rows: { count: number }[] }>(
    `select count(*)::integer as count from (select ${ENTRIES} limit ${MAX_REPLAY + 1}) e`,
    keysOf(tx, webhookId, period) as never,
  )
  return rows[0]!.count
}

/** The ids of the entries after `position`, oldest first. */
export async function readEntries(
  tx: Tenant,
  webhookId: string,
  period: Period,
  position: string | null,
  limit: number,
): Promise<string[]> {
  const { rows } = await tx.trx.raw<{ rows: { id: string }[] }>(
    `select l.id ${ENTRIES} and (cast(:position as uuid) is null or l.id > :position) order by l.id limit :limit`,
    { ...keysOf(tx, webhookId, period), position, limit } as never,
  )
  return rows.map(({ id }) => id)
}

/** Throws not_found, and conflict for an entry that cannot be replayed. */
export async function getEntry(tx: Tenant, webhookId: string, id: string): Promise<ReplayedEntry> {
  const entry = await tx
    .trx('incoming_logs')
    .where({ organization_id: tx.organizationId, webhook_id: webhookId, id })
    .first<ReplayedEntry | undefined>(...COLUMNS)
  if (!entry) throw notFound('log entry')
  const problem = problemOf(entry)
  if (problem) throw conflict(`the log entry cannot be replayed: ${problem}`, { param: 'log_id' })
  return entry
}

function problemOf({ verified, payload, payload_truncated }: ReplayedEntry): string | undefined {
  if (!verified) return 'its sender did not prove to have the secret'
  if (payload === null) return 'it has no payload'
  return payload_truncated ? 'its payload is too long for the log, which has only its beginning' : undefined
}

/** Locks the entry: replays of one entry take turns. Undefined if it has expired. */
export async function lockEntry(
  tx: Tenant,
  webhookId: string,
  id: string,
): Promise<{ id: string } | undefined> {
  return tx
    .trx('incoming_logs')
    .where({ organization_id: tx.organizationId, webhook_id: webhookId, id })
    .forUpdate()
    .first('id')
}

/** The entry and record of an equal request that was accepted: any with the delivery's id, else a later one. */
export async function acceptedEqual(
  tx: Tenant,
  webhookId: string,
  { id, fingerprint, has_delivery_id }: ReplayedEntry,
): Promise<{ id: string; record_id: string } | undefined> {
  if (!fingerprint) return undefined
  const query = tx
    .trx('incoming_logs')
    .where({ organization_id: tx.organizationId, webhook_id: webhookId, fingerprint, status: 'Success' })
    .whereNotNull('record_id')
  if (!has_delivery_id) query.where('id', '>', id)
  return query.orderBy('id').first('id', 'record_id')
}
