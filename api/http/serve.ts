import Koa from 'koa'
import type { Logger } from '../../db/log.ts'
import type { Metrics } from '../../db/metrics.ts'
import { answerError } from './errors.ts'
import { requireHost } from './malformed.ts'
import { requestId } from './request-id.ts'

/** Answers one request, given its raw path and query string; throws AppError. */
export type Dispatch = (ctx: Koa.Context, path: string, search: string) => void | Promise<void>

/** Gives every request an id, the error envelope and one log line. */
export function serve(log: Logger, dispatch: Dispatch, metrics?: Pick<Metrics, 'httpRequests'>): Koa {
  const app = new Koa()
  app.on('error', (error) => log.debug({ reason: String(error) }, 'connection error'))
  app.use(async (ctx) => {
    const started = performance.now()
    const id = requestId(ctx.req.headers['x-request-id'])
    ctx.state.requestId = id
    ctx.res.setHeader('X-Request-Id', id)
    const url = ctx.req.url ?? '/'
    const mark = url.indexOf('?')
    try {
      requireHost(ctx.req)
      await (mark < 0 ? dispatch(ctx, url, '') : dispatch(ctx, url.slice(0, mark), url.slice(mark + 1)))
    } catch (error) {
      answerError(ctx, error, id, log)
    }
    const milliseconds = performance.now() - started
    logRequest(log, ctx, milliseconds)
    const { method, status } = ctx
    metrics?.httpRequests.observe({ method, route: ctx.state.route ?? 'none', status }, milliseconds / 1_000)
  })
  return app
}

/** Logs the route, not the path and query: those contain ids and search terms. */
function logRequest(log: Logger, ctx: Koa.Context, milliseconds: number): void {
  const line = {
    request_id: ctx.state.requestId,
    organization: ctx.state.organization,
    method: ctx.method,
    route: ctx.state.route,
    status: ctx.status,
    ms: Math.round(milliseconds * 10) / 10,
  }
  if (ctx.status >= 500) log.warn(line, 'request')
  else log.info(line, 'request')
}
