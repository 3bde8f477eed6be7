import { Context } from '@temporalio/activity'

/** A third of the lease of a slot (`SLOT_END`), so that one failed renewal does not lose it. */
const RENEW_MS = 2_000

/**
 * Renews the lease of an attempt's slot while the attempt is sent. A signal to the workflow cancels the activity, but
 * says nothing about the delivery: the request is aborted only if `renew` finds that the attempt may not go on.
 * @param renew renews the lease; it resolves to whether the delivery still wants this attempt.
 * @returns the signal that aborts the request, and `release`, which ends the renewals.
 */
export function holdSlot(renew: () => Promise<boolean>): { signal: AbortSignal; release(): void } {
  const context = Context.current()
  const cancelled = context.cancellationSignal
  const abort = new AbortController()
  const stop = () => abort.abort(cancelled.reason)

  /** Does not abort while the database is unavailable. */
  async function check(): Promise<void> {
    const goesOn = await renew().catch(() => true)
    if (!goesOn && cancelled.aborted) stop()
  }
  function onCancelled(): void {
    const details = context.cancellationDetails
    if (details?.cancelRequested || details?.paused) void check()
    else stop()
  }

  const timer = setInterval(check, RENEW_MS)
  if (cancelled.aborted) onCancelled()
  else cancelled.addEventListener('abort', onCancelled, { once: true })
  return {
    signal: abort.signal,
    release() {
      clearInterval(timer)
      cancelled.removeEventListener('abort', onCancelled)
    },
  }
}
