import { createServer, request } from 'node:http'
import type { AddressInfo } from 'node:net'

/** A local address that forwards to `target` and adds the key, for a client that cannot send one. */
export async function startWithKey(target: string, key: string) {
  const server = createServer((incoming, outgoing) => {
    // The Host of the client stays, since the service checks it.
    const headers = { ...incoming.headers, authorization: `Bearer ${key}` }
    const forwarded = request(new URL(incoming.url!, target), { method: incoming.method!, headers })
    forwarded.on('response', (response) => {
      outgoing.writeHead(response.statusCode!, response.headers)
      response.pipe(outgoing)
    })
    forwarded.on('error', () => outgoing.destroy())
    outgoing.on('close', () => forwarded.destroy())
    incoming.pipe(forwarded)
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  return {
    url: `http://localhost:${(server.address() as AddressInfo).port}`,
    close() {
      server.closeAllConnections()
      server.close()
    },
  }
}
