/** Whoever waits for a run's end (`Prefer: wait`) asks here; one LISTEN connection serves them all. */
export class RunEnds {
  private readonly waiting = new Map<string, Set<() => void>>()

  /** Told of ends by the listener; without ids (it reconnected, something may be missed) everyone looks again. */
  ended(runIds: string[]): void {
    for (const id of runIds.length > 0 ? runIds : [...this.waiting.keys()])
      for (const wake of this.waiting.get(id) ?? []) wake()
  }

  /**
   * Polls `read` at every hint, and twice a second besides, until it returns something, the time is over or the
   * caller has gone. @returns what `read` gave, else undefined.
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
        hinted = false
        const found = await read()
        const left = deadline - Date.now()
        if (found !== undefined || left <= 0 || signal.aborted) return found
        if (!hinted)
          await new Promise<void>((resolve) => {
            const timer = setTimeout(resolve, Math.min(500, left))
            wake = () => {
              clearTimeout(timer)
              resolve()
            }
          })
      }
    } finally {
      signal.removeEventListener('abort', hint)
      hints.delete(hint)
      if (hints.size === 0) this.waiting.delete(runId)
    }
  }
}
