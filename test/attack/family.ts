import type { Ground } from './ground.ts'

/** A kind of attack: many attempts of the same idea. */
export interface Family {
  name: string
  title: string
  run(ground: Ground, tally: Tally): Promise<void>
}

/** Counts the attempts of a family, and keeps those that succeeded. */
export class Tally {
  attempts = 0
  readonly breaches: string[] = []

  /** Counts one attempt. `repelled`: whether it failed, as it should. */
  attempt(repelled: boolean, what: string): void {
    this.attempts++
    if (!repelled) this.breaches.push(what)
  }
}
