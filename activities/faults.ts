import { ApplicationFailure, CancelledFailure } from '@temporalio/activity'
import { isConflict, isDatabaseUnavailable, isRefusal, isStatementTimeout } from '../db/postgres/sql-state.ts'

/**
 * The kinds of errors that no node has caused: `unavailable` (the database), `conflict` (a deadlock, a serialization
 * failure, a lock timeout), `timeout` (of a statement), `newer` (a run that needs a newer worker), `unknown`
 * (`UnknownRun`), `refused` (data that PostgreSQL does not accept), `unexpected` (all others, such as a TypeError or a
 * missing definition). A retry can succeed after all but the last two.
 */
export type Fault = 'unavailable' | 'conflict' | 'timeout' | 'newer' | 'unknown' | 'refused' | 'unexpected'

/** The run needs a newer worker than this one. Temporal retries until a newer worker takes it. */
export class NeedsNewerWorker extends Error {
  override readonly name = 'NeedsNewerWorker'
}

/**
 * The database does not know the run, and Temporal knows more than the database. Two things look the same, because the
 * files have one identity: the database was restored to an earlier moment, or this is a copy of its files, which took the
 * task queue while the original was away. A run that is ended in the first case was lost anyway; in the second it is
 * production's. So the run is retried, and the error says why: a retry that nobody needs costs little, an end cannot be
 * undone. How long the original was away decides nothing, it may be back after a weekend; only an operator knows, who
 * says so by TEMPORAL_ADOPT=true (`worker/witness.ts`). A run that a database in step with Temporal does not know was
 * deleted, and ends.
 */
export class UnknownRun extends Error {
  override readonly name = 'UnknownRun'
}

function faultOf(error: unknown): Fault {
  if (error instanceof NeedsNewerWorker) return 'newer'
  if (error instanceof UnknownRun) return 'unknown'
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
  unknown:
    'The database does not know this run or schedule, and Temporal knows more than the database: it is a copy of the one that has ' +
    'it, or it was restored to an earlier moment; then start a worker once with TEMPORAL_ADOPT=true.',
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
