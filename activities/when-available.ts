import { setTimeout } from 'node:timers/promises'
import { ApplicationFailure, CancelledFailure } from '@temporalio/activity'
import type { Logger } from '../db/process/log.ts'
import type { Hold } from './deadline.ts'
import { describeFault, isTransient } from './faults.ts'

interface Waiting {
  log: Logger
  /** The end of the attempt. */
  signal: AbortSignal
  /** Stops the clock of the attempt. */
  hold?: Hold
  /** Whether an error is not the node's; default: every transient one. */
  waitsFor?: (error: unknown) => boolean
}

/**
 * Repeats a transaction of a node that calls other services while the database is unavailable, so that an outage uses up
 * no attempt, until it succeeds. Throws CancelledFailure when `signal` aborts.
 */
export async function whenAvailable<T>(
  { log, signal, hold = () => () => {}, waitsFor = isTransient }: Waiting,
  work: () => Promise<T>,
): Promise<T> {
  let goOn: (() => void) | undefined
  try {
    for (let pause = 100; ; pause = Math.min(pause * 2, 5_000)) {
      try {
        return await work()
      } catch (error) {
        if (error instanceof ApplicationFailure || !waitsFor(error)) throw error
        goOn ??= hold()
        log.warn({ reason: describeFault(error), pause }, 'an external node waits for the database')
        await setTimeout(pause * (0.5 + Math.random() / 2), undefined, { signal }).catch(() => {})
        if (signal.aborted) throw new CancelledFailure('the run has ended')
      }
    }
  } finally {
    goOn?.()
  }
}
