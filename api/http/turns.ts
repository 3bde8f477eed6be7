import type { IncomingMessage, RequestListener, Server } from 'node:http'
import { RoundRobin } from '../../workflows/shared/round-robin.ts'
import { PROBES } from './trace.ts'

/** How many waiting requests a turn of the event loop begins: `afterLight` if the last turn took less than `lightMs`. */
const BEGUN = { lightMs: 10, afterLight: 16, otherwise: 1 }
/** Requests wait for at most this many new connections, which is the backlog of the socket. */
const MOST_ACCEPTED = 512

/**
 * Accepts a burst of new connections before it begins their requests, then begins few in each turn of the event loop;
 * probes begin at once. Node accepts one connection per turn. If each turn also did the work of those accepted before,
 * the last of a burst would wait for the work of all: `/healthz` took 5.1 s beside 220 new connections, 4.8 of them in
 * the queue of the socket, though hardly a turn took longer than a second. Requests of connections that are open already
 * begin at once unless others wait. Of those that wait, callers take turns.
 */
export function inTurns(
  server: Server,
  begin: RequestListener,
  { mostAccepted = MOST_ACCEPTED } = {},
): RequestListener {
  const waiting = new RoundRobin<Parameters<RequestListener>>()
  /** The connections that were accepted before requests began to wait. */
  let acceptedBefore = 0
  let accepted = 0
  let atLastTurn = 0
  let turnBegan = 0
  let isTurning = false
  const endTurn = () => {
    const isAccepting = accepted > atLastTurn
    atLastTurn = accepted
    if (!isAccepting || accepted - acceptedBefore > mostAccepted) {
      const isLight = performance.now() - turnBegan < BEGUN.lightMs
      for (let left = isLight ? BEGUN.afterLight : BEGUN.otherwise; left > 0; left--) {
        const next = waiting.next()
        if (next) begin(...next)
      }
    }
    isTurning = isAccepting || !waiting.isEmpty
    // After the next poll for events, which accepts the next connection.
    if (isTurning) nextTurn()
  }
  const nextTurn = () => {
    turnBegan = performance.now()
    setImmediate(endTurn)
  }
  server.on('connection', () => {
    accepted++
    if (isTurning) return
    isTurning = true
    nextTurn()
  })
  return (...args) => {
    if (!isTurning || PROBES.includes(args[0].url ?? '')) return begin(...args)
    if (waiting.isEmpty) acceptedBefore = accepted
    waiting.add(callerOf(args[0]), args)
  }
}

/**
 * The credential: the organization is not known yet. Without one the path, which has the id of an incoming webhook; its
 * query may be another one each time, as a signature is. A client that invents credentials has turns for each, but waits
 * with no more requests than MAX_CONNECTIONS_PER_ADDRESS.
 */
const callerOf = ({ headers, url = '' }: IncomingMessage): string =>
  headers.authorization ?? headers.cookie ?? url.split('?', 1)[0]!
