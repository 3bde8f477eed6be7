import { setImmediate } from 'node:timers/promises'

/** Milliseconds after which a loop over a tenant's data lets other work of the process have its turn. */
const TURN_MS = 10

/** A function to await in such a loop: it comes back at once until the turn is over. */
export function createTurns(): () => Promise<void> | undefined {
  let begun = performance.now()
  return () => {
    if (performance.now() - begun < TURN_MS) return undefined
    return setImmediate().then(() => {
      begun = performance.now()
    })
  }
}
