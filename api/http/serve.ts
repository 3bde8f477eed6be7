import type { IncomingMessage } from 'node:http'
import Koa from 'koa'
import { AppError } from '../../db/model/errors.ts'
import type { Traces } from '../../db/model/spans.ts'
import type { Logger } from '../../db/process/log.ts'
import type { Metrics } from '../../db/process/metrics.ts'
import { clientIp } from './client-ip.ts'
import type { CountedSocket, RequestsByAddress } from './connections.ts'
import { answerError } from './errors.ts'
import { requireHost } from './malformed.ts'
import { requestId } from './request-id.ts'
import { PROBES, traceRequest } from './trace.ts'
import { closeIfUnread } from './unread-body.ts'

/** Responds to one request, given its raw path and query string. Throws AppError. */
export type Dispatch = (ctx: Koa.Context, path: string, search: string) => void | Promise<void>

/**
 * Gives every request an id, the error envelope, the security headers and one log line. `https`: clients reach the
 * service only by https.
 */
export function serve(
  log: Logger,
  dispatch: Dispatch,
  metrics?: Pick<Metrics, 'httpRequests'>,
  {
    https = false,
    traces,
    perAddress,
  }: { https?: boolean; traces?: Traces | undefined; perAddress?: AddressLimit | undefined } = {},
): Koa {
  const headers = Object.entries({ ...SECURITY_HEADERS, ...(https && HSTS) })
  const app = new Koa()
  app.on('error', (error) => log.debug({ reason: String(error) }, 'connection error'))
  app.use(async (ctx) => {
    const started = performance.now()
    const id = requestId(ctx.req.headers['x-request-id'])
    ctx.state.requestId = id
    const endSpan = traces && traceRequest(ctx, traces)
    ctx.res.setHeader('X-Request-Id', id)
    for (const [name, value] of headers) ctx.res.setHeader(name, value)
    const url = ctx.req.url ?? '/'
    const mark = url.indexOf('?')
    try {
      beginRequest(ctx, perAddress)
      requireHost(ctx.req)
      refuseRepeated(ctx.req)
      await (mark < 0 ? dispatch(ctx, url, '') : dispatch(ctx, url.slice(0, mark), url.slice(mark + 1)))
    } catch (error) {
      answerError(ctx, error, id, log)
    }
    closeIfUnread(ctx.req, ctx.res, ctx.state.uploadLimit)
    const milliseconds = performance.now() - started
    endSpan?.(milliseconds)
    logRequest(log, ctx, milliseconds)
    const { method, status } = ctx
    metrics?.httpRequests.observe({ method, route: ctx.state.route ?? 'none', status }, milliseconds / 1_000)
  })
  return app
}

/** For a service behind proxies: how many requests of one client may be in progress. */
export interface AddressLimit {
  requests: RequestsByAddress
  trustedProxies: number
}

const RETRY_AFTER = 5

/** Throws unavailable for a client with too many connections, or behind proxies with too many requests in progress. */
function beginRequest(ctx: Koa.Context, limit: AddressLimit | undefined): void {
  const end = limit?.requests.begin(clientIp(ctx.req, limit.trustedProxies))
  if (end) ctx.res.once('close', end)
  if (limit ? end : !(ctx.req.socket as CountedSocket).isAboveLimit) return
  ctx.res.setHeader('Connection', 'close')
  throw new AppError('unavailable', 'too many connections from this address', {
    hint: 'use fewer connections, and each for several requests',
    retry_after: RETRY_AFTER,
  })
}

/**
 * Responses contain data of one tenant, and some contain a secret: no cache may store them. Static pages override this.
 */
const SECURITY_HEADERS = { 'Cache-Control': 'no-store', 'X-Content-Type-Options': 'nosniff' }
/** A year, the minimum of the browsers' preload lists. */
const HSTS = { 'Strict-Transport-Security': 'max-age=31536000' }

/** Node keeps the first of several Authorization headers; a proxy may have checked another. Throws invalid_request. */
function refuseRepeated({ headers, rawHeaders }: IncomingMessage): void {
  if (headers.authorization === undefined) return
  const sent = rawHeaders.filter((name, i) => i % 2 === 0 && name.toLowerCase() === 'authorization')
  if (sent.length > 1)
    throw new AppError('invalid_request', 'the request has more than one Authorization header', {
      hint: 'send one',
    })
}

/** Logs the route, not the path and query: those contain ids and search terms. */
function logRequest(log: Logger, ctx: Koa.Context, milliseconds: number): void {
  const line = {
    request_id: ctx.state.requestId,
    trace_id: ctx.state.traceId?.replaceAll('-', ''),
    organization_id: ctx.state.organization,
    method: ctx.method,
    route: ctx.state.route,
    status: ctx.status,
    ms: Math.round(milliseconds * 10) / 10,
  }
  if (ctx.status >= 500) log.warn(line, 'request')
  else if (PROBES.includes(ctx.state.route)) log.debug(line, 'request')
  else log.info(line, 'request')
}
