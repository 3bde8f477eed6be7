import { createServer, type IncomingHttpHeaders } from 'node:http'
import type { AddressInfo } from 'node:net'
import { Webhook } from 'standardwebhooks'
import { caller, signInOwner } from './caller.ts'
import type { TestStack } from './stack.ts'

/** A third-party server on this machine: a CRM that workflows call, and a receiver of outgoing webhooks. */
export interface Outside {
  url: string
  /** The bodies of requests to /crm. */
  calls: Record<string, unknown>[]
  /** The verified deliveries to /hooks; `id` is the webhook-id. */
  hooks: { id: string; event: string; data: Record<string, unknown> }[]
  /** Deliveries that failed verification. */
  forged: string[]
  /** The secret that the receiver verifies with. */
  secret: string
  close(): Promise<void>
}

export async function startOutside(): Promise<Outside> {
  const outside: Outside = {
    url: '',
    calls: [],
    hooks: [],
    forged: [],
    secret: '',
    close: () =>
      new Promise((resolve) => {
        server.closeAllConnections()
        server.close(() => resolve())
      }),
  }
  const server = createServer(async (request, response) => {
    let body = ''
    for await (const chunk of request) body += chunk
    if (request.url === '/crm') outside.calls.push(JSON.parse(body))
    else receive(outside, request.headers, body)
    response.writeHead(200, { 'content-type': 'application/json' }).end('{"accepted":true}')
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  outside.url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
  return outside
}

function receive(outside: Outside, headers: IncomingHttpHeaders, body: string): void {
  try {
    const payload = new Webhook(outside.secret).verify(body, headers as Record<string, string>)
    outside.hooks.push({ ...(payload as Outside['hooks'][number]), id: String(headers['webhook-id']) })
  } catch (error) {
    outside.forged.push(`${error}`)
  }
}

/** A workflow through a condition, a delay and an api_request, as its author writes it. */
const spec = (url: string) => `name: Welcome a lead
trigger: {type: webhook}
nodes:
  reachable:
    type: condition
    config:
      conditions: [{left: "{{ trigger.record.email }}", operator: contains, right: "@"}]
    next: {"true": pause, "false": end}
  pause:
    type: delay
    config: {for: 2s}
  tell_sales:
    type: api_request
    title: Tell sales
    retry: {max_attempts: 10, initial_interval: 500ms}
    config:
      method: POST
      url: ${url}/crm
      body: {email: "{{ trigger.record.email }}", run: "{{ run.id }}"}
  mark:
    type: crm_manager
    config:
      operation: update
      entity: contacts
      id: "{{ trigger.record.id }}"
      fields: {lead_status: open}
outputs: {accepted: "{{ nodes.tell_sales.output.body.accepted }}"}
`

/** The setup that an owner makes once, over HTTP, before the first lead arrives. */
export interface Journey {
  /** The URL and the secret of the form provider. */
  incoming: { url: string; secret: string }
  v1<T>(method: string, path: string, body?: unknown): Promise<T>
  app<T>(method: string, path: string, body?: unknown): Promise<T>
}

export async function prepareJourney(stack: TestStack, outside: Outside): Promise<Journey> {
  const v1 = caller(`${stack.apiUrl}/v1`, { authorization: `Bearer ${stack.key}` })
  const app = await signInOwner(stack)
  const { workflow_id } = await v1<{ workflow_id: string }>('POST', '/workflows', {
    spec: spec(outside.url),
  })
  await v1('POST', `/workflows/${workflow_id}/activate`)
  const incoming = await app<Journey['incoming']>('POST', '/webhooks/incoming', {
    name: 'Contact form',
    workflow_id,
  })
  const outgoing = await app<{ secret: string }>('POST', '/webhooks/outgoing', {
    name: 'Data warehouse',
    url: `${outside.url}/hooks`,
    events: ['contact.created', 'contact.updated', 'workflow.completed'],
  })
  outside.secret = outgoing.secret
  return { incoming, v1, app }
}
