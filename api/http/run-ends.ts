import type { System } from '../../db/postgres/tenancy.ts'
import { getRunEnds, type RunKey } from '../../db/runs/views.ts'
import { coalesce } from './coalesce.ts'

const POLL_MS = 1_000

/** Whoever waits for a run's end (`Prefer: wait`) asks here; one LISTEN connection serves them all. */
export class RunEnds {
  private readonly waiting = new Map<string, Set<() => void>>()
  /** How a run ended; undefined while it has not. */
  readonly read: ReturnType<typeof readTogether>

  constructor(system: System) {
    this.read = readTogether(system)
  }

  /** Told of ends by the listener; without ids (it reconnected, something may be missed) everyone looks again. */
  ended(runIds: string[]): void {
    for (const id of runIds.length > 0 ? runIds : [...this.waiting.keys()])
      for (const wake of this.waiting.get(id) ?? []) wake()
  }

  /**
   * Polls `read` at every hint, and once a second besides, until it returns something, the time is over or the
   * caller has gone. Called right after what it waits for was begun, it does not look at once.
   * @returns what `read` gave, else undefined.
   */
  async wait<T>(
    runId: string,
    milliseconds: number,
    signal: AbortSignal,
    read: () => Promise<T | undefined>,
  ) {
    const deadline = Date.now() + milliseconds
    let hinted = false
    let wake = () => {}
    const hint = () => {
      hinted = true
      wake()
    }
    const hints = this.waiting.get(runId) ?? new Set()
    this.waiting.set(runId, hints.add(hint))
    signal.addEventListener('abort', hint)
    try {
      for (;;) {
        const left = deadline - Date.now()
        if (!hinted && !signal.aborted)
          await new Promise<void>((resolve) => {
            const timer = setTimeout(resolve, Math.min(POLL_MS, left))
            wake = () => {
              clearTimeout(timer)
              resolve()
            }
          })
        hinted = false
        const found = await read()
        if (found !== undefined || Date.now() >= deadline || signal.aborted) return found
      }
    } finally {
      signal.removeEventListener('abort', hint)
      hints.delete(hint)
      if (hints.size === 0) this.waiting.delete(runId)
    }
  }
}

const readTogether = (system: System) =>
  coalesce(
    (run: RunKey) => run.id,
    (runs) => getRunEnds(system, runs),
  )
