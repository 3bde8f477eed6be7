import { setImmediate } from 'node:timers/promises'

/** Milliseconds after which a loop over a tenant's data yields to the event loop. */
const TURN_MS = 10

/** A function to await in such a loop: it returns at once until the turn is over. */
export function createTurns(): () => Promise<void> | undefined {
  let begun = performance.now()
  return () => {
    if (performance.now() - begun < TURN_MS) return undefined
    return setImmediate().then(() => {
      begun = performance.now()
    })
  }
}
