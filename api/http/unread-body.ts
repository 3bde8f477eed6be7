import type { IncomingMessage, ServerResponse } from 'node:http'

/** Bytes of an unread body that are read and discarded, so that the connection can serve the next request. */
const DISCARDED = 64 * 1024
/** For the client to read the response before the connection is closed. */
const LINGER_MS = 1_000

/**
 * Ends the connection after a response that was decided before the body was read, if much of the body is left: Node
 * would read all of it first. The rest is not read, and the socket is closed a moment later: closing it at once would
 * reset the connection, and many clients would see only the reset.
 */
export function closeIfUnread(request: IncomingMessage, response: ServerResponse): void {
  if (request.complete || response.headersSent) return
  // Reading has stopped before the end: for size or time.
  if (!request.isPaused() && !isLarge(request)) return
  response.setHeader('Connection', 'close')
  let left = DISCARDED
  // A listener of our own keeps Node from discarding the whole body when the response is finished.
  request.on('data', (chunk: Buffer) => {
    left -= chunk.length
    if (left < 0) request.pause()
  })
  const { socket } = request
  // Node calls it after the last response of a connection.
  socket.destroySoon = () => {
    socket.end()
    setTimeout(() => socket.destroy(), LINGER_MS).unref()
  }
}

/** Without a length, the body may be of any size. */
function isLarge({ headers }: IncomingMessage): boolean {
  const length = headers['content-length']
  return length === undefined ? headers['transfer-encoding'] !== undefined : Number(length) > DISCARDED
}
