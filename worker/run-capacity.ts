import type { ActivityInterceptorsFactory } from '@temporalio/worker'

const INITIAL = 32
/** Even a slow worker goes on. */
const LEAST = 8
/** The median time of a segment above which the worker has too many runs; an idle worker takes some 10 ms. */
const SLOW_MS = 100
/**
 * The median time in which Temporal continues a run after a timer or an external node, above which Temporal has too many
 * runs; an idle one takes some 20 ms. Above a second its tasks exceed their deadline, and are done again and again.
 */
const LATE_MS = 500
const SHRINK = 0.7
/** Slower than it shrinks: runs that start together are also slow together. */
const GROW = 1.2
/** The share of the capacity that must be in use before it grows: otherwise nothing shows that the worker carries more. */
const IN_USE = 0.8

/**
 * How many active runs a worker carries. Slots do not tell: 250 runs that call slow services fit where 20 that compute
 * do not. So it is measured, as in congestion control: the capacity grows as long as it is in use and segments are
 * fast, and shrinks when they, or Temporal, get slow. What is above it waits in PostgreSQL, where organizations take
 * turns; within a worker or Temporal it would wait in the order of arrival.
 */
export class RunCapacity {
  active = INITIAL
  private readonly most: number
  private times: number[] = []
  private delays: number[] = []
  /** The delays of runs that were active before it last shrank say nothing new until then (ms since the epoch). */
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
    if (time > SLOW_MS || late) this.active = Math.max(LEAST, Math.floor(this.active * SHRINK))
    else if (used >= IN_USE) this.active = Math.min(this.most, Math.ceil(this.active * GROW))
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

const median = (values: number[]): number | undefined =>
  values.sort((a, b) => a - b)[Math.floor(values.length / 2)]
