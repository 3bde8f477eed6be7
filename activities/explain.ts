import { AppError, fullMessage } from '../db/model/errors.ts'
import { isRefusal, isStatementTimeout, sqlState } from '../db/postgres/sql-state.ts'
import { NeedsComputation } from '../db/process/compute/computed.ts'
import { ComputeError } from '../db/process/compute/pool.ts'
import type { Logger } from '../db/process/log.ts'
import type { Failure } from '../workflows/interpret/execute.ts'
import { SENTENCES } from './faults.ts'
import { ServiceBusy } from './slots/in-slot.ts'

/** The failure by a fault of this service. Only the log has the cause. */
export const UNEXPECTED: Failure = {
  error: { code: 'internal_error', message: 'The node failed unexpectedly.' },
  retryable: true,
}

export const REFUSED: Failure = {
  error: { code: 'value_refused', message: SENTENCES.refused },
  retryable: false,
}

export const TIMED_OUT: Failure = {
  error: { code: 'timeout', message: 'A query of the node exceeded the time limit of the database.' },
  retryable: true,
}

/** The failure of an attempt that was aborted at its time limit, or at that of the organization's plan. */
export const exceeded = (ms: number, ofPlan = false): Failure => ({
  error: {
    code: 'timeout',
    message: ofPlan
      ? `The node exceeded the longest timeout that the plan allows, ${ms} ms.`
      : `The node exceeded its timeout of ${ms} ms.`,
  },
  retryable: true,
})

/**
 * The failure of a node that threw another error than a NodeError. Rethrows errors after which the transaction or the
 * attempt must be repeated: of PostgreSQL (deadlock, lost connection), NeedsComputation, and ServiceBusy. Logs unexpected
 * errors, unless `signal` is aborted: a cancelled call may throw any error of its library.
 */
export function explainError(
  error: unknown,
  { log, signal, ...where }: { log: Logger; signal: AbortSignal; run_id: string; node: string },
): Failure {
  if (error instanceof AppError) return fromAppError(error)
  if (isRefusal(error)) return REFUSED
  if (isStatementTimeout(error)) return TIMED_OUT
  if (sqlState(error) || error instanceof NeedsComputation || error instanceof ServiceBusy) throw error
  if (error instanceof ComputeError) return tooExpensive(error)
  if (!signal.aborted) log.error({ ...where, ...causeOf(error) }, 'a node failed unexpectedly')
  return UNEXPECTED
}

const tooExpensive = ({ message }: ComputeError): Failure => ({
  error: { code: 'too_expensive', message: `The text of the node is too expensive: ${message}.` },
  retryable: true,
})

/** The stack without the message, which may hold values of the run. */
export function causeOf(error: unknown) {
  if (!(error instanceof Error)) return { thrown: typeof error }
  const frames = error.stack?.split('\n').filter((line) => /^\s+at /.test(line))
  return { error: error.name, stack: frames?.slice(0, 10).join('\n') }
}

function fromAppError(error: AppError): Failure {
  const issues = error.details.issues?.map(({ input: _, ...issue }) => issue)
  return {
    error: { code: error.type, message: fullMessage(error), ...(issues && { details: { issues } }) },
    retryable: error.type === 'unavailable',
  }
}
