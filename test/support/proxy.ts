import { once } from 'node:events'
import { type AddressInfo, connect, createServer, type Socket } from 'node:net'

/** A TCP proxy that can hang (it keeps its connections, accepts new ones, and passes nothing on) or hold answers. */
export interface TestProxy {
  /** The given URL, through the proxy. */
  url: string
  hang(): void
  resume(): void
  /** Holds the target's responses on the current connections until a client has sent this text. */
  holdAnswersUntil(text: string): void
  close(): void
}

export async function startProxy(target: string): Promise<TestProxy> {
  const url = new URL(target)
  const sockets = new Set<Socket>()
  const upstreams = new Set<Socket>()
  let hangs = false
  let awaited: string | undefined
  const server = createServer((client) => {
    const upstream = connect(Number(url.port), url.hostname)
    client.on('data', (chunk) => {
      if (awaited === undefined || !chunk.includes(awaited)) return
      awaited = undefined
      upstream.resume()
    })
    upstreams.add(upstream)
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
    holdAnswersUntil(text) {
      awaited = text
      for (const upstream of upstreams) upstream.pause()
    },
    close() {
      for (const socket of sockets) socket.destroy()
      server.close()
    },
  }
}
