import { csvLines, writeCell, writeList } from '../csv/write-cell.ts'

export const LOG_STATUSES = ['Success', 'Failed', 'Blocked'] as const
export type LogStatus = (typeof LOG_STATUSES)[number]
export const LOG_ACTIONS = ['Created', 'Updated', 'Skipped'] as const
export type LogAction = (typeof LOG_ACTIONS)[number]
/** The action of the log for the action of the answer. */
export const LOG_ACTION_OF = { created: 'Created', updated: 'Updated', skipped: 'Skipped' } as const

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
  /** The request as received, if `payload` or `headers` have masks and it can be replayed. */
  payload_sealed: string | null
  /** Equal for an equal request; null for an unverified one. */
  fingerprint: Buffer | null
  has_delivery_id: boolean
}

/** The columns that describe a request, whatever its outcome. */
export type RequestLog = Pick<
  NewLog,
  | 'webhook_id'
  | 'source_ip'
  | 'headers'
  | 'content_type'
  | 'payload'
  | 'payload_truncated'
  | 'payload_rest'
  | 'payload_sealed'
  | 'payload_size'
  | 'verified'
  | 'fingerprint'
  | 'has_delivery_id'
>

type OutcomeLog = Omit<NewLog, keyof RequestLog>

/** The log row of a request. Without other values its outcome is a success that wrote nothing. */
export const logOf = (
  request: RequestLog,
  outcome: Partial<OutcomeLog> & Pick<OutcomeLog, 'response_time_ms' | 'mapped_data'>,
): NewLog => ({
  ...request,
  status: 'Success',
  action: null,
  http_status: 200,
  error: null,
  message: null,
  error_details: undefined,
  record_id: null,
  run_id: null,
  warnings: [],
  replay_of: null,
  replay_id: null,
  ...outcome,
})

/** Milliseconds since `started`, a reading of `performance.now()`, with one decimal. */
export const millisecondsSince = (started: number): number =>
  Math.round((performance.now() - started) * 10) / 10

/** The columns of lists and of the CSV file. */
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

/** The first line of the log as CSV. */
export const csvHeader = (): string => csvLines([[...LISTED]])

/** The lines of entries in CSV. */
export const csvOf = (entries: LogEntry[]): string => csvLines(entries.map(cellsOf))

const cellsOf = (entry: LogEntry): string[] =>
  LISTED.map((column) => {
    const value = entry[column]
    if (Array.isArray(value)) return writeList(value)
    return writeCell(value instanceof Date ? value.toISOString() : value, 'text')
  })
