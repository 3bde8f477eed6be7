import { CancelledFailure } from '@temporalio/activity'
import type { NodeInput } from '../workflows/bundle/protocol.ts'
import { withHeartbeat } from './heartbeat.ts'

/** An attempt that this process makes. */
interface OwnAttempt {
  abort: AbortController
  outcome: Promise<void>
  /** Whether its row still belongs to it. */
  owns: () => Promise<boolean>
}

/** Called once the row of an attempt belongs to it, with a function that tells whether it still does. */
export type OnBegun = (owns: () => Promise<boolean>) => void

type Make = (signal: AbortSignal, begun: OnBegun) => Promise<void>

/**
 * The attempts that this process makes. Temporal gives an attempt up that sends no heartbeat for ten seconds, also if its
 * process was only frozen or had no CPU time, and begins another one. The first one goes on, and if the other comes to
 * this process too, it waits for the first one and has its outcome: the call is not repeated.
 */
export class OwnAttempts {
  private readonly attempts = new Map<string, OwnAttempt>()

  /** Makes an attempt of a node with heartbeats, or waits for the one in progress. */
  async join({ run_id, path = '', node }: NodeInput, make: Make): Promise<void> {
    const key = `${run_id}/${path}/${node}`
    for (let other = this.attempts.get(key); other; other = this.attempts.get(key))
      try {
        return await waitFor(other)
      } catch (error) {
        // It was aborted, as that of a workflow that another one has replaced.
        if (!(error instanceof CancelledFailure)) throw error
      }
    const abort = new AbortController()
    const attempt: OwnAttempt = { abort, outcome: Promise.resolve(), owns: async () => false }
    attempt.outcome = make(abort.signal, (owns) => {
      attempt.owns = owns
    }).finally(() => this.attempts.delete(key))
    this.attempts.set(key, attempt)
    await waitFor(attempt)
  }
}

const waitFor = (attempt: OwnAttempt) =>
  withHeartbeat(
    (signal) => {
      const abort = () => attempt.abort.abort(signal.reason)
      if (signal.aborted) abort()
      else signal.addEventListener('abort', abort, { once: true })
      return attempt.outcome
    },
    () => attempt.owns(),
  )
