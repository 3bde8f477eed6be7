import type { ActivityInterceptorsFactory } from '@temporalio/worker'
import { grown, median, shrunk } from './adaptive-limit.ts'

const INITIAL = 32
/** The least capacity, also of a slow worker. */
const LEAST = 8
/** The median time of a segment above which the worker has too many runs; an idle worker takes some 10 ms. */
const SLOW_MS = 100
/**
 * The median time in which Temporal continues a run after a timer or an external node, above which Temporal has too
 * many runs; an idle one takes some 20 ms. Above a second its tasks exceed their deadline, and are repeated.
 */
const LATE_MS = 500
/** The share of the capacity that must be in use before it grows: an idle worker proves nothing. */
const IN_USE = 0.8

/**
 * The number of active runs that a worker carries. Slots do not measure it: a worker may carry 250 runs that call slow
 * services, but not 20 that compute. So it adapts, as congestion control does: the capacity grows while it is in use
 * and segments are fast, and shrinks when segments or Temporal get slow. Runs above it wait in PostgreSQL, where
 * organizations take turns; in a worker or in Temporal they would wait in the order of arrival.
 */
export class RunCapacity {
  active = INITIAL
  private readonly most: number
  private times: number[] = []
  private delays: number[] = []
  /** Delays before this time (ms since the epoch) are ignored: they belong to runs from before the last shrinking. */
  private delaysFrom = 0

  constructor(most: number) {
    this.most = most
  }

  /** Adjusts the capacity to the segments since the last call. `used`: the share of all workers' capacity in use. */
  adjust(used: number): void {
    const time = median(this.times)
    const delay = median(this.delays)
    this.times = []
    this.delays = []
    if (time === undefined) return
    const late = delay !== undefined && delay > LATE_MS
    if (late) this.delaysFrom = Date.now() + delay
    if (time > SLOW_MS || late) this.active = shrunk(this.active, LEAST)
    else if (used >= IN_USE) this.active = grown(this.active, this.most)
  }

  /** Records the time of one segment in milliseconds, from its schedule to its end. */
  record(ms: number): void {
    this.times.push(ms)
  }

  /** Records in how many milliseconds Temporal continued a run. */
  recordDelay(ms: number): void {
    if (Date.now() >= this.delaysFrom) this.delays.push(ms)
  }

  /** Measures the segments of the worker that has this interceptor. */
  interceptor(): ActivityInterceptorsFactory {
    return ({ info: { activityType, currentAttemptScheduledTimestampMs: scheduled } }) => ({
      inbound: {
        execute: async (input, next) => {
          try {
            return await next(input)
          } finally {
            if (activityType === 'advance') this.record(Date.now() - scheduled)
          }
        },
      },
    })
  }
}
