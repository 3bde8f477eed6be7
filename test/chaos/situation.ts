import type { Load } from '../load/operations.ts'
import type { Outside } from '../load/outside.ts'
import type { System, SystemOptions } from './system.ts'

/** The system that a fault affects. */
export interface Situation {
  system: System
  outside: Outside
  load: Load
  /** Prints a line of the progress. */
  say(line: string): void
}

/** A fault that occurs while the load continues. */
export interface Fault {
  name: string
  title: string
  /** What this machine lacks for it, if anything: it is left out then. */
  missing?(): string | undefined
  /** Whether it needs a second api and worker. */
  second?: true
  /** It needs a system of its own. */
  system?: SystemOptions
  /** Above this number of open runs clients wait. */
  openRuns?: number
  /**
   * `kill`: the remaining and the restarted parts must take over within the limits of `endure.ts`. Otherwise recovery
   * may have to wait for the sweep, which runs once a minute.
   */
  kind: 'kill' | 'outage' | 'loss'
  /** Resolves when the fault is over: the killed parts are dead, the frozen ones are resumed. */
  strike(on: Situation): Promise<{ restoredTo?: number }>
}
