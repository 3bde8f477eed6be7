import { once } from 'node:events'
import http2 from 'node:http2'
import type { AddressInfo } from 'node:net'

/** A proxy in front of a gRPC server that records a header of each call. */
export async function startHeaderProxy(address: string, header: string) {
  const seen: (string | undefined)[] = []
  const target = http2.connect(`http://${address}`)
  const sessions = new Set<http2.Http2Session>()
  const server = http2.createServer()
  server.on('session', (session) => sessions.add(session))
  server.on('stream', (stream, { [header]: value, ...headers }) => {
    seen.push(typeof value === 'string' ? value : undefined)
    const call = target.request(headers)
    let trailers: http2.IncomingHttpHeaders = {}
    call.on('response', (response) => stream.respond(response, { waitForTrailers: true }))
    call.on('trailers', (found) => {
      trailers = found
    })
    stream.on('wantTrailers', () => stream.sendTrailers(trailers))
    for (const side of [stream, call]) side.on('error', () => {})
    stream.on('close', () => call.close())
    stream.pipe(call).pipe(stream)
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  return {
    address: `127.0.0.1:${(server.address() as AddressInfo).port}`,
    /** The value of the header in each call so far. */
    seen,
    close() {
      for (const session of sessions) session.destroy()
      target.destroy()
      server.close()
    },
  }
}
