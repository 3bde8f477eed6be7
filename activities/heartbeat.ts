import { Context } from '@temporalio/activity'

/** The SDK sends at most one heartbeat per `maxHeartbeatThrottleInterval` of the worker. */
const INTERVAL_MS = 1_000

/**
 * Sends heartbeats of the current activity during `work`: they deliver cancellations, and let Temporal detect a dead
 * worker. `signal` aborts when the activity is cancelled.
 */
export async function withHeartbeat<T>(work: (signal: AbortSignal) => Promise<T>): Promise<T> {
  const context = Context.current()
  const timer = setInterval(() => context.heartbeat(), INTERVAL_MS)
  try {
    return await work(context.cancellationSignal)
  } finally {
    clearInterval(timer)
  }
}
