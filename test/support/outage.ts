import { connect, createServer, type Server, type Socket } from 'node:net'

/** A TCP proxy to PostgreSQL that a test can cut: its connections break, and new ones are refused. */
export interface Outage {
  /** The URL of the database through the proxy. */
  url: string
  begin(): Promise<void>
  end(): Promise<void>
}

/** @param url of the database. Call `begin()` in `after`: it closes everything. */
export async function createOutage(url: string): Promise<Outage> {
  const target = new URL(url)
  const sockets = new Set<Socket>()
  const listen = (port: number) =>
    new Promise<Server>((resolve, reject) => {
      const server = createServer((client) => {
        const upstream = connect(Number(target.port || 5432), target.hostname)
        for (const socket of [client, upstream]) {
          sockets.add(socket)
          socket.on('close', () => sockets.delete(socket)).on('error', () => {})
        }
        client.pipe(upstream).on('close', () => client.destroy())
        upstream.pipe(client).on('close', () => upstream.destroy())
      })
      server.once('error', reject).listen(port, '127.0.0.1', () => resolve(server))
    })
  let server: Server | undefined = await listen(0)
  const { port } = server.address() as { port: number }
  const through = new URL(url)
  through.host = `127.0.0.1:${port}`
  return {
    url: through.href,
    async begin() {
      const closed = new Promise((resolve) => (server ? server.close(resolve) : resolve(undefined)))
      server = undefined
      for (const socket of sockets) socket.destroy()
      await closed
    },
    async end() {
      server ??= await listen(port)
    },
  }
}
