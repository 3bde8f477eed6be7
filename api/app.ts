import Koa from 'koa'
import { AppError } from '../db/errors.ts'
import type { AppDeps } from './deps.ts'
import { createReadiness } from './health.ts'
import { answerError } from './http/errors.ts'
import { createGateway } from './http/gateway.ts'
import { createReference } from './http/reference.ts'
import { requestId } from './http/request-id.ts'
import { logRequest } from './http/request-log.ts'
import { appRealm } from './settings/realm.ts'
import { appRoutes } from './settings/route-table.ts'
import { v1Realm } from './v1/realm.ts'
import { routes } from './v1/route-table.ts'

/** The whole HTTP side: what begins with what goes where. */
export function createApp(deps: AppDeps): Koa {
  const v1 = createGateway(deps, v1Realm(deps))
  const settings = createGateway(deps, appRealm(deps))
  const reference = createReference(deps, routes, appRoutes)
  const ready = createReadiness(deps)

  async function dispatch(ctx: Koa.Context, path: string, search: string): Promise<void> {
    if (path.startsWith('/v1/')) return v1(ctx, path, search)
    if (path.startsWith('/app/')) return settings(ctx, path, search)
    if (path === '/openapi.json') return reference.json(ctx)
    if (path === '/docs') return reference.page(ctx)
    if (path === '/healthz') return answer(ctx, 200, { status: 'alive' })
    if (path === '/readyz') {
      const readiness = await ready()
      return answer(ctx, readiness.status === 'ready' ? 200 : 503, readiness)
    }
    throw new AppError('not_found', 'there is no such path', { hint: 'see /docs' })
  }

  const app = new Koa()
  app.on('error', (error) => deps.log.debug({ err: error }, 'connection broke'))
  app.use(async (ctx) => {
    const started = performance.now()
    const id = requestId(ctx.req.headers['x-request-id'])
    ctx.state.requestId = id
    ctx.res.setHeader('X-Request-Id', id)
    const url = ctx.req.url ?? '/'
    const mark = url.indexOf('?')
    try {
      await (mark < 0 ? dispatch(ctx, url, '') : dispatch(ctx, url.slice(0, mark), url.slice(mark + 1)))
    } catch (error) {
      answerError(ctx, error, id, deps.log)
    }
    logRequest(deps.log, ctx, started)
  })
  return app
}

function answer(ctx: Koa.Context, status: number, body: object): void {
  ctx.status = status
  ctx.body = body
}
