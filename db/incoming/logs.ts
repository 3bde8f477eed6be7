import { v7 as uuidv7 } from 'uuid'
import { type IdPage, pageById } from '../lists/id-list.ts'
import { notFound } from '../model/errors.ts'
import {
  csvHeader,
  csvOf,
  LISTED,
  type LogAction,
  type LogDetail,
  type LogEntry,
  type LogStatus,
  type NewLog,
} from '../model/incoming/log.ts'
import type { Page } from '../model/lists/page.ts'
import type { System, Tenant } from '../postgres/tenancy.ts'

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
  when payload_truncated and payload_rest is null and payload_sealed is null then 'only the beginning of its payload is stored'
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
  'content_type',
  'payload_rest',
  'payload_sealed',
  'fingerprint',
  'has_delivery_id',
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

/** Entries of the CSV file that are read at once. */
const CSV_PAGE = 500

/** The log as CSV, newest first, page by page, each read in a separate transaction as the client takes it. */
export async function* exportLogs(
  tenant: <T>(work: (tx: Tenant) => Promise<T>) => Promise<T>,
  webhookId: string,
  filters: LogFilters,
): AsyncGenerator<string, void, void> {
  yield csvHeader()
  let last: string | undefined
  do {
    const page = await tenant<LogEntry[]>((tx) => {
      const rows = filtered(tx, webhookId, filters)
        .select(columnsOf(tx, LISTED))
        .orderBy('id', 'desc')
        .limit(CSV_PAGE)
      return last ? rows.where('id', '<', last) : rows
    })
    if (page.length > 0) yield csvOf(page)
    last = page.length === CSV_PAGE ? page.at(-1)!.id : undefined
  } while (last)
}

/** The entries that the filters select, in no order. */
function filtered(tx: Tenant, webhookId: string, filters: LogFilters) {
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
