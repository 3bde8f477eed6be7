import { setTimeout as pause } from 'node:timers/promises'
import type Koa from 'koa'
import { isSignUpOpen } from '../../db/access/sign-ups.ts'
import { AppError } from '../../db/model/errors.ts'
import { sessionCookie, sessionToken } from '../app/cookie.ts'
import { limitAddress, limitUser } from '../app/limit-requests.ts'
import type { SessionCaller } from '../app/session-caller.ts'
import type { SessionGate } from '../app/session-gate.ts'
import { isHttps } from '../config.ts'
import type { AppDeps } from '../deps.ts'
import { baseUrl } from '../http/base-url.ts'
import { answerError, methodNotAllowed } from '../http/errors.ts'
import type { Gateway } from '../http/gateway.ts'
import { type InnerRequest, requestInside, type WholeAnswer } from '../http/inner-request.ts'
import { requireUtf8 } from '../http/received.ts'
import { Router } from '../http/router.ts'
import { ASSETS, type Assets, readAssets } from './assets.ts'
import { document } from './document.tsx'
import { requireOperation } from './forms/allowed.ts'
import { CSRF_FIELD, Form, KEY_FIELD, readForm } from './forms/form.ts'
import { errorPage } from './pages/error.tsx'
import { resumePage } from './pages/resume.tsx'
import { signInPage } from './pages/sign-in.tsx'
import { requireOwnForm, setPolicies } from './policy.ts'
import {
  type ConsoleRoute,
  type Page,
  Refused,
  SessionEnded,
  type Shown,
  StaleForm,
  type Theme,
  type View,
} from './route.ts'
import { consoleRoutes } from './route-table.ts'

export interface Console {
  /** Whether a path belongs to the console. */
  serves(path: string): boolean
  answer(ctx: Koa.Context, path: string, search: string): Promise<void>
}

/** The handlers of the API that pages call. */
export interface Realms {
  gate: SessionGate
  /** /app */
  app: Gateway
  /** /app/v1 */
  v1: Gateway
}

/**
 * The pages for people. A page calls the operations of the API in this process, as the user of the session: it has no
 * SQL, no rule and no validation of its own.
 */
export function createConsole(deps: AppDeps, realms: Realms): Console {
  const router = new Router<ConsoleRoute>()
  for (const route of consoleRoutes) router.add(route.method, route.path, route)
  const places = new Set(consoleRoutes.map(({ path }) => path.split('/')[1]))
  let reading: Promise<Assets> | undefined
  const assets = () => {
    reading ??= readAssets().catch((error) => {
      reading = undefined
      throw error
    })
    return reading
  }

  /** The caller of the session cookie; undefined without a session. */
  async function callerOf(ctx: Koa.Context): Promise<SessionCaller | undefined> {
    try {
      return await realms.gate.authenticate(ctx)
    } catch (error) {
      if (error instanceof AppError && error.type === 'unauthorized') {
        forgetSession(ctx, deps)
        return undefined
      }
      throw error
    }
  }

  /** Answers a request of a page, given what is known of its caller so far. */
  async function show(ctx: Koa.Context, view: View, path: string): Promise<Shown> {
    const match = router.match(ctx.method, path)
    if (!match) throw new AppError('not_found', 'there is no such page')
    if (!match.found) throw methodNotAllowed(ctx, 'allowed' in match ? match.allowed : ['GET'])
    const route = match.value
    ctx.state.route = `console ${route.path}`
    view.params = match.params
    if (ctx.method === 'POST') {
      requireOwnForm(ctx, deps)
      if (route.takesFile && !view.session) {
        ctx.state.uploadLimit = MAX_DISCARDED
        return signInBefore(route.takesFile(view))
      }
      view.form = await readForm(ctx, route.takesFile !== undefined)
    }
    if (!view.session && !route.isPublic) return askToSignIn(view, ctx, route)
    if (view.session && route.formOf) requireOperation(view.session.role, route.formOf)
    try {
      return await route.handler(view)
    } catch (error) {
      if (error instanceof SessionEnded) return askToSignIn(view, ctx, route)
      if (error instanceof StaleForm && route.reopens) return { redirect: route.reopens(view) }
      if (error instanceof StaleForm) return resumePage(view, view.session!, path, view.form.typed())
      if (error instanceof Refused) return errorPage(view, error.answer)
      throw error
    } finally {
      await view.form.file?.discard()
    }
  }

  /** A form keeps what was typed: it is sent again after the sign-in. */
  async function askToSignIn(view: View, ctx: Koa.Context, route: ConsoleRoute): Promise<Shown> {
    if (ctx.method === 'POST' && route.reopens) return signInBefore(route.reopens(view))
    if (ctx.method === 'POST')
      return signInPage(view, { next: view.path, kept: view.form.typed(), status: 401, hasEnded: true })
    if (ctx.get('Sec-Fetch-Site') === 'cross-site') return ownNavigation
    return view.path === '/' ? { redirect: '/sign-in' } : signInBefore(view.path + ctx.search)
  }

  async function answer(ctx: Koa.Context, path: string, search: string): Promise<void> {
    const { paths, at } = await assets()
    if (path.startsWith(ASSETS)) {
      const asset = at(path)
      if (!asset) throw new AppError('not_found', 'the path does not exist')
      ctx.state.route = ASSETS
      return asset.send(ctx)
    }
    setPolicies(ctx, path)
    let view = viewOf(deps, realms, ctx, { path, search, caller: undefined })
    let shown: Shown
    try {
      requireUtf8(search, 'the query string')
      const caller = await callerOf(ctx)
      if (caller) {
        ctx.state.organization = caller.organization.id
        await limitUser(ctx, caller, realms.gate.windows)
        view = viewOf(deps, realms, ctx, { path, search, caller })
      } else if (ctx.method === 'POST') await limitAddress(ctx, deps, realms.gate.windows)
      shown = await show(ctx, view, path)
    } catch (error) {
      answerError(ctx, error, ctx.state.requestId, deps.log)
      shown = errorPage(view, { status: ctx.status, body: ctx.body as Record<string, unknown> })
    }
    if ('redirect' in shown) {
      ctx.status = 303
      ctx.set('Location', shown.redirect)
      ctx.body = ''
      return
    }
    send(ctx, view, shown, paths)
  }

  return { serves: (path) => path.startsWith(ASSETS) || places.has(path.split('/')[1]), answer }
}

/** Bytes of a file that comes without a session: a browser that has not sent it whole may show no answer. */
const MAX_DISCARDED = 64 * 1024 * 1024

const signInBefore = (next: string): Shown => ({ redirect: `/sign-in?next=${encodeURIComponent(next)}` })

/** The cookie of a session that has ended would count as a wrong credential with each page. */
function forgetSession(ctx: Koa.Context, { config }: AppDeps): void {
  const isSent = sessionToken(ctx.req.headers.cookie, isHttps(config)) !== undefined
  if (isSent) ctx.set('Set-Cookie', sessionCookie('', new Date(0), isHttps(config)))
}

/** A link on another site: browsers send the session only with the navigations of this one (`SameSite=Strict`). */
const ownNavigation: Page = {
  title: 'Opening',
  isBare: true,
  reloads: true,
  content: <p class="muted">Opening the page…</p>,
}

function send(ctx: Koa.Context, view: View, page: Page, paths: Assets['paths']): void {
  ctx.status = page.status ?? 200
  ctx.type = 'text/html; charset=utf-8'
  ctx.body = document(view, page, paths)
}

/** The means of a page; `caller` is the user of the session. */
function viewOf(
  deps: AppDeps,
  { app, v1 }: Realms,
  ctx: Koa.Context,
  { path, search, caller }: { path: string; search: string; caller: SessionCaller | undefined },
): View {
  function inside(to: string, request: Omit<InnerRequest, 'path' | 'search'>): Promise<WholeAnswer> {
    const [path = '', search = ''] = to.split('?')
    const gateway = path.startsWith('/app/v1/') ? v1 : app
    const from = { gateway, caller, log: deps.log, purpose: 'console call' } as const
    return requestInside(ctx, from, { ...request, path, search })
  }
  /** The answer, unless the session of the page has ended or changed. */
  function current(answer: WholeAnswer): WholeAnswer {
    if (answer.status === 401 && caller) throw new SessionEnded()
    if (typeOf(answer) === 'csrf_token_invalid') throw new StaleForm()
    return answer
  }
  const view: View = {
    session: caller?.session,
    timezone: caller?.organization.timezone ?? 'UTC',
    theme: themeOf(ctx),
    path,
    params: {},
    query: new URLSearchParams(search),
    form: new Form(),
    baseUrl: baseUrl(deps),
    signsUp: () => isSignUpOpen(deps.db.system, deps.config.SIGN_UP),
    setHeader: (name, value) => ctx.set(name, value),
    async call(method, to, body, headers = {}) {
      const send = () =>
        inside(to, { method, body, headers: { ...headersOf(ctx, view, method), ...headers } })
      let answer = await send()
      // The second of two clicks gets the answer of the first.
      for (let tries = 0; typeOf(answer) === 'idempotency_in_progress' && tries < 20; tries++) {
        await pause(250)
        answer = await send()
      }
      return current(answer)
    },
    upload: async (to, type, { bytes }, method = 'PUT') =>
      current(await inside(to, { method, upload: { type, bytes }, headers: headersOf(ctx, view, method) })),
    async read<T>(from: string) {
      const answer = await view.call('GET', from)
      if (answer.status >= 400) throw new Refused(answer)
      return answer.body as T
    },
    async readIfAllowed<T>(from: string) {
      const answer = await view.call('GET', from)
      if (answer.status === 403) return undefined
      if (answer.status >= 400) throw new Refused(answer)
      return answer.body as T
    },
    async change<T>(method: Parameters<View['change']>[0], to: string, body?: unknown) {
      const answer = await view.call(method, to, body)
      if (answer.status >= 400) throw new Refused(answer)
      return answer.body as T
    },
  }
  return view
}

/** Twice the same form is one request: it has the same idempotency key. */
function headersOf(ctx: Koa.Context, view: View, method: string): Record<string, string> {
  const { cookie } = ctx.req.headers
  if (method === 'GET') return {}
  const key = view.form.get(KEY_FIELD)
  return {
    ...(cookie !== undefined && { cookie }),
    'x-csrf-token': view.form.get(CSRF_FIELD),
    ...(key && { 'idempotency-key': key }),
  }
}

const typeOf = ({ body }: { body: Record<string, unknown> }) =>
  (body?.error as { type?: string } | undefined)?.type

function themeOf(ctx: Koa.Context): Theme {
  const chosen = ctx.cookies.get('agx_theme')
  return chosen === 'light' || chosen === 'dark' ? chosen : 'system'
}
