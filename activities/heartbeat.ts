import { Context } from '@temporalio/activity'

/** The SDK sends at most one heartbeat per `maxHeartbeatThrottleInterval` of the worker. */
const INTERVAL_MS = 1_000

/**
 * Sends heartbeats of the current activity during `work`: they deliver cancellations, and let Temporal detect a dead
 * worker. `signal` aborts when the activity is cancelled, not when an operator pauses it: a pause stops only the next
 * attempt.
 */
export async function withHeartbeat<T>(work: (signal: AbortSignal) => Promise<T>): Promise<T> {
  const context = Context.current()
  const { cancellationSignal: cancelled } = context
  const abort = new AbortController()
  const onCancelled = () => {
    const { cancelRequested, paused } = context.cancellationDetails ?? {}
    if (cancelRequested || !paused) abort.abort(cancelled.reason)
  }
  if (cancelled.aborted) onCancelled()
  else cancelled.addEventListener('abort', onCancelled, { once: true })
  const timer = setInterval(() => context.heartbeat(), INTERVAL_MS)
  try {
    return await work(abort.signal)
  } finally {
    clearInterval(timer)
    cancelled.removeEventListener('abort', onCancelled)
  }
}
