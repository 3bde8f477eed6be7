import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'

export interface HttpServer {
  /** `http://127.0.0.1:<port>` */
  url: string
  /** Also closes open connections. */
  close(): Promise<void>
}

/** A server of a third party at a free port. `listener` gets the body of the request as text. */
export async function startHttpServer(
  listener: (request: IncomingMessage, response: ServerResponse, body: string) => unknown,
): Promise<HttpServer> {
  const server = createServer(async (request, response) => {
    let body = ''
    for await (const chunk of request) body += chunk
    await listener(request, response, body)
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    async close() {
      const closed = new Promise((resolve) => server.close(resolve))
      server.closeAllConnections()
      await closed
    },
  }
}
