import { type IncomingMessage, ServerResponse } from 'node:http'
import { Readable } from 'node:stream'
import Koa from 'koa'
import type { Logger } from '../../db/process/log.ts'
import { answerError } from './errors.ts'
import type { Gateway } from './gateway.ts'
import type { Caller } from './scopes.ts'
import { traceOf } from './trace.ts'

/** A request that a tool of /mcp or a page of the console makes. */
export interface InnerRequest {
  method: string
  /** With the prefix of the realm, percent-encoded. */
  path: string
  /** The query string, without `?`. */
  search: string
  /** Lower-case names. */
  headers: Record<string, string>
  /** Absent if the operation takes no body. */
  body?: unknown
  /** The file of an operation that accepts one, in place of a body. */
  upload?: { type: string; bytes: AsyncIterable<Buffer> }
}

export interface InnerAnswer {
  status: number
  body: Record<string, unknown>
}

/** With a header of the response. */
export interface WholeAnswer extends InnerAnswer {
  header(name: string): string | undefined
}

/** By whom and why a request is made inside. */
export interface Inside {
  gateway: Gateway
  /** undefined: the gateway authenticates the request, and counts it against the limits, as one of its own. */
  caller: Caller | undefined
  log: Logger
  /** What the log calls it. */
  purpose: 'tool call' | 'console call'
}

/** The headers of the outer request that describe its client and address, and so hold for the inner one too. */
const INHERITED = ['host', 'x-forwarded-for', 'traceparent', 'user-agent']

/** Makes contexts for requests that never had a connection of their own. */
const koa = new Koa()

/**
 * Executes an operation in this process, through its gateway: with the same scopes, validation, idempotency and
 * errors as an HTTP request. The caller, the request id and the trace are those of the outer request, and its disconnect
 * aborts the inner one.
 */
export async function requestInside(
  outer: Koa.Context,
  { gateway, caller, log, purpose }: Inside,
  request: InnerRequest,
): Promise<WholeAnswer> {
  const started = performance.now()
  const ctx = innerContext(outer, request)
  const { requestId } = outer.state
  const close = () => ctx.res.emit('close')
  outer.res.once('close', close)
  try {
    if (caller) await gateway.handleFor(ctx, request.path, request.search, caller)
    else await gateway(ctx, request.path, request.search)
  } catch (error) {
    answerError(ctx, error, requestId, log)
  } finally {
    outer.res.off('close', close)
  }
  const { status, body } = ctx
  const ms = Math.round((performance.now() - started) * 10) / 10
  log.info({ request_id: requestId, method: request.method, route: ctx.state.route, status, ms }, purpose)
  const header = (name: string) => ctx.res.getHeader(name)?.toString()
  return { status, body: typeof body === 'string' ? JSON.parse(body) : body, header }
}

function innerContext(
  outer: Koa.Context,
  { method, path, headers, body, upload }: InnerRequest,
): Koa.Context {
  const bytes = body === undefined ? undefined : Buffer.from(JSON.stringify(body))
  const inherited = INHERITED.flatMap((name) => {
    const value = outer.req.headers[name]
    return value === undefined ? [] : [[name, value]]
  })
  const req = Object.assign(Readable.from(upload?.bytes ?? (bytes ? [bytes] : [])), {
    method,
    url: path,
    httpVersion: '1.1',
    rawHeaders: [],
    complete: true,
    // The address of the client.
    socket: outer.req.socket,
    headers: {
      ...Object.fromEntries(inherited),
      ...headers,
      ...(upload && { 'content-type': upload.type }),
      ...(bytes && { 'content-type': 'application/json', 'content-length': String(bytes.length) }),
    },
  }) as unknown as IncomingMessage
  const ctx = koa.createContext(req, new ServerResponse(req))
  const { requestId, organization, spanId } = outer.state
  Object.assign(ctx.state, { requestId, organization, spanId, traceId: traceOf(outer).traceId })
  return ctx as Koa.Context
}
