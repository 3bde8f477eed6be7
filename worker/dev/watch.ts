import { setTimeout as sleep } from 'node:timers/promises'

/** Failures in a row over so long are a hang (a slow process has a success between); the pause after each call. */
const MILLISECONDS = { hangs: 20_000, pause: 1_000 }
/** One failure may last long without a hang: this process, too, may have been stopped meanwhile. */
const HANGS_FAILURES = 4

export interface Watched {
  /** Rejects if the process does not work; bounded in time. */
  ask(): Promise<void>
  /** Changes when another process has been started, which may take as long as it needs until its first answer. */
  pid(): number | undefined
  /** Called when a process that has answered does not work any more. */
  hangs(milliseconds: number, reason: string): void
}

/** Watches a process that can live without working: its end is seen by its parent, this is not. */
export function watch({ ask, pid, hangs }: Watched, times = MILLISECONDS): { stop(): void } {
  const stopping = new AbortController()
  void (async () => {
    /** The process that has answered, and its failures since. */
    let known: number | undefined
    let failures = 0
    let since = 0
    while (!stopping.signal.aborted) {
      const asked = pid()
      const started = Date.now()
      try {
        await ask()
        known = asked
        failures = 0
      } catch (error) {
        if (stopping.signal.aborted || asked === undefined || known !== asked || pid() !== asked) failures = 0
        else {
          if (failures++ === 0) since = started
          if (failures >= HANGS_FAILURES && Date.now() - since >= times.hangs) {
            known = undefined
            hangs(Date.now() - since, error instanceof Error ? error.message : String(error))
          }
        }
      }
      await sleep(times.pause, undefined, { signal: stopping.signal }).catch(() => {})
    }
  })()
  return { stop: () => stopping.abort() }
}
