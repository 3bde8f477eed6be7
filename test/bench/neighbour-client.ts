import type { Json } from '../support/mcp.ts'

export type Call = ReturnType<typeof clientOf>

/** Requests with a key. @returns the bodies of the answers. Throws for others than 2xx, and for a refused tool call. */
export function clientOf(origin: string, key: string) {
  const bearer = { authorization: `Bearer ${key}`, 'content-type': 'application/json' }
  return async (method: string, path: string, body?: unknown, headers: object = {}): Promise<Json> => {
    const answer = await fetch(origin + path, {
      method,
      headers: { ...bearer, ...headers },
      ...(body === undefined ? {} : { body: typeof body === 'string' ? body : JSON.stringify(body) }),
    })
    const text = await answer.text()
    if (!answer.ok || text.includes('"isError":true'))
      throw new Error(`${method} ${path}: ${answer.status} ${text.slice(0, 500)}`)
    return text.startsWith('{') ? JSON.parse(text) : {}
  }
}
