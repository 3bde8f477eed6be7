import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import type { TestStack } from '../support/stack.ts'

/** What the load needs, and what it counts. */
export interface Soak {
  apiUrl: string
  headers: Record<string, string>
  incoming: { url: string; secret: string }
  /** Milliseconds of each answered request since the last look. */
  times: number[]
  /** Requests that were not answered by 2xx. */
  failures: number
  /** The ids of what was accepted. */
  contacts: string[]
  incomingRecords: string[]
  runs: string[]
  /** How often each delivery arrived, by webhook-id. */
  received: Map<string, number>
  close(): Promise<void>
}

const spec = (url: string) => `name: Soak
nodes:
  call:
    type: api_request
    config: {method: POST, url: "${url}/call", body: {hello: world}}
  tell:
    type: set_fields
    config: {fields: {status: "{{ nodes.call.output.status }}"}}
`

export async function setUp(stack: TestStack): Promise<Soak> {
  const received = new Map<string, number>()
  const server = createServer((request, response) => {
    request.resume().on('end', () => {
      response.writeHead(200, { 'content-type': 'application/json' }).end('{}')
      const id = request.headers['webhook-id']
      if (typeof id === 'string') received.set(id, (received.get(id) ?? 0) + 1)
    })
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const outside = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
  const json = { 'content-type': 'application/json' }
  const post = async (path: string, headers: Record<string, string>, body: object) => {
    const answer = await fetch(stack.apiUrl + path, {
      method: 'POST',
      headers: { ...json, ...headers },
      body: JSON.stringify(body),
    })
    if (!answer.ok) throw new Error(`${path}: ${answer.status} ${await answer.text()}`)
    return { answer, body: (await answer.json()) as Record<string, string> }
  }
  const session = await post('/app/session', {}, stack.owner)
  const app = {
    cookie: session.answer.headers.get('set-cookie')!.split(';')[0]!,
    'x-csrf-token': session.body.csrf_token!,
  }
  await post('/app/webhooks/outgoing', app, {
    name: 'Soak',
    url: `${outside}/hook`,
    events: ['contact.created'],
    concurrency: 50,
  })
  const webhook = (await post('/app/webhooks/incoming', app, { name: 'Soak', rate_limit: 10_000 })).body
  const headers = { ...json, authorization: `Bearer ${stack.key}` }
  await post('/v1/workflows', headers, { spec: spec(outside) })
  return {
    apiUrl: stack.apiUrl,
    headers,
    incoming: { url: webhook.url!, secret: webhook.secret! },
    ...{ times: [], failures: 0, contacts: [], incomingRecords: [], runs: [], received },
    close: () =>
      new Promise((resolve) => {
        server.closeAllConnections()
        server.close(() => resolve())
      }),
  }
}
