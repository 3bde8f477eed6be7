import { Agent, request as undiciRequest } from 'undici'
import { AppError } from '../../db/model/errors.ts'
import { type EgressOptions, EgressRefused, guardedConnector } from '../../db/process/guarded-connector.ts'
import { HTTP_LIMITS, type HttpRequest, type HttpResponse } from '../../workflows/effects/http.ts'
import { NodeError } from '../../workflows/language/node-error.ts'
import { HEADER_NAME } from '../../workflows/nodes/http-fields.ts'
import { withDeadline } from '../deadline.ts'
import { formText, isForm } from './form.ts'
import { readBody } from './read-body.ts'
import { type Hop, isRedirect, nextHop } from './redirects.ts'
import { sizeText, tooLarge } from './too-large.ts'
import { checkUrl } from './url.ts'

export interface HttpOptions extends EgressOptions {
  /** The most bytes of a response to `call`, received or decoded; default `HTTP_LIMITS.responseBytes`. */
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
  /** For the whole exchange, including the body. */
  timeoutMs: number
  /** The bytes of the body to keep; the rest is dropped. */
  keepBytes: number
  /** Where the body of a response goes instead; undefined: it is kept. */
  sinkOf?: ((response: ResponseHead) => Sink | undefined) | undefined
}

export interface ResponseHead {
  url: string
  status: number
  headers: Record<string, string>
}

/** Reads a body to its end. */
export type Sink = (body: AsyncIterable<Buffer>) => Promise<void>

export interface ExchangeResult {
  status: number
  headers: Record<string, string>
  body: Buffer
  /** The body was longer than `keepBytes`. */
  truncated: boolean
  durationMs: number
}

/** The failure of a call to a name that has no address, or whose servers do not tell it. */
export class Unresolved extends NodeError {}

/** What the system's resolver, or DNS, answers then. */
const UNRESOLVED = ['ENOTFOUND', 'EAI_AGAIN', 'EAI_FAIL', 'EAI_NODATA', 'EAI_NONAME', 'ESERVFAIL', 'ENODATA']

/** Sends requests to external URLs. Refuses private addresses that `allow` does not list. */
export interface HttpClient {
  /** For nodes. `sinkOf`: as in an exchange, but not asked for a redirect that is followed. Throws NodeError. */
  call(
    request: HttpRequest,
    options: { signal: AbortSignal; timeoutMs: number; sinkOf?: Exchange['sinkOf'] },
  ): Promise<HttpResponse>
  /** For deliveries: does not follow redirects. Throws NodeError. */
  exchange(exchange: Exchange): Promise<ExchangeResult>
  close(): Promise<void>
}

export function createHttp(options: HttpOptions): HttpClient {
  const agent = new Agent({
    connect: guardedConnector({ ...options, timeoutMs: options.connectTimeoutMs ?? 10_000 }),
    maxHeaderSize: 32 * 1024,
  })
  const maxBodyBytes = options.maxBodyBytes ?? HTTP_LIMITS.responseBytes
  const exchange = (one: Exchange) => send(agent, one)

  return {
    exchange,
    async call(request, { signal, timeoutMs, sinkOf }) {
      const isFollowed = ({ status, headers }: Pick<ResponseHead, 'status' | 'headers'>) =>
        isRedirect(status) && headers.location !== undefined && request.follow_redirects !== false
      const startedAt = performance.now()
      let hop = firstHop(request)
      for (let redirects = 0; ; redirects++) {
        const left = timeoutMs - (performance.now() - startedAt)
        if (left <= 0) throw timedOut(timeoutMs)
        const { method, url, headers, body } = hop
        const sent = body === undefined ? {} : { body }
        const result = await exchange({
          method,
          url,
          headers,
          ...sent,
          signal,
          timeoutMs: left,
          keepBytes: maxBodyBytes,
          sinkOf: (head) => (isFollowed(head) ? undefined : sinkOf?.(head)),
        })
        if (!isFollowed(result)) {
          if (result.truncated) throw tooLarge(maxBodyBytes)
          return {
            status: result.status,
            headers: result.headers,
            ...(await readBody(result, maxBodyBytes)),
            duration_ms: Math.round(performance.now() - startedAt),
          }
        }
        if (redirects === HTTP_LIMITS.redirects)
          throw new NodeError('too_many_redirects', `more than ${HTTP_LIMITS.redirects} redirects`)
        const redirect = { status: result.status, location: result.headers.location! }
        hop = nextHop(hop, redirect, { bodyToOtherOrigins: request.body_to_other_origins })
      }
    },
    close: () => agent.destroy(),
  }
}

async function send(agent: Agent, one: Exchange): Promise<ExchangeResult> {
  const url = checkUrl(one.url)
  for (const [name, value] of Object.entries(one.headers))
    if (!HEADER_NAME.test(name) || /[^\t\x20-\x7e\x80-\xff]/.test(value))
      throw new NodeError('invalid_header', `the header ${JSON.stringify(name.slice(0, 100))} cannot be sent`)
  return withDeadline(one.timeoutMs, one.signal, (signal, isOver) =>
    Promise.race([exchange(agent, url, { ...one, signal }), aborted(signal)]).catch((error: unknown) => {
      throw explain(error, one, isOver())
    }),
  )
}

/** Rejects when the signal aborts: undici observes it only once connected, and then does not send the request. */
const aborted = (signal: AbortSignal) =>
  new Promise<never>((_, reject) => {
    signal.addEventListener('abort', () => reject(signal.reason), { once: true })
  })

async function exchange(agent: Agent, url: URL, one: Exchange): Promise<ExchangeResult> {
  const startedAt = performance.now()
  const response = await undiciRequest(url, {
    dispatcher: agent,
    method: one.method as 'GET',
    headers: one.headers,
    ...(one.body === undefined ? {} : { body: one.body }),
    signal: one.signal,
    headersTimeout: 0,
    bodyTimeout: 0,
  })
  const head = {
    url: url.href,
    status: response.statusCode,
    headers: Object.fromEntries(
      Object.entries(response.headers).map(([name, value]) => [name, [value ?? ''].flat().join(', ')]),
    ),
  }
  const sink = one.sinkOf?.(head)
  try {
    await sink?.(response.body)
  } catch (error) {
    // A body that is not read keeps its connection for ever.
    response.body.on('error', () => {}).destroy()
    throw error
  }
  const { body, truncated } = sink
    ? { body: Buffer.alloc(0), truncated: false }
    : await readUpTo(response.body, one.keepBytes)
  return {
    status: head.status,
    headers: head.headers,
    body,
    truncated,
    durationMs: performance.now() - startedAt,
  }
}

async function readUpTo(stream: AsyncIterable<Buffer>, limit: number) {
  const chunks: Buffer[] = []
  let size = 0
  // Leaving the loop destroys the stream and its connection, which stops an endless response.
  for await (const chunk of stream) {
    chunks.push(chunk)
    size += chunk.length
    if (size > limit) break
  }
  return { body: Buffer.concat(chunks).subarray(0, limit), truncated: size > limit }
}

function explain(error: unknown, one: Exchange, isOver: boolean): unknown {
  if (one.signal.aborted) return one.signal.reason
  if (isOver) return timedOut(one.timeoutMs)
  // A sink threw it, for the author of the workflow.
  if (error instanceof NodeError || error instanceof AppError) return error
  if (error instanceof EgressRefused) return new NodeError('egress_refused', error.message)
  const { code, message } = error as { code?: unknown; message?: unknown }
  if (code === 'UND_ERR_CONNECT_TIMEOUT') return timedOut(one.timeoutMs)
  const reason = typeof code === 'string' ? code : String(message).slice(0, 200)
  const Failure = UNRESOLVED.includes(reason) ? Unresolved : NodeError
  return new Failure('connection_failed', `the connection failed: ${reason}`, { retryable: true })
}

const timedOut = (ms: number) =>
  new NodeError('timeout', `no complete response within ${Math.round(ms)} ms`, { retryable: true })

/** Throws NodeError `invalid_url`, `request_too_large`. */
function firstHop(request: HttpRequest): Hop {
  const headers = { ...request.headers }
  const names = new Set(Object.keys(headers).map((name) => name.toLowerCase()))
  if (typeof request.body === 'object' && !names.has('content-type'))
    headers['content-type'] = 'application/json'
  if (!names.has('user-agent')) headers['user-agent'] = 'agx'
  const body =
    request.body === undefined || typeof request.body === 'string'
      ? request.body
      : isForm(headers)
        ? formText(request.body)
        : JSON.stringify(request.body)
  if (body !== undefined && Buffer.byteLength(body) > HTTP_LIMITS.requestBytes)
    throw new NodeError(
      'request_too_large',
      `the body of the request is larger than ${sizeText(HTTP_LIMITS.requestBytes)}`,
    )
  return { method: request.method.toUpperCase(), url: withQuery(request.url, request.query), headers, body }
}

function withQuery(text: string, query: Record<string, string> = {}): string {
  const url = checkUrl(text)
  for (const [name, value] of Object.entries(query)) url.searchParams.append(name, value)
  return url.href
}
