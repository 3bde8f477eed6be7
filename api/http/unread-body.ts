import type { IncomingMessage, ServerResponse } from 'node:http'

/**
 * Maximum number of bytes of another unread body that are discarded, so that the connection can serve another request.
 */
const DISCARDED = 64 * 1024
/** Time for the client to read the response before the connection is closed. */
const LINGER_MS = 1_000

/**
 * Closes the connection after a response that was sent before the body was read, if much of the body is left: Node
 * would read all of it first. The socket is closed a moment later: closing it at once would reset the connection, and
 * many clients would see only the reset. The rest of an accepted upload is discarded instead, because a client that
 * sends all of it before it reads would see the reset even so.
 *
 * @param accepted the bytes of a body that the route accepts from this caller.
 */
export function closeIfUnread(
  request: IncomingMessage,
  response: ServerResponse,
  accepted = DISCARDED,
): void {
  if (request.complete || response.headersSent) return
  // Reading has stopped before the end, because of the size or time limit.
  if (!request.isPaused() && !isLarge(request, accepted)) return
  response.setHeader('Connection', 'close')
  let left = DISCARDED
  // With a listener, Node does not discard the whole body when the response is finished.
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

/** Without Content-Length, the body may have any size. */
function isLarge({ headers }: IncomingMessage, accepted: number): boolean {
  const length = headers['content-length']
  return length === undefined ? headers['transfer-encoding'] !== undefined : Number(length) > accepted
}
