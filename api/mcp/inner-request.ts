import { type IncomingMessage, ServerResponse } from 'node:http'
import { Readable } from 'node:stream'
import Koa from 'koa'
import type { Logger } from '../../db/process/log.ts'
import { answerError } from '../http/errors.ts'
import type { Gateway } from '../http/gateway.ts'
import type { Caller } from '../http/scopes.ts'
import { traceOf } from '../http/trace.ts'

/** A request of /v1 that a tool makes. */
export interface InnerRequest {
  method: string
  /** With the prefix /v1, percent-encoded. */
  path: string
  /** The query string, without `?`. */
  search: string
  /** Lower-case names. */
  headers: Record<string, string>
  /** Absent if the operation takes no body. */
  body?: unknown
}

export interface InnerAnswer {
  status: number
  body: Record<string, unknown>
}

/** The headers of the outer request that describe its client, and so hold for the inner one too. */
const INHERITED = ['x-forwarded-for', 'traceparent', 'user-agent']

/** Makes contexts for requests that never had a connection of their own. */
const koa = new Koa()

/**
 * Executes an operation of /v1 in this process, through its gateway: with the same scopes, validation, idempotency and
 * errors as an HTTP request. The caller, the request id and the trace are those of the outer request, and its disconnect
 * aborts the inner one.
 */
export async function requestInside(
  outer: Koa.Context,
  { gateway, caller, log }: { gateway: Gateway; caller: Caller; log: Logger },
  request: InnerRequest,
): Promise<InnerAnswer> {
  const started = performance.now()
  const ctx = innerContext(outer, request)
  const { requestId } = outer.state
  const close = () => ctx.res.emit('close')
  outer.res.once('close', close)
  try {
    await gateway.handleFor(ctx, request.path, request.search, caller)
  } catch (error) {
    answerError(ctx, error, requestId, log)
  } finally {
    outer.res.off('close', close)
  }
  const { status, body } = ctx
  const ms = Math.round((performance.now() - started) * 10) / 10
  log.info({ request_id: requestId, method: request.method, route: ctx.state.route, status, ms }, 'tool call')
  return { status, body: typeof body === 'string' ? JSON.parse(body) : body }
}

function innerContext(outer: Koa.Context, { method, path, headers, body }: InnerRequest): Koa.Context {
  const bytes = body === undefined ? undefined : Buffer.from(JSON.stringify(body))
  const inherited = INHERITED.flatMap((name) => {
    const value = outer.req.headers[name]
    return value === undefined ? [] : [[name, value]]
  })
  const req = Object.assign(Readable.from(bytes ? [bytes] : []), {
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
      ...(bytes && { 'content-type': 'application/json', 'content-length': String(bytes.length) }),
    },
  }) as unknown as IncomingMessage
  const ctx = koa.createContext(req, new ServerResponse(req))
  const { requestId, organization, spanId } = outer.state
  Object.assign(ctx.state, { requestId, organization, spanId, traceId: traceOf(outer).traceId })
  return ctx as Koa.Context
}
