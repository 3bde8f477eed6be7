import { once } from 'node:events'
import { type AddressInfo, connect, createServer, type Socket } from 'node:net'

/** A TCP proxy that can hang: it keeps its connections, accepts new ones, and passes nothing on. */
export interface TestProxy {
  /** The given URL, through the proxy. */
  url: string
  hang(): void
  resume(): void
  close(): void
}

export async function startProxy(target: string): Promise<TestProxy> {
  const url = new URL(target)
  const sockets = new Set<Socket>()
  let hangs = false
  const server = createServer((client) => {
    const upstream = connect(Number(url.port), url.hostname)
    for (const [socket, other] of [
      [client, upstream],
      [upstream, client],
    ] as const) {
      sockets.add(socket)
      socket.on('data', (chunk) => other.write(chunk))
      socket.on('error', () => {})
      socket.on('close', () => {
        sockets.delete(socket)
        other.destroy()
      })
      if (hangs) socket.pause()
    }
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  const through = new URL(target)
  through.hostname = '127.0.0.1'
  through.port = String((server.address() as AddressInfo).port)
  return {
    url: through.href,
    hang() {
      hangs = true
      for (const socket of sockets) socket.pause()
    },
    resume() {
      hangs = false
      for (const socket of sockets) socket.resume()
    },
    close() {
      for (const socket of sockets) socket.destroy()
      server.close()
    },
  }
}
