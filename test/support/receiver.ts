import { createServer, type IncomingHttpHeaders } from 'node:http'
import type { AddressInfo } from 'node:net'

export interface Received {
  headers: Record<string, string>
  body: string
}

/** What the receiver does next; the default is to accept. */
export type Behaviour = number | { status: number; headers: IncomingHttpHeaders } | 'hang'

/** An endpoint of someone else's, that webhooks are sent to. */
export async function startReceiver() {
  const received: Received[] = []
  const next: Behaviour[] = []
  let hungUp = 0
  let delay = 0
  let open = 0
  let mostOpen = 0
  const server = createServer(async (request, response) => {
    let body = ''
    for await (const chunk of request) body += chunk
    received.push({ headers: request.headers as Record<string, string>, body })
    const behaviour = next.shift() ?? 204
    mostOpen = Math.max(mostOpen, ++open)
    response.on('close', () => open--)
    if (delay > 0) await new Promise((resolve) => setTimeout(resolve, delay))
    if (behaviour === 'hang') response.on('close', () => hungUp++)
    else if (typeof behaviour === 'number') response.writeHead(behaviour, { location: '/elsewhere' }).end()
    else response.writeHead(behaviour.status, behaviour.headers).end()
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/`,
    received,
    /** How often the sender hung up on an answer that did not come. */
    hungUp: () => hungUp,
    /** From now on every answer takes so many milliseconds. */
    answerAfter(milliseconds: number) {
      delay = milliseconds
      mostOpen = 0
    },
    /** How many requests were open at the same time, since `answerAfter`. */
    mostAtOnce: () => mostOpen,
    /** Forgets what came; the next requests are answered like this. */
    behave(...behaviours: Behaviour[]) {
      received.length = 0
      delay = 0
      next.splice(0, next.length, ...behaviours)
    },
    close() {
      server.closeAllConnections()
      server.close()
    },
  }
}

export type Receiver = Awaited<ReturnType<typeof startReceiver>>
