import { conflict, notFound } from '../model/errors.ts'
import type { LogAction, LogStatus } from '../model/incoming/log.ts'
import type { Tenant } from '../postgres/tenancy.ts'
import { firstIdAt } from '../retention/purge.ts'
import { columnsOf, REPLAY_PROBLEM } from './logs.ts'

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
  payload_rest: string | null
  payload_sealed: string | null
  /** Null for entries that are read with `getEntry`. */
  replay_problem: string | null
  payload_size: number
  verified: boolean
  fingerprint: Buffer | null
  has_delivery_id: boolean
}

const COLUMNS = [
  'id',
  'created_at',
  'source_ip',
  'status',
  'action',
  'error',
  'record_id',
  'mapped_data',
  'headers',
  'content_type',
  'payload',
  'payload_truncated',
  'payload_rest',
  'payload_sealed',
  'payload_size',
  'verified',
  'fingerprint',
  'has_delivery_id',
  'replay_problem',
] as const

/** Entries of a replay at most. */
export const MAX_REPLAY = 100_000
/** The clock of a process makes the ids of entries, that of the database their times. */
const CLOCKS = `interval '1 minute'`

/** SQL: the entries of a period. Replays of failed entries are not replayed: their originals are. */
const PERIOD = `
  from incoming_logs l
  where l.organization_id = :organizationId and l.webhook_id = :webhookId
    and l.id >= ${firstIdAt(`:since::timestamptz - ${CLOCKS}`)} and l.id < ${firstIdAt(`:until::timestamptz + ${CLOCKS}`)}
    and l.created_at >= :since and l.created_at < :until
    and (:failed and l.status = 'Failed' and l.replay_of is null
      or :blocked and l.status = 'Blocked' and l.replay_of is null
      or :succeeded and l.status = 'Success' and l.record_id is not null
        and (l.action = 'Created' or l.action = 'Updated' and l.replay_of is null))`
/** SQL: those that can be replayed. */
const ENTRIES = `${PERIOD} and ${REPLAY_PROBLEM} is null`

const keysOf = (tx: Tenant, webhookId: string, { include, since, until }: Period) => ({
  organizationId: tx.organizationId,
  webhookId,
  since,
  until,
  ...Object.fromEntries(REPLAY_INCLUDES.map((one) => [one, include.includes(one)])),
})

/** The number of entries of the period that can be replayed, at most one more than MAX_REPLAY. */
export async function countEntries(tx: Tenant, webhookId: string, period: Period): Promise<number> {
  const { rows } = await tx.trx.raw<{ rows: { count: number }[] }>(
    `select count(*)::integer as count from (select ${ENTRIES} limit ${MAX_REPLAY + 1}) e`,
    keysOf(tx, webhookId, period) as never,
  )
  return rows[0]!.count
}

/**
 * Counts the replayable entries that would only be skipped, because an equal request was accepted or is replayed before
 * them, and the verified entries whose payload is stored only in part.
 */
export async function countIneffective(
  tx: Tenant,
  webhookId: string,
  period: Period,
): Promise<{ skipped: number; incomplete: number }> {
  const { rows } = await tx.trx.raw<{ rows: { skipped: number; incomplete: number }[] }>(
    `with entries as materialized (
       select l.id, l.fingerprint, l.has_delivery_id, l.status,
         row_number() over (partition by l.status = 'Success', l.fingerprint order by l.id) as place ${ENTRIES}
     )
     select
       (select count(*) from entries e where e.status <> 'Success' and e.fingerprint is not null and (e.place > 1
          or exists (select from incoming_logs a where a.organization_id = :organizationId and a.webhook_id = :webhookId
                     and a.fingerprint = e.fingerprint and a.status = 'Success' and a.record_id is not null
                     and (e.has_delivery_id or a.id > e.id))))::integer as skipped,
       (select count(*) ${PERIOD} and l.verified and ${REPLAY_PROBLEM} is not null)::integer as incomplete`,
    keysOf(tx, webhookId, period) as never,
  )
  return rows[0]!
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
    .first<ReplayedEntry | undefined>(columnsOf(tx, COLUMNS))
  if (!entry) throw notFound('log entry')
  const problem = entry.replay_problem
  if (problem) throw conflict(`the log entry cannot be replayed: ${problem}`, { param: 'log_id' })
  return entry
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
