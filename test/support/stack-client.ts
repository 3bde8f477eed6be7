import { noteSecretsOf } from './made-secrets.ts'
import type { TestStack } from './stack.ts'

type Answer = {
  status: number
  body: Record<string, unknown> & { error?: { type: string; message: string } }
}

/** Requests to a running stack, by its demo key or as its owner. */
export interface Client {
  v1(method: string, path: string, body?: unknown, headers?: Record<string, string>): Promise<Answer>
  app(method: string, path: string, body?: unknown): Promise<Answer>
  /** Sends to an incoming webhook that is created for it. */
  hook(settings: object, body: string, contentType?: string): Promise<Answer>
}

export async function clientOf(stack: TestStack): Promise<Client> {
  const call = async (url: string, method: string, body: unknown, headers: Record<string, string>) => {
    const raw = typeof body === 'string' || Buffer.isBuffer(body)
    const response = await fetch(url, {
      method,
      headers: { 'content-type': 'application/json', ...headers },
      ...(body === undefined ? {} : { body: raw ? (body as string) : JSON.stringify(body) }),
    })
    const text = await response.text()
    noteSecretsOf(response.headers, text)
    return {
      status: response.status,
      headers: response.headers,
      body: (response.headers.get('content-type')?.includes('json')
        ? JSON.parse(text)
        : {}) as Answer['body'],
    }
  }
  const session = await call(`${stack.apiUrl}/app/session`, 'POST', stack.owner, {})
  const cookie = session.headers
    .getSetCookie()
    .map((one) => one.split(';')[0])
    .join('; ')
  const owner = { cookie, 'x-csrf-token': String(session.body.csrf_token) }
  const app: Client['app'] = (method, path, body) => call(`${stack.apiUrl}/app${path}`, method, body, owner)
  return {
    v1: (method, path, body, headers = {}) =>
      call(`${stack.apiUrl}/v1${path}`, method, body, { authorization: `Bearer ${stack.key}`, ...headers }),
    app,
    async hook(settings, body, contentType = 'application/json') {
      const made = await app('POST', '/webhooks/incoming', { name: 'Attack', ...settings })
      if (made.status !== 201) return made
      // The URL of the webhook has the host of PUBLIC_URL.
      const { pathname } = new URL(String(made.body.url))
      const answer = await call(stack.apiUrl + pathname, 'POST', body, {
        'content-type': contentType,
        'x-webhook-secret': String(made.body.secret),
      })
      await app('DELETE', `/webhooks/incoming/${made.body.id}`)
      return answer
    },
  }
}
