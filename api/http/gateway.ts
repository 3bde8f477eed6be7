import { Readable } from 'node:stream'
import type Koa from 'koa'
import { NIL } from 'uuid'
import { z } from 'zod'
import { AppError, firstOfEachLoc, invalid, notFound } from '../../db/model/errors.ts'
import { type Checked, check, strict } from '../../db/model/validate.ts'
import type { Send } from '../../db/postgres/transaction.ts'
import { hideApprovalLinks } from '../../db/process/approval-links.ts'
import { storageExceeded } from '../../db/storage/usage.ts'
import { nearest } from '../../workflows/shared/nearest.ts'
import type { AppDeps } from '../deps.ts'
import { isSuspect, unsafeText } from './body.ts'
import { methodNotAllowed } from './errors.ts'
import { Exchange } from './exchange.ts'
import { runOnce } from './idempotency.ts'
import { answerPresumed, type Presumed } from './presumed.ts'
import { type Received, receive } from './received.ts'
import {
  type AppRoute,
  type EventStream,
  type FileAnswer,
  isIdempotent,
  type Route,
  type Sent,
} from './route.ts'
import { type Accepted, type Match, Router } from './router.ts'
import type { Caller } from './scopes.ts'

/** The differences between /v1 (keys and scopes), /app (sessions and roles) and /app/v1 (sessions and scopes). */
export interface Realm<R extends Route | AppRoute> {
  /** The prefix of all paths. */
  prefix: string
  routes: readonly R[]
  /** A hint for an unknown path. */
  hintFor?(path: string): string | undefined
  /** Throws at start if a route declares no scope or role. */
  inspect(route: R): void
  /** The caller; undefined only for a public route. Throws unauthorized. */
  authenticate(ctx: Koa.Context, route: R | undefined): Promise<Caller | undefined>
  /** The caller as of the last look-up of its credential. For reads only. */
  presume?(ctx: Koa.Context): Presumed | undefined
  /** Counts the request against the caller's limits. Throws rate_limited. */
  limit?(ctx: Koa.Context, caller: Caller): Promise<void>
  /** Throws insufficient_scope. */
  authorize(ctx: Koa.Context, route: R, params: unknown, caller: Caller | undefined): void
}

/** A route with its schemas, which are compiled at start. */
interface Operation<R> {
  route: R
  params: z.ZodType | undefined
  query: (params: unknown) => z.ZodType
  body: z.ZodType | undefined
  idempotent: boolean
  /** The paths with a name in place of the id at the end of this one. */
  named: readonly string[]
}

/**
 * Reads are answered as their presumed caller below this number of concurrent requests. Above it, requests share the
 * look-ups of their keys, which takes less CPU time.
 */
const MOST_PRESUMED = 4

export interface Gateway {
  /** Responds to a request of the realm. The checks run in the order that the interface promises. */
  (ctx: Koa.Context, path: string, search: string): Promise<void>
  /** Responds to a request whose caller is known, and which counts against no limit: it is part of another request. */
  handleFor(ctx: Koa.Context, path: string, search: string, caller: Caller): Promise<void>
}

/** The handler of all requests of a realm. */
export function createGateway<R extends Route | AppRoute>(deps: AppDeps, realm: Realm<R>): Gateway {
  const router = new Router<Operation<R>>()
  for (const route of realm.routes) {
    realm.inspect(route)
    router.add(route.method, route.path, compile(route, realm.routes), enumerationsOf(route))
  }

  let inProgress = 0

  type Request = { path: string; search: string; match: Match<Operation<R>> | undefined }

  const matched = (ctx: Koa.Context, path: string, search: string): Request => ({
    path,
    search,
    match: router.match(ctx.method, path.slice(realm.prefix.length)),
  })

  const handleFor: Gateway['handleFor'] = (ctx, path, search, caller) =>
    answerAs(ctx, matched(ctx, path, search), caller)

  return Object.assign(handle, { handleFor })

  async function handle(ctx: Koa.Context, path: string, search: string): Promise<void> {
    const request = matched(ctx, path, search)
    const { match } = request
    const authenticate = () => realm.authenticate(ctx, match?.found ? match.value.route : undefined)
    const mayPresume = match?.found && isRead(match.value) && inProgress < MOST_PRESUMED
    const presumed = mayPresume ? realm.presume?.(ctx) : undefined
    inProgress++
    try {
      if (!presumed) return await answer(ctx, request, await authenticate())
      await answerPresumed(ctx, presumed, authenticate, (caller, afterBegin) =>
        answer(ctx, request, caller, afterBegin),
      )
    } finally {
      inProgress--
    }
  }

  async function answer(
    ctx: Koa.Context,
    request: Request,
    caller: Caller | undefined,
    afterBegin?: (send: Send) => void,
  ) {
    if (caller) {
      ctx.state.organization = caller.organization.id
      await realm.limit?.(ctx, caller)
    }
    await answerAs(ctx, request, caller, afterBegin)
  }

  /** Responds to a request that the limits of its caller admit. */
  async function answerAs(
    ctx: Koa.Context,
    { path, search, match }: Request,
    caller: Caller | undefined,
    afterBegin?: (send: Send) => void,
  ) {
    const { operation, params } = find(ctx, match, realm.hintFor?.(path))
    ctx.state.route = realm.prefix + operation.route.path
    realm.authorize(ctx, operation.route, params, caller)

    const received = await receive(ctx, operation, search)
    const request = new Exchange(ctx, deps, caller, params, {
      file: received.upload,
      readOnly: isRead(operation),
      afterBegin,
    })
    await respond(ctx, operation, request, path, received)
  }
}

/** Executes the operation and sets its response. With an Idempotency-Key it is executed at most once. */
async function respond(
  ctx: Koa.Context,
  operation: Operation<Route | AppRoute>,
  request: Exchange,
  path: string,
  received: Received,
): Promise<void> {
  const { response } = operation.route
  const { hidesLinks, secretAnswer } = operation.route
  const execute = () => validateAndHandle(operation, request, received)
  if ('file' in response) return answerFile(ctx, response.file, (await execute()) as FileAnswer)
  if ('stream' in response) return answerStream(ctx, (await execute()) as EventStream)
  if (response.markdown && prefersMarkdown(ctx)) {
    ctx.body = response.markdown((await execute()) as never)
    ctx.res.setHeader('Content-Type', `${MARKDOWN}; charset=utf-8`)
    return
  }
  const { key, bytes } = received
  const { status, body } = key
    ? await runOnce(
        request,
        { method: ctx.method, path, key, bytes, secret: secretAnswer },
        response.status,
        execute,
      )
    : { status: response.status, body: JSON.stringify(await execute()) }
  ctx.status = request.isPreview ? 200 : status
  ctx.res.setHeader('Content-Type', 'application/json; charset=utf-8')
  ctx.body = hidesLinks ? hideApprovalLinks(body) : body
}

const MARKDOWN = 'text/markdown'

function prefersMarkdown(ctx: Koa.Context): boolean {
  ctx.vary('Accept')
  return ctx.accepts('application/json', MARKDOWN) === MARKDOWN
}

/** Validates the request and runs the handler. Throws validation_error with all issues. */
async function validateAndHandle(
  operation: Operation<Route | AppRoute>,
  request: Exchange,
  received: Received,
): Promise<unknown> {
  try {
    const { checkBody, rowScopes } = operation.route
    const body = checkBody && (await checkBody(received.sent.body, request.caller.organization.id))
    Object.assign(request, checked(operation, request.params, received, body))
    if (rowScopes) request.requireScopes(await request.tenant((tx) => rowScopes.of(tx, request.params)))
    await requireStorage(operation.route, request)
    return await operation.route.handler(request)
  } catch (error) {
    throw await withOtherIssues(error, operation, request, received.sent)
  }
}

/** Throws quota_exceeded for an operation that stores more, if the organization is full. */
async function requireStorage({ grows }: Route | AppRoute, request: Exchange): Promise<void> {
  if (!grows || !request.caller.storageFull) return
  if (grows === true || grows(request.body as never)) throw await request.tenant(storageExceeded)
}

/**
 * Whether the operation only reads: its transactions are read-only, and its response is sent after the handler ends.
 */
const isRead = ({ route: { method, response } }: Operation<Route | AppRoute>) =>
  method === 'GET' && !('file' in response) && !('stream' in response)

function compile<R extends Route | AppRoute>(route: R, routes: readonly R[]): Operation<R> {
  const { query = NO_QUERY } = route
  const fixed = query instanceof z.ZodType ? strict(query) : undefined
  return {
    route,
    params: route.params,
    query: query instanceof z.ZodType ? () => fixed! : query.of,
    body: route.body && strict(route.body),
    idempotent: isIdempotent(route),
    named: namedBeside(route, routes),
  }
}

function namedBeside({ method, path }: Route | AppRoute, routes: readonly (Route | AppRoute)[]): string[] {
  if (!path.endsWith('_id}')) return []
  const before = path.slice(0, path.lastIndexOf('/') + 1)
  return routes.flatMap((other) => {
    const isBeside = other.method === method && other.path.startsWith(before)
    return isBeside && /^[\w-]+$/.test(other.path.slice(before.length)) ? [other.path] : []
  })
}

/** The path with a name that was most likely meant by a text in place of an id. */
function pathMeant(named: readonly string[], written: string): string | undefined {
  const byName = new Map(named.map((path) => [path.split('/').at(-1)!, path]))
  const names = [...byName.keys()]
  const whole = names.find((name) => written.length > 3 && name.split('-').includes(written))
  return byName.get(whole ?? nearest(written, names) ?? '')
}

/**
 * The operation and its path parameters. Throws not_found or method_not_allowed. The nil UUID replaces an invalid id,
 * so that the response is the one for an unknown id.
 */
function find<R extends Route | AppRoute>(
  ctx: Koa.Context,
  match: Match<Operation<R>> | undefined,
  hint = 'see /docs',
) {
  if (!match) throw new AppError('not_found', 'the path does not exist', { hint })
  if (!match.found && 'unknown' in match)
    throw notFound(match.unknown.name, `one of ${match.unknown.accepted.join(', ')}`)
  if (!match.found) throw methodNotAllowed(ctx, match.allowed)
  const operation = match.value
  const { params: schema } = operation
  const parsed = schema?.safeParse(match.params)
  if (!schema || !parsed) return { operation, params: match.params }
  if (parsed.success) return { operation, params: parsed.data }
  const other = parsed.error.issues.find((issue) => !String(issue.path[0]).endsWith('_id'))
  if (other) throw notFound(String(other.path[0]))
  const last = operation.route.path.slice(operation.route.path.lastIndexOf('{') + 1, -1)
  const meant = pathMeant(operation.named, String(match.params[last]))
  if (meant !== undefined) throw notFound(last.replace('_id', ''), `did you mean ${meant}?`)
  const nilIds = parsed.error.issues.map((issue) => [issue.path[0], NIL])
  return { operation, params: schema.parse({ ...match.params, ...Object.fromEntries(nilIds) }) }
}

/** The path parameters that are enumerations. */
const enumerationsOf = ({ params }: Route | AppRoute): Accepted | undefined => {
  const entries = params instanceof z.ZodObject ? Object.entries(params.shape) : []
  const enumerations = entries.flatMap(([name, schema]) =>
    schema instanceof z.ZodEnum ? [[name, schema.options.map(String)] as const] : [],
  )
  return enumerations.length > 0 ? Object.fromEntries(enumerations) : undefined
}

function answerFile(ctx: Koa.Context, documented: string, { name, content, is, type }: FileAnswer): void {
  ctx.status = 200
  ctx.res.setHeader('Content-Type', is?.type ?? type ?? `${documented}; charset=utf-8`)
  if (is) {
    ctx.res.setHeader('Content-Length', is.length)
    // A tenant's HTML or SVG must never run with the rights of this origin.
    ctx.res.setHeader('Content-Security-Policy', "sandbox; default-src 'none'")
  }
  ctx.res.setHeader('Content-Disposition', attachment(name))
  // Koa destroys it when the response ends, however it ends.
  ctx.body = content instanceof Readable ? content : Readable.from(content)
}

/** RFC 6266: the name in ASCII for old clients, and the whole one. */
function attachment(name: string): string {
  const ascii = name.replace(/[^\x20-\x7e]|["\\%]/g, '_')
  const plain = `attachment; filename="${ascii}"`
  return ascii === name
    ? plain
    : `${plain}; filename*=UTF-8''${encodeURIComponent(name).replace(/['()*]/g, percent)}`
}

const percent = (character: string) => `%${character.charCodeAt(0).toString(16).toUpperCase()}`

function answerStream(ctx: Koa.Context, { events, close, lifetimeMs }: EventStream): void {
  ctx.status = 200
  ctx.res.setHeader('Content-Type', 'text/event-stream; charset=utf-8')
  // Proxies such as nginx would hold the events back.
  ctx.res.setHeader('X-Accel-Buffering', 'no')
  const end = setTimeout(() => ctx.res.destroy(), lifetimeMs)
  ctx.res.once('close', () => {
    clearTimeout(end)
    close()
  })
  ctx.body = Readable.from(events)
  ctx.res.flushHeaders()
}

const NO_QUERY = z.object({})
const NO_BODY = z.strictObject({}).optional()

/**
 * The validated query and body. `checkedBody`: that of an operation with `checkBody`. Throws validation_error with all
 * issues of both.
 */
function checked(
  operation: Operation<Route | AppRoute>,
  params: unknown,
  { sent, bytes, ...received }: Received,
  checkedBody: Checked | undefined,
) {
  const issues = [...received.issues, ...unsafeText(sent.query, ['query'])]
  if (bytes && isSuspect(bytes)) issues.push(...unsafeText(sent.body, ['body']))
  const query = check(operation.query(params), sent.query, 'query')
  const body =
    operation.route.method === 'GET'
      ? { value: undefined }
      : (checkedBody ??
        check(operation.body ?? NO_BODY, sent.body, 'body', { secret: operation.route.secretBody ?? false }))
  if ('issues' in query) issues.push(...query.issues)
  if ('issues' in body) issues.push(...body.issues)
  if (issues.length > 0 || 'issues' in query || 'issues' in body) throw invalid(firstOfEachLoc(issues))
  return { query: query.value, body: body.value }
}

/** The error of a refused request, extended by the issues of `otherIssues`. */
async function withOtherIssues(
  error: unknown,
  { route }: Operation<Route | AppRoute>,
  request: Exchange,
  sent: Sent,
): Promise<unknown> {
  if (!(error instanceof AppError) || !error.details.issues || !route.otherIssues) return error
  const others = await route.otherIssues(request, sent)
  const issues = firstOfEachLoc([...error.details.issues, ...others])
  return issues.length > error.details.issues.length ? invalid(issues) : error
}
