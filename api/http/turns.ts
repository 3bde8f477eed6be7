import type { RequestListener, Server } from 'node:http'
import { PROBES } from './trace.ts'

/** Requests that a turn of the event loop begins at most, of those that wait. */
const BEGUN = 4
/** After it, a request begins although connections still arrive. */
const MOST_MS = 250

/**
 * Accepts a burst of new connections before it begins their requests, then begins a few in each turn of the event loop;
 * probes begin at once. Node accepts one connection per turn. If each turn also began the request of the connection
 * before, the last of a burst would wait for the work of all: `/healthz` took 5.1 s beside 220 new connections, while no
 * turn took longer than 0.4 s. Requests of connections that are open already begin at once unless others wait.
 *
 * @param options.mostMs the longest time that a request waits for connections that still arrive.
 */
export function inTurns(server: Server, begin: RequestListener, { mostMs = MOST_MS } = {}): RequestListener {
  const waiting: { args: Parameters<RequestListener>; since: number }[] = []
  let isAccepting = false
  let isTurning = false
  const endTurn = () => {
    const [first] = waiting
    if (first && (!isAccepting || performance.now() - first.since > mostMs))
      for (const { args } of waiting.splice(0, BEGUN)) begin(...args)
    isTurning = isAccepting || waiting.length > 0
    isAccepting = false
    // After the next poll for events, which accepts the next connection.
    if (isTurning) setImmediate(endTurn)
  }
  server.on('connection', () => {
    isAccepting = true
    if (isTurning) return
    isTurning = true
    setImmediate(endTurn)
  })
  return (...args) => {
    if (!isTurning || PROBES.includes(args[0].url ?? '')) begin(...args)
    else waiting.push({ args, since: performance.now() })
  }
}
