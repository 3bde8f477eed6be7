import type { Knex } from 'knex'
import type { RunError } from '../../workflows/interpret/run-state.ts'
import type { Tenant } from '../postgres/tenancy.ts'

/**
 * The attempts of an external node (`run_nodes.attempts`): an element is added when an attempt begins, and gets its
 * result in the statement that records it. One that has none, and is not in progress, was lost with its worker, or cut
 * off by the end of the run.
 */

export interface NodeAttempt extends AttemptResult {
  /** An attempt that repeats a lost one has its number. */
  number: number
  started_at: string
  duration_ms: number | null
  in_progress: boolean
}

export interface AttemptResult {
  ended_at: string | null
  /** Of the answer of another service. */
  response_status: number | null
  error: RunError | null
  /** The time of the next attempt, if this one failed and may be repeated. */
  next_attempt_at: string | null
}

/** The attempts that a row keeps: the last ones. */
const MOST = 20
/** The characters of the details of an error, as JSON, that each attempt keeps; the row has those of the last one. */
const MOST_DETAILS = 2_500

/** The result of an attempt, by the output of the node or its error. */
export function attemptResult(of: {
  ended_at: string
  output?: unknown
  error?: RunError
  next_attempt_at?: Date | null
}): AttemptResult {
  const status = statusOf(of.error ? of.error.details : of.output)
  return {
    ended_at: of.ended_at,
    response_status: status,
    error: of.error ? shortened(of.error) : null,
    next_attempt_at: of.next_attempt_at?.toISOString() ?? null,
  }
}

function statusOf(value: unknown): number | null {
  const status = (value as { status?: unknown } | null | undefined)?.status
  return typeof status === 'number' ? status : null
}

function shortened({ details, ...error }: RunError): RunError {
  return details && JSON.stringify(details).length <= MOST_DETAILS ? { ...error, details } : error
}

/** The value of `attempts` when an attempt begins. */
export const begun = ({ trx }: Tenant): Knex.Raw =>
  trx.raw(
    `case when jsonb_array_length(attempts) >= ${MOST} then attempts - 0 else coalesce(attempts, '[]') end
      || jsonb_build_object('number', attempt, 'started_at', clock_timestamp())`,
  )

/** The value of `attempts` when the last one ends. */
export const ended = ({ trx }: Tenant, result: AttemptResult): Knex.Raw =>
  trx.raw(`jsonb_set(attempts, '{-1}', (attempts -> -1) || ?::jsonb)`, [JSON.stringify(result)])

/** The value of `attempts` when the last one has made no call. */
export const withdrawn = ({ trx }: Tenant): Knex.Raw => trx.raw('attempts - -1')

const UNREPORTED: RunError = {
  code: 'unreported',
  message:
    'The result of this attempt is not known: its worker was lost, or the run ended meanwhile. Its call may have been made.',
}

const TIME = `'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"'`
const time = (of: string) => `to_char(cast(${of} as timestamptz) at time zone 'UTC', ${TIME})`

/** SQL: the attempts of a row as `NodeAttempt`. */
export const ATTEMPTS = `(select coalesce(jsonb_agg(jsonb_build_object(
    'number', a -> 'number',
    'started_at', ${time(`a ->> 'started_at'`)},
    'ended_at', a -> 'ended_at',
    'duration_ms', round(extract(epoch from cast(a ->> 'ended_at' as timestamptz) - cast(a ->> 'started_at' as timestamptz)) * 1000),
    'in_progress', in_progress,
    'response_status', a -> 'response_status',
    'error', case when in_progress or a -> 'ended_at' is not null then a -> 'error' else '${JSON.stringify(UNREPORTED)}'::jsonb end,
    'next_attempt_at', a -> 'next_attempt_at') order by n), '[]')
  from (select a, n, a -> 'ended_at' is null and n = jsonb_array_length(attempts) and status = 'running'
      and attempt_token is not null as in_progress
    from jsonb_array_elements(attempts) with ordinality as one (a, n)) each) as attempts`
