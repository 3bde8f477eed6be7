import type { TestStack } from './stack.ts'

/** Sends requests with JSON. Throws an answer that is not 2xx. */
export type Caller = <T>(method: string, path: string, body?: unknown) => Promise<T>

/** Requests below `base`. */
export function caller(base: string, headers: Record<string, string>): Caller {
  return async <T>(method: string, path: string, body?: unknown): Promise<T> => {
    const answer = await fetch(base + path, {
      method,
      headers: { ...headers, ...(body === undefined ? {} : { 'content-type': 'application/json' }) },
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
    })
    const text = await answer.text()
    if (!answer.ok) throw new Error(`${method} ${path}: ${answer.status} ${text}`)
    return JSON.parse(text) as T
  }
}

/** Requests to /app, in a new session of the owner. */
export async function signInOwner(stack: Pick<TestStack, 'apiUrl' | 'owner'>): Promise<Caller> {
  const answer = await fetch(`${stack.apiUrl}/app/session`, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify(stack.owner),
  })
  const { csrf_token } = (await answer.json()) as { csrf_token: string }
  const cookie = answer.headers
    .getSetCookie()
    .map((one) => one.split(';')[0])
    .join('; ')
  return caller(`${stack.apiUrl}/app`, { cookie, 'x-csrf-token': csrf_token })
}
