import { workflowInfo } from '@temporalio/workflow'

/**
 * When a run with a long history continues as new. A call in progress would be repeated then, so no node starts until
 * all calls have ended. If that takes long, nodes start again until the history is twice as long: a call of an hour
 * must not hold up all others. Only near Temporal's limits calls are repeated, with the same idempotency key.
 */
export class Renewal {
  /** Whether no node may start. */
  drain = false
  private looks = 0
  /** The part of Temporal's limits from which nodes stop to start. */
  private from = 0
  private readonly mostLooks: number

  constructor(mostLooks: number) {
    this.mostLooks = mostLooks
  }

  /**
   * Whether the workflow may continue as new.
   * @param waits `open`: the nodes that it waits for; `calls`: whether calls are among them; `busy`: whether one would be
   * repeated.
   */
  static isDue({ open, calls, busy }: { open: number; calls: boolean; busy: boolean }): boolean {
    const { continueAsNewSuggested, historyLength } = workflowInfo()
    // The new history begins with an event for each of them.
    const isShorter = historyLength > 2 * open
    return continueAsNewSuggested && isShorter && (!calls || !busy || used() >= MOST)
  }

  /** After a segment that does not continue as new. @returns whether nodes may start again, so that the next one is due. */
  update(): boolean {
    if (!this.drain) {
      this.drain = workflowInfo().continueAsNewSuggested && used() >= this.from
      this.looks = 0
      return false
    }
    if (this.looks < this.mostLooks || 2 * used() >= MOST) return false
    this.drain = false
    this.from = 2 * used()
    return true
  }

  /** Nothing has happened for a while. */
  looked(): void {
    this.looks += 1
  }
}

/** The part of its limits that a history may reach, so that there is room for the end of the run. */
const MOST = 0.8

/** Temporal terminates a workflow beyond these (`limit.historyCount.error`, `limit.historySize.error`). */
const LIMITS = { events: 51_200, bytes: 50 * 1024 * 1024 }

const used = () => {
  const { historyLength, historySize } = workflowInfo()
  return Math.max(historyLength / LIMITS.events, historySize / LIMITS.bytes)
}
