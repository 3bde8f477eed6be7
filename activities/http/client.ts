import { Agent, request as undiciRequest } from 'undici'
import type { HttpRequest, HttpResponse } from '../../workflows/effects/http.ts'
import { NodeError } from '../../workflows/nodes/define.ts'
import { type EgressOptions, EgressRefused, guardedConnector } from './egress.ts'

export interface HttpOptions extends EgressOptions {
  /** The maximum of a response to `call`; default 1 MiB. */
  maxBodyBytes?: number
  /** Default 10 s. */
  connectTimeoutMs?: number
}

/** One exchange, without redirects. */
export interface Exchange {
  method: string
  url: string
  headers: Record<string, string>
  body?: string
  signal: AbortSignal
  /** For the whole exchange, body included. */
  timeoutMs: number
  /** How much of the body to keep; the remainder is dropped. */
  keepBytes: number
}

export interface ExchangeResult {
  status: number
  headers: Record<string, string>
  body: Buffer
  /** The body was longer than `keepBytes`. */
  truncated: boolean
  durationMs: number
}

/** Sends requests to external URLs. Refuses private addresses that `allow` does not list. */
export interface HttpClient {
  /** For nodes. Throws NodeError. */
  call(request: HttpRequest, options: { signal: AbortSignal; timeoutMs: number }): Promise<HttpResponse>
  /** For deliveries: does not follow redirects. Throws NodeError. */
  exchange(exchange: Exchange): Promise<ExchangeResult>
  close(): Promise<void>
}

const MAX_REDIRECTS = 5
const HEADER_NAME = /^[\w!#$%&'*+.^`|~-]+$/
/** Kept on a redirect to another origin; any other header may be a credential. */
const HARMLESS = new Set(['accept', 'accept-language', 'content-type', 'user-agent'])

export function createHttp(options: HttpOptions): HttpClient {
  const agent = new Agent({
    connect: guardedConnector({ ...options, timeoutMs: options.connectTimeoutMs ?? 10_000 }),
    maxHeaderSize: 32 * 1024,
  })
  const maxBodyBytes = options.maxBodyBytes ?? 1024 * 1024
  const exchange = (one: Exchange) => send(agent, one)

  return {
    exchange,
    async call(request, { signal, timeoutMs }) {
      const startedAt = performance.now()
      let { method, body, headers } = prepare(request)
      let url = withQuery(request.url, request.query)
      for (let hop = 0; ; hop++) {
        const left = timeoutMs - (performance.now() - startedAt)
        if (left <= 0) throw timedOut(timeoutMs)
        const result = await exchange({
          method,
          url,
          headers,
          ...(body === undefined ? {} : { body }),
          signal,
          timeoutMs: left,
          keepBytes: maxBodyBytes,
        })
        const location = isRedirect(result.status) ? result.headers.location : undefined
        if (location === undefined || request.follow_redirects === false) {
          if (result.truncated)
            throw new NodeError('response_too_large', `the response is larger than ${maxBodyBytes} bytes`)
          return {
            status: result.status,
            headers: result.headers,
            body: parse(result),
            duration_ms: Math.round(performance.now() - startedAt),
          }
        }
        if (hop === MAX_REDIRECTS)
          throw new NodeError('too_many_redirects', `more than ${MAX_REDIRECTS} redirects`)
        const next = checkUrl(location, url)
        if (next.origin !== new URL(url).origin)
          headers = without(headers, (name) => !HARMLESS.has(name.toLowerCase()))
        // As browsers do: 303 always, 301 and 302 after a POST.
        if (result.status === 303 ? method !== 'HEAD' : result.status < 303 && method === 'POST') {
          method = 'GET'
          body = undefined
          headers = without(headers, (name) => name.toLowerCase().startsWith('content-'))
        }
        url = next.href
      }
    },
    close: () => agent.destroy(),
  }
}

/** Parses a URL that may be called: http or https, without credentials. Throws NodeError `invalid_url`. */
export function checkUrl(text: string, base?: string): URL {
  let url: URL
  try {
    url = new URL(text, base)
  } catch {
    throw new NodeError('invalid_url', 'the URL cannot be parsed')
  }
  if (url.protocol !== 'http:' && url.protocol !== 'https:')
    throw new NodeError('invalid_url', 'only http and https URLs can be called')
  if (url.username || url.password)
    throw new NodeError('invalid_url', 'a URL must not contain credentials: send them in a header')
  return url
}

async function send(agent: Agent, one: Exchange): Promise<ExchangeResult> {
  const url = checkUrl(one.url)
  for (const [name, value] of Object.entries(one.headers))
    if (!HEADER_NAME.test(name) || /[^\t\x20-\x7e\x80-\xff]/.test(value))
      throw new NodeError('invalid_header', `the header ${JSON.stringify(name.slice(0, 100))} cannot be sent`)
  const timeout = AbortSignal.timeout(Math.max(1, Math.ceil(one.timeoutMs)))
  const startedAt = performance.now()
  try {
    const response = await undiciRequest(url, {
      dispatcher: agent,
      method: one.method as 'GET',
      headers: one.headers,
      ...(one.body === undefined ? {} : { body: one.body }),
      signal: AbortSignal.any([one.signal, timeout]),
      headersTimeout: 0,
      bodyTimeout: 0,
    })
    const { body, truncated } = await readUpTo(response.body, one.keepBytes)
    return {
      status: response.statusCode,
      headers: Object.fromEntries(
        Object.entries(response.headers).map(([name, value]) => [name, [value ?? ''].flat().join(', ')]),
      ),
      body,
      truncated,
      durationMs: performance.now() - startedAt,
    }
  } catch (error) {
    throw explain(error, one, timeout)
  }
}

async function readUpTo(stream: AsyncIterable<Buffer>, limit: number) {
  const chunks: Buffer[] = []
  let size = 0
  // Leaving the loop destroys the stream and its connection, so an endless response is not read on.
  for await (const chunk of stream) {
    chunks.push(chunk)
    size += chunk.length
    if (size > limit) break
  }
  return { body: Buffer.concat(chunks).subarray(0, limit), truncated: size > limit }
}

function explain(error: unknown, one: Exchange, timeout: AbortSignal): unknown {
  if (one.signal.aborted) return one.signal.reason
  if (timeout.aborted) return timedOut(one.timeoutMs)
  if (error instanceof EgressRefused) return new NodeError('egress_refused', error.message)
  const { code, message } = error as { code?: unknown; message?: unknown }
  if (code === 'UND_ERR_CONNECT_TIMEOUT') return timedOut(one.timeoutMs)
  const reason = typeof code === 'string' ? code : String(message).slice(0, 200)
  return new NodeError('connection_failed', `the connection failed: ${reason}`, { retryable: true })
}

const timedOut = (ms: number) =>
  new NodeError('timeout', `no complete response within ${Math.round(ms)} ms`, { retryable: true })

function prepare(request: HttpRequest) {
  const headers = { ...request.headers }
  const names = new Set(Object.keys(headers).map((name) => name.toLowerCase()))
  if (typeof request.body === 'object' && !names.has('content-type'))
    headers['content-type'] = 'application/json'
  if (!names.has('user-agent')) headers['user-agent'] = 'agx'
  const body =
    request.body === undefined || typeof request.body === 'string'
      ? request.body
      : JSON.stringify(request.body)
  return { method: request.method.toUpperCase(), headers, body }
}

function withQuery(text: string, query: Record<string, string> = {}): string {
  const url = checkUrl(text)
  for (const [name, value] of Object.entries(query)) url.searchParams.append(name, value)
  return url.href
}

const isRedirect = (status: number) => [301, 302, 303, 307, 308].includes(status)

const without = (headers: Record<string, string>, drop: (name: string) => boolean) =>
  Object.fromEntries(Object.entries(headers).filter(([name]) => !drop(name)))

function parse({ headers, body }: ExchangeResult): unknown {
  const text = body.toString('utf8')
  if (!/\bjson\b/i.test(headers['content-type'] ?? '')) return text
  try {
    return JSON.parse(text)
  } catch {
    return text
  }
}
