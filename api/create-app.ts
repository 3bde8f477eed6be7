import type Koa from 'koa'
import { AppError } from '../db/model/errors.ts'
import { buildOf } from '../db/process/build.ts'
import { METRICS_TYPE } from '../db/process/metrics.ts'
import { isFromOperator } from '../db/process/operator-request.ts'
import { answersLink } from './app/link-page.ts'
import { appRealm } from './app/realm.ts'
import { appRoutes } from './app/route-table.ts'
import { createSessionGate } from './app/session-gate.ts'
import { handleApproval } from './approvals/decide.ts'
import { isHttps } from './config.ts'
import { createConsole } from './console/create-console.tsx'
import type { AppDeps } from './deps.ts'
import { createReadiness, isReady } from './health.ts'
import { RequestsByAddress } from './http/connections.ts'
import { createCors } from './http/cors.ts'
import { methodNotAllowed } from './http/errors.ts'
import { createGateway } from './http/gateway.ts'
import { createReference } from './http/reference.ts'
import { type Dispatch, serve } from './http/serve.ts'
import { responseSlots } from './http/slots.ts'
import { handleIncoming } from './incoming/receive.ts'
import { createTogether } from './incoming/together.ts'
import { handleMails } from './mails/handle-mails.ts'
import { createMcp } from './mcp/handler.ts'
import { MCP_PATH } from './mcp/openapi.ts'
import { agentRealm } from './mcp/realm.ts'
import { createOAuthEndpoints } from './oauth/endpoints.ts'
import { sessionV1Realm, v1Realm } from './v1/realm.ts'
import { routes } from './v1/route-table.ts'

/** The HTTP application: dispatches by path prefix. */
export function createApp(deps: AppDeps): Koa {
  const keys = v1Realm(deps)
  const v1 = createGateway(deps, keys)
  const mcp = createMcp(deps, agentRealm(deps, keys), v1)
  const oauth = createOAuthEndpoints(deps)
  const gate = createSessionGate(deps)
  const app = createGateway(deps, appRealm(deps, gate))
  const v1BySession = createGateway(deps, sessionV1Realm(gate))
  const console = createConsole(deps, { gate, app, v1: v1BySession })
  const reference = createReference(deps, routes, appRoutes)
  const incoming = { ...deps, together: createTogether(deps.db), responses: responseSlots() }
  const ready = createReadiness(deps)
  const answersPreflight = createCors(deps.config.CORS_ORIGINS)

  const pages: Record<string, (ctx: Koa.Context) => void | Promise<void>> = {
    '/healthz': (ctx) => {
      ctx.body = { status: 'alive', ...buildOf(deps.config) }
    },
    '/readyz': async (ctx) => {
      const readiness = await ready()
      ctx.status = isReady(readiness) ? 200 : 503
      ctx.body = readiness
    },
    '/metrics': async (ctx) => {
      if (!isFromOperator(ctx.req, deps.config.METRICS_TOKEN))
        throw new AppError(
          'unauthorized',
          'the metrics need METRICS_TOKEN as bearer token, or a request from this machine',
        )
      ctx.set('Content-Type', METRICS_TYPE)
      ctx.body = await deps.metrics.text()
    },
  }

  const dispatch: Dispatch = (ctx, path, search) => {
    if (path.startsWith('/v1/') || path === MCP_PATH) {
      if (!answersPreflight(ctx)) return path === MCP_PATH ? mcp(ctx) : v1(ctx, path, search)
      ctx.status = 204
      return
    }
    if (path.startsWith('/app/v1/')) return v1BySession(ctx, path, search)
    if (path.startsWith('/app/')) return answersLink(ctx, path) ? undefined : app(ctx, path, search)
    if (path.startsWith('/approvals/')) return handleApproval(ctx, path, deps)
    if (path.startsWith('/mails/')) return handleMails(ctx, path, deps)
    if (path.startsWith('/webhooks/incoming/')) return handleIncoming(ctx, incoming, path, search)
    if (oauth.serves(path)) return oauth.answer(ctx, path)
    if (console.serves(path)) return console.answer(ctx, path, search)
    const page = Object.hasOwn(pages, path) ? pages[path] : reference(path)
    if (!page) throw new AppError('not_found', 'the path does not exist', { hint: 'see /docs' })
    if (ctx.method !== 'GET' && ctx.method !== 'HEAD') throw methodNotAllowed(ctx, ['GET'])
    ctx.state.route = path
    return page(ctx)
  }
  return serve(deps.log, dispatch, deps.metrics, {
    https: isHttps(deps.config),
    traces: deps.traces,
    perAddress: limitOfClients(deps.config),
  })
}

/** Behind proxies, the connections are theirs: requests in progress count instead. */
function limitOfClients({ TRUSTED_PROXIES, MAX_CONNECTIONS_PER_ADDRESS }: AppDeps['config']) {
  if (TRUSTED_PROXIES === 0) return undefined
  return {
    requests: new RequestsByAddress(MAX_CONNECTIONS_PER_ADDRESS),
    trustedProxies: TRUSTED_PROXIES,
  }
}
