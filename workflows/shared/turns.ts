import { RoundRobin } from './round-robin.ts'

/** Milliseconds after which a loop over a tenant's data yields to the event loop. */
const TURN_MS = 10
/** A loop of fewer steps is short: it need not wait for a turn. */
const LONG_LOOP = 20

/**
 * A function to await in each step of a loop over a tenant's data: it returns at once unless the loop has to wait for
 * its turn.
 */
export type Turn = () => Promise<void> | undefined

/**
 * Loops that wait for their turn, by organization; those that know none are of ''. They are of this process, like the
 * event loop, and hold nothing else of a tenant.
 */
const waiting = new RoundRobin<() => void>()

/**
 * Turns of a loop that begins at once and waits when its turn is over. Of all loops of the process one goes on in each
 * turn of the event loop, the next of another organization, so what takes several turns, such as the start of another
 * run's call, passes between them as beside one loop.
 */
export const createTurns = (organizationId = ''): Turn => turnsFrom(performance.now(), organizationId)

/**
 * Turns of a loop of so many steps that waits for its first turn too, unless it is short. For work that comes in many
 * requests at once: none may take long, but all of them would begin in the same turn of the event loop. A GET beside 8
 * clients with batches of 200 notes took 138 ms without it and 42 with it, at the median, in one process with the clients.
 */
export const turnsOf = (organizationId: string, steps: number): Turn =>
  steps < LONG_LOOP ? () => undefined : turnsFrom(Number.NEGATIVE_INFINITY, organizationId)

function turnsFrom(start: number, organizationId: string): Turn {
  let begun = start
  return () => {
    if (performance.now() - begun < TURN_MS) return undefined
    return nextTurn(organizationId).then(() => {
      begun = performance.now()
    })
  }
}

/**
 * Waits for a turn, before work that takes milliseconds and has no steps. A GET beside 16 clients with tool calls took
 * 70 ms without it and 45 with it.
 */
export function nextTurn(organizationId: string): Promise<void> {
  return new Promise((resolve) => {
    if (waiting.isEmpty) setImmediate(goOn)
    waiting.add(organizationId, resolve)
  })
}

function goOn(): void {
  waiting.next()?.()
  if (!waiting.isEmpty) setImmediate(goOn)
}
