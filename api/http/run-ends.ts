import type { System } from '../../db/postgres/tenancy.ts'
import { getRunEnds, type RunKey } from '../../db/runs/views.ts'
import { coalesce } from './coalesce.ts'

const POLL_MS = 1_000

/**
 * Waits for the ends of runs (`Prefer: wait`) and for changes of streamed runs. All waiting requests share one LISTEN
 * connection.
 */
export class RunEnds {
  private readonly waiting = new Map<string, Set<() => void>>()
  private stopped = false
  /** Reads the end of a run; undefined while the run is open. */
  readonly read: ReturnType<typeof readTogether>

  constructor(system: System) {
    this.read = readTogether(system)
  }

  /**
   * Called by the listener. Wakes all waiting requests if called without ids, because a reconnect can lose
   * notifications.
   */
  ended(runIds: string[]): void {
    for (const id of runIds.length > 0 ? runIds : [...this.waiting.keys()])
      for (const wake of this.waiting.get(id) ?? []) wake()
  }

  /** Ends all current and later waits: each reads once and returns. */
  stop(): void {
    this.stopped = true
    this.ended([])
  }

  /**
   * Calls `read` at each notification and each full second until it returns a value, the time is over, the client has
   * disconnected or the process stops. It does not read immediately, because the run has just been created.
   * @returns the result of `read`, else undefined.
   */
  async wait<T>(
    runId: string | readonly string[],
    milliseconds: number,
    signal: AbortSignal,
    read: () => Promise<T | undefined>,
  ) {
    const deadline = Date.now() + milliseconds
    let notified = false
    let wake = () => {}
    const notify = () => {
      notified = true
      wake()
    }
    const runIds = [runId].flat()
    for (const id of runIds) this.waiting.set(id, (this.waiting.get(id) ?? new Set()).add(notify))
    signal.addEventListener('abort', notify)
    try {
      for (;;) {
        const left = deadline - Date.now()
        if (!notified && !signal.aborted && !this.stopped)
          await new Promise<void>((resolve) => {
            const timer = setTimeout(resolve, Math.min(untilPoll(), left))
            wake = () => {
              clearTimeout(timer)
              resolve()
            }
          })
        notified = false
        const found = await read()
        const over = Date.now() >= deadline || signal.aborted || this.stopped
        if (found !== undefined || over) return found
      }
    } finally {
      signal.removeEventListener('abort', notify)
      for (const id of runIds) {
        const listeners = this.waiting.get(id)
        listeners?.delete(notify)
        if (listeners?.size === 0) this.waiting.delete(id)
      }
    }
  }
}

/** The polls of all waiting requests are aligned, so that they share statements. */
const untilPoll = () => POLL_MS - (Date.now() % POLL_MS)

const readTogether = (system: System) =>
  coalesce(
    (run: RunKey) => run.id,
    (runs) => getRunEnds(system, runs),
  )
