import { v7 as uuidv7 } from 'uuid'
import { type IdPage, pageById } from '../lists/id-list.ts'
import { notFound } from '../model/errors.ts'
import type { LogAction, LogStatus } from '../model/incoming/log-values.ts'
import type { Page } from '../model/lists/page.ts'
import type { System, Tenant } from '../postgres/tenancy.ts'

/** One request to a webhook, as lists show it. */
export interface LogEntry {
  id: string
  webhook_id: string
  created_at: Date
  source_ip: string
  status: LogStatus
  action: LogAction | null
  http_status: number
  payload_size: number
  response_time_ms: number
  error: string | null
  message: string | null
  record_id: string | null
  run_id: string | null
  warnings: string[]
  /** More than one: further requests of a blocked address. */
  requests: number
  /** The entry that was replayed, and the replay. */
  replay_of: string | null
  replay_id: string | null
  /** Why the request cannot be replayed; null if it can. */
  replay_problem: string | null
}

/** A log entry with all details. */
export interface LogDetail extends LogEntry {
  headers: Record<string, string>
  payload: string | null
  payload_truncated: boolean
  mapped_data: unknown
  error_details: unknown
  /** Whether the sender proved to have the secret. */
  verified: boolean
}

export interface NewLog extends Omit<LogDetail, 'id' | 'created_at' | 'requests' | 'replay_problem'> {
  content_type: string | null
  /** What follows `payload`, if that is truncated and the request may be replayed. */
  payload_rest: string | null
  /** Equal for an equal request; null for an unverified one. */
  fingerprint: Buffer | null
  has_delivery_id: boolean
}

export const LISTED = [
  'id',
  'webhook_id',
  'created_at',
  'source_ip',
  'status',
  'action',
  'http_status',
  'payload_size',
  'response_time_ms',
  'error',
  'message',
  'record_id',
  'run_id',
  'warnings',
  'requests',
  'replay_of',
  'replay_id',
  'replay_problem',
] as const
const DETAIL = [
  ...LISTED,
  'headers',
  'payload',
  'payload_truncated',
  'mapped_data',
  'error_details',
  'verified',
] as const

/** SQL: why the request of an entry cannot be replayed. */
export const REPLAY_PROBLEM = `case
  when not verified then 'its sender did not prove to have the secret'
  when payload is null then 'it has no payload'
  when payload_truncated and payload_rest is null then 'only the beginning of its payload is stored'
end`

/** Columns of entries for a query; `replay_problem` is computed. */
export const columnsOf = (tx: Tenant, columns: readonly string[]) =>
  columns.map((column) =>
    column === 'replay_problem' ? tx.trx.raw(`${REPLAY_PROBLEM} as replay_problem`) : column,
  )

/** The columns of a new row. */
const STORED = [
  'organization_id',
  ...DETAIL.filter((column) => !['created_at', 'requests', 'replay_problem'].includes(column)),
  ...['content_type', 'payload_rest', 'fingerprint', 'has_delivery_id'],
]

/** Logs an accepted request, in the transaction of its writes. */
export const insertLog = (tx: Tenant, log: NewLog, id?: string): Promise<void> =>
  insertLogs(tx, [id === undefined ? log : { ...log, id }])

/**
 * Logs accepted requests, in the transaction of their writes. The text of the statement does not depend on their
 * number.
 */
export async function insertLogs(tx: Tenant, logs: (NewLog & { id?: string })[]): Promise<void> {
  const rows = logs.map((log) => ({
    organization_id: tx.organizationId,
    id: uuidv7(),
    ...log,
    // The form in which PostgreSQL reads bytea from JSON.
    fingerprint: log.fingerprint && `\\x${log.fingerprint.toString('hex')}`,
  }))
  const columns = STORED.join(', ')
  await tx.trx.raw(
    `insert into incoming_logs (${columns})
     select ${columns} from jsonb_populate_recordset(null::incoming_logs, ?)`,
    [JSON.stringify(rows)],
  )
}

/** Logs a refused request, whose transaction was rolled back or never began. */
export async function insertRefusalLog(system: System, organizationId: string, log: NewLog): Promise<void> {
  await system('incoming_logs').insert(toRow(organizationId, log))
}

/** Logs a request of a blocked address: the first as a row with this id, the others as its count. */
export async function insertFoldedLog(
  system: System,
  organizationId: string,
  id: string,
  log: NewLog,
): Promise<void> {
  await system('incoming_logs')
    .insert({ ...toRow(organizationId, log), id })
    .onConflict(['organization_id', 'webhook_id', 'id'])
    .merge({ requests: system.raw('incoming_logs.requests + 1') })
}

const toRow = (organizationId: string, log: NewLog) => ({
  ...log,
  organization_id: organizationId,
  id: uuidv7(),
  headers: JSON.stringify(log.headers),
  mapped_data: log.mapped_data === undefined ? null : JSON.stringify(log.mapped_data),
  error_details: log.error_details === undefined ? null : JSON.stringify(log.error_details),
})

export interface LogFilters {
  status?: LogStatus | undefined
  action?: LogAction | undefined
  source_ip?: string | undefined
  replay_id?: string | undefined
  from?: Date | undefined
  to?: Date | undefined
}

/** Newest first. */
export function listLogs(
  tx: Tenant,
  webhookId: string,
  filters: LogFilters,
  page: IdPage,
): Promise<Page<LogEntry>> {
  const rows = filtered(tx, webhookId, filters).select(columnsOf(tx, LISTED))
  return pageById(tx, rows, page, { of: ['incoming logs', webhookId, filters] })
}

/** Throws not_found. */
export async function getLog(tx: Tenant, webhookId: string, id: string): Promise<LogDetail> {
  const row = await tx
    .trx('incoming_logs')
    .where({ organization_id: tx.organizationId, webhook_id: webhookId, id })
    .first(columnsOf(tx, DETAIL))
  if (!row) throw notFound('log entry')
  return row as LogDetail
}

/** The entries that the filters select, in no order. */
export function filtered(tx: Tenant, webhookId: string, filters: LogFilters) {
  const { status, action, source_ip, replay_id, from, to } = filters
  const query = tx.trx('incoming_logs').where({ organization_id: tx.organizationId, webhook_id: webhookId })
  if (status) query.where({ status })
  if (action) query.where({ action })
  if (source_ip) query.where({ source_ip })
  if (replay_id) query.where({ replay_id })
  if (from) query.where('created_at', '>=', from)
  if (to) query.where('created_at', '<=', to)
  return query
}
