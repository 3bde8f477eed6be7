import type { Server, ServerResponse } from 'node:http'
import type { Socket } from 'node:net'

/** Interval of closing idle connections while a server drains. */
const CLOSE_IDLE_MS = 50
/** Time limit for the first byte of the first request of a new connection. */
const FIRST_BYTE_MS = 500

/** The shutdown of an HTTP server: requests in progress are answered, and their connections closed. */
export class Drain {
  private readonly server: Server
  /** The time when each socket was accepted. */
  private readonly sockets = new Map<Socket, number>()
  private readonly open = new Set<ServerResponse>()
  private draining = false

  /** Construct it before the application's request listener is registered: it must see a response before it is sent. */
  constructor(server: Server) {
    this.server = server
    server.on('connection', (socket) => {
      this.sockets.set(socket, performance.now())
      socket.once('close', () => this.sockets.delete(socket))
    })
    server.on('request', (_request, response) => {
      this.open.add(response)
      response.once('close', () => this.open.delete(response))
      if (this.draining) closeAfter(response)
    })
  }

  /** Every response now closes its connection, so that clients connect to another process. */
  begin(): void {
    this.draining = true
    for (const response of this.open) closeAfter(response)
  }

  /**
   * Stops accepting connections, closes the idle ones, and waits for the requests in progress, at most for
   * `milliseconds`. @returns how many requests were aborted.
   */
  async end(milliseconds: number): Promise<number> {
    this.begin()
    const closed = new Promise<void>((resolve) => this.server.close(() => resolve()))
    const timer = setInterval(() => this.closeIdle(), CLOSE_IDLE_MS)
    this.closeIdle()
    let cut = 0
    const deadline = setTimeout(() => {
      cut = this.open.size
      this.server.closeAllConnections()
    }, milliseconds)
    await closed
    clearInterval(timer)
    clearTimeout(deadline)
    return cut
  }

  private closeIdle(): void {
    this.server.closeIdleConnections()
    // Node does not count a connection as idle before its first request, which may be on its way.
    const latest = performance.now() - FIRST_BYTE_MS
    for (const [socket, accepted] of this.sockets)
      if (socket.bytesRead === 0 && accepted < latest) socket.destroy()
  }
}

function closeAfter(response: ServerResponse): void {
  if (!response.headersSent) response.setHeader('Connection', 'close')
}
