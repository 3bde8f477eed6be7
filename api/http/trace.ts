import { randomUUID } from 'node:crypto'
import type Koa from 'koa'
import { newSpanId, type Traces } from '../../db/model/spans.ts'
import type { TraceContext } from '../../db/model/trace-context.ts'

/** W3C Trace Context: version, trace id, parent, flags; later versions may append more. */
const TRACEPARENT = /^(?!ff)([0-9a-f]{2})-(?!0{32})([0-9a-f]{32})-((?!0{16})[0-9a-f]{16})-[0-9a-f]{2}(-.*)?$/

/** The trace of a request: that of a valid `traceparent`, else a new one. */
export function traceOf({ state, req }: Pick<Koa.Context, 'state' | 'req'>): TraceContext {
  state.traceId ??= parse(req.headers.traceparent)?.traceId ?? randomUUID()
  return { traceId: state.traceId, spanId: state.spanId }
}

function parse(traceparent: string | string[] | undefined): { traceId: string; parent: string } | undefined {
  const [, version, id, parent, more] =
    (typeof traceparent === 'string' && TRACEPARENT.exec(traceparent)) || []
  if (id === undefined || (version === '00' && more !== undefined)) return undefined
  return { traceId: id.replace(/^(.{8})(.{4})(.{4})(.{4})/, '$1-$2-$3-$4-'), parent: parent! }
}

/** Health checks and scrapes come every few seconds: they get no spans, and their lines are for debugging. */
export const PROBES = ['/healthz', '/readyz', '/metrics']

/** Starts the span of a request. @returns a function that ends it, given the request's duration. */
export function traceRequest(ctx: Koa.Context, traces: Traces): (milliseconds: number) => void {
  const spanId = newSpanId()
  ctx.state.spanId = spanId
  return (milliseconds) => {
    const { method, status } = ctx
    const { route, requestId, organization } = ctx.state
    if (PROBES.includes(route)) return
    const end = Date.now()
    traces.record({
      traceId: traceOf(ctx).traceId,
      parent: parse(ctx.req.headers.traceparent)?.parent,
      // The route, not the path and query: those contain ids, tokens and search terms.
      name: route ? `${method} ${route}` : method,
      kind: 'server',
      id: spanId,
      start: end - milliseconds,
      end,
      failed: status >= 500,
      attributes: {
        'http.request.method': method,
        'http.route': route,
        'http.response.status_code': status,
        'agx.request_id': requestId,
        'agx.organization_id': organization,
      },
    })
  }
}
