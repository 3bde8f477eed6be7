import { ApplicationFailure, CancelledFailure } from '@temporalio/activity'
import { isConflict, isDatabaseUnavailable, isRefusal, isStatementTimeout } from '../db/postgres/sql-state.ts'

/**
 * The kinds of errors that no node has caused: `unavailable` (the database), `conflict` (a deadlock, a serialization
 * failure, a lock timeout), `timeout` (of a statement), `newer` (a run that needs a newer worker), `refused` (data that
 * PostgreSQL does not accept), `unexpected` (all others, such as a TypeError or a missing definition). A retry can
 * succeed after all but the last two.
 */
export type Fault = 'unavailable' | 'conflict' | 'timeout' | 'newer' | 'refused' | 'unexpected'

/** The run needs a newer worker than this one. Temporal retries until a newer worker takes it. */
export class NeedsNewerWorker extends Error {
  override readonly name = 'NeedsNewerWorker'
}

function faultOf(error: unknown): Fault {
  if (error instanceof NeedsNewerWorker) return 'newer'
  if (isConflict(error)) return 'conflict'
  if (isStatementTimeout(error)) return 'timeout'
  if (isDatabaseUnavailable(error)) return 'unavailable'
  return isRefusal(error) ? 'refused' : 'unexpected'
}

/** Whether a retry can succeed without a change of the code or the data. */
export const isTransient = (error: unknown): boolean => !PERMANENT.includes(faultOf(error))

const PERMANENT: Fault[] = ['refused', 'unexpected']

/**
 * The error as runs, histories and webhooks may show it: without SQL, addresses, stack and values, which the log has.
 */
export function describeFault(error: unknown): string {
  const fault = faultOf(error)
  if (fault !== 'unexpected') return SENTENCES[fault]
  return `An unexpected error occurred (${error instanceof Error ? error.name : typeof error}); the log of the worker has it.`
}

export const SENTENCES: Record<Exclude<Fault, 'unexpected'>, string> = {
  unavailable: 'The database is unavailable.',
  conflict: 'The transaction conflicts with another one.',
  timeout: 'A statement exceeded the time limit of the database.',
  newer: 'The run needs a newer version of the worker.',
  refused: 'The database refused a value.',
}

/**
 * The error as Temporal records it, without a stack. Temporal's own failures stay; every other error becomes an
 * `internal_error` with the message of `describeFault`.
 */
export function toFailure(error: unknown, options: { last: boolean; delay?: number }): Error {
  if (error instanceof CancelledFailure || error instanceof ApplicationFailure) return withoutStack(error)
  return withoutStack(
    ApplicationFailure.create({
      type: 'internal_error',
      message: describeFault(error),
      nonRetryable: options.last,
      ...(options.delay === undefined ? {} : { nextRetryDelay: options.delay }),
    }),
  )
}

/** Removes the stack: histories would store paths of this machine. */
export function withoutStack<E extends Error>(error: E): E {
  error.stack = ''
  return error
}
