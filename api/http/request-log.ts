import type Koa from 'koa'
import type { Logger } from '../../db/log.ts'

/** One line for each request. The route, not the path or query: those hold ids and what people search for. */
export function logRequest(log: Logger, ctx: Koa.Context, started: number): void {
  const line = {
    request_id: ctx.state.requestId,
    organization: ctx.state.organization,
    method: ctx.method,
    route: ctx.state.route,
    status: ctx.status,
    ms: Math.round((performance.now() - started) * 10) / 10,
  }
  if (ctx.status >= 500) log.warn(line, 'request')
  else log.info(line, 'request')
}
