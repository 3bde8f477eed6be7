import { createServer, type IncomingHttpHeaders } from 'node:http'
import type { AddressInfo } from 'node:net'

export interface Received {
  headers: Record<string, string>
  body: string
}

/** The next answer of the receiver; by default it accepts. */
export type Behaviour = number | { status: number; headers: IncomingHttpHeaders } | 'hang'

/** A third-party endpoint that receives webhooks. */
export async function startReceiver() {
  const received: Received[] = []
  const next: Behaviour[] = []
  let hungUp = 0
  let delay = 0
  let held: Promise<void> | undefined
  let open = 0
  let mostOpen = 0
  let test = 0
  const server = createServer(async (request, response) => {
    let body = ''
    for await (const chunk of request) body += chunk
    // Meant for an earlier test, which failed: accepted, and not shown to this one.
    if (test > 0 && request.url !== `/${test}`) return response.writeHead(204).end()
    received.push({ headers: request.headers as Record<string, string>, body })
    const behaviour = next.shift() ?? 204
    mostOpen = Math.max(mostOpen, ++open)
    let isOpen = true
    const close = () => {
      if (isOpen) open--
      isOpen = false
    }
    response.on('close', close)
    await held
    if (delay > 0) await new Promise((resolve) => setTimeout(resolve, delay))
    if (behaviour === 'hang') {
      response.on('close', () => hungUp++)
      return
    }
    // Before the response: the sender's next request may otherwise arrive before this event.
    close()
    if (typeof behaviour === 'number') response.writeHead(behaviour, { location: '/elsewhere' }).end()
    else response.writeHead(behaviour.status, behaviour.headers).end()
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  return {
    get url() {
      return `http://127.0.0.1:${(server.address() as AddressInfo).port}/${test || ''}`
    },
    received,
    /** Number of connections that the sender closed before the response. */
    hungUp: () => hungUp,
    /** Delays every later answer by this many milliseconds. */
    answerAfter(milliseconds: number) {
      delay = milliseconds
      mostOpen = 0
    },
    /** Answers later requests only after the returned function is called. */
    hold(): () => void {
      let release = () => {}
      held = new Promise((resolve) => {
        release = resolve
      })
      mostOpen = 0
      return release
    },
    /** The maximum of concurrent requests since `answerAfter` or `hold`. */
    mostAtOnce: () => mostOpen,
    /** Starts anew for the next test, with another URL: what is sent to the former one is accepted and not counted. */
    reset() {
      test++
      this.behave()
    },
    /** Clears the received requests, and sets the answers to the next ones. */
    behave(...behaviours: Behaviour[]) {
      received.length = 0
      delay = 0
      held = undefined
      next.splice(0, next.length, ...behaviours)
    },
    close() {
      server.closeAllConnections()
      server.close()
    },
  }
}

export type Receiver = Awaited<ReturnType<typeof startReceiver>>
