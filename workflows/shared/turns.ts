/** Milliseconds after which a loop over a tenant's data yields to the event loop. */
const TURN_MS = 10

/** Loops whose turn is over. They are of this process, like the event loop, and hold nothing of a tenant. */
const waiting: (() => void)[] = []

/**
 * A function to await in such a loop: it returns at once until the turn is over. Of all loops of the process one goes on
 * in each turn of the event loop, so what takes several turns, such as the start of another run's call, passes between
 * them as beside one loop.
 */
export function createTurns(): () => Promise<void> | undefined {
  let begun = performance.now()
  return () => {
    if (performance.now() - begun < TURN_MS) return undefined
    return nextTurn().then(() => {
      begun = performance.now()
    })
  }
}

function nextTurn(): Promise<void> {
  return new Promise((resolve) => {
    waiting.push(resolve)
    if (waiting.length === 1) setImmediate(goOn)
  })
}

function goOn(): void {
  waiting.shift()!()
  if (waiting.length > 0) setImmediate(goOn)
}
