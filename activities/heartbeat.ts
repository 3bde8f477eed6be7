import { Context } from '@temporalio/activity'

/** The SDK sends at most one heartbeat per `maxHeartbeatThrottleInterval` of the worker. */
const INTERVAL_MS = 1_000
/** Seldom: after a loss of Temporal all calls of a worker look. */
const LOOK_MS = 5_000

/**
 * Sends heartbeats of the current activity during `work`: they deliver cancellations, and let Temporal detect a dead
 * worker. `signal` aborts when the activity is cancelled, not when an operator pauses it: a pause stops only the next
 * attempt.
 * @param goesOn asked at once and then every few seconds after Temporal has given the attempt up, because its worker was
 * frozen or Temporal lost: whether the work goes on. Default: it aborts.
 */
export async function withHeartbeat<T>(
  work: (signal: AbortSignal) => Promise<T>,
  goesOn: () => Promise<boolean> = async () => false,
): Promise<T> {
  const context = Context.current()
  const { cancellationSignal: cancelled } = context
  const abort = new AbortController()
  let timer = setInterval(() => context.heartbeat(), INTERVAL_MS)
  const look = () =>
    void goesOn().then((on) => {
      if (!on) abort.abort(cancelled.reason)
    })
  const onCancelled = () => {
    const { cancelRequested, paused, notFound, timedOut } = context.cancellationDetails ?? {}
    if (!cancelRequested && paused) return
    if (cancelRequested || !(notFound || timedOut)) return abort.abort(cancelled.reason)
    clearInterval(timer)
    timer = setInterval(look, LOOK_MS)
    look()
  }
  if (cancelled.aborted) onCancelled()
  else cancelled.addEventListener('abort', onCancelled, { once: true })
  try {
    return await work(abort.signal)
  } finally {
    clearInterval(timer)
    cancelled.removeEventListener('abort', onCancelled)
  }
}
