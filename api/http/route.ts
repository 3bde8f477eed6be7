import type { IncomingHttpHeaders } from 'node:http'
import type { z } from 'zod'
import type { MemberRole } from '../../db/model/access/roles.ts'
import type { Actor } from '../../db/model/actor.ts'
import type { Issue } from '../../db/model/errors.ts'
import type { TraceContext } from '../../db/model/trace-context.ts'
import type { Checked } from '../../db/model/validate.ts'
import type { Tenant } from '../../db/postgres/tenancy.ts'
import type { Logger } from '../../db/process/log.ts'
import type { AppDeps } from '../deps.ts'
import type { Caller, Scope } from './scopes.ts'
import type { Accepted, Upload } from './upload.ts'

/**
 * The definition of an operation, which routing, authorization, validation, idempotency and OpenAPI read. To add an
 * operation, add an entry to a file of `api/v1/` that `route-table.ts` lists.
 */
export interface Route<Params = unknown, Query = unknown, Body = unknown> {
  method: 'GET' | 'POST' | 'PUT' | 'PATCH' | 'DELETE'
  /** Below /v1, OpenAPI style: `/workflows/{workflow_id}`. Literal segments precede parameters. */
  path: string
  /**
   * `any`: every valid key. An array: all scopes are required. A function: the scopes depend on the path. `ofRecords`:
   * the scope depends on the kind of record in the body or in the row of the path; the handler calls
   * `request.requireScopes`.
   */
  scope: Scope | 'any' | Scope[] | ((params: Params) => Scope[]) | { ofRecords: 'read' | 'write' }
  /** The scopes that the row of the path needs besides. */
  rowScopes?: RowScopes<Params>
  /** The OpenAPI `operationId`. */
  id: string
  /**
   * The operation whose recorded example is shown here, because it has the same handler or answer. Default: this
   * operation.
   */
  exampleOf?: string
  tag: string
  summary: string
  description?: string
  params?: z.ZodType<Params>
  query?: z.ZodType<Query> | QueryByPath<Params, Query>
  body?: z.ZodType<Body>
  /** Checks the body instead of its schema: in turns of the event loop, because it may take long. */
  checkBody?: (sent: unknown, organizationId: string) => Promise<Checked>
  /** The body contains a secret under a name that does not show it: no error echoes the body. */
  secretBody?: true
  /** The Content-Type of a body that is a file: the handler reads it from `upload`. */
  accepts?: Accepted
  /** In bytes; default 1 MiB. */
  bodyLimit?: number
  /** `file`: the handler returns a `FileAnswer` of this type, or of any, instead of JSON. */
  response:
    | {
        status: 200 | 201
        schema: z.ZodType
        description?: string
        /** With status 201: the schema of a preview, which is answered with 200. */
        preview?: z.ZodType
        /** The body as Markdown, for requests that prefer it (`Accept: text/markdown`). */
        markdown?: (body: never) => string
      }
    | { status: 200; file: Accepted; description?: string }
    /** A file of JSON. */
    | { status: 200; file: 'application/json'; schema: z.ZodType; description?: string }
    /** The handler returns an `EventStream`. */
    | { status: 200; stream: 'text/event-stream'; description?: string }
  /** An example body, shown in the reference. */
  example?: unknown
  /** Whether the operation accepts an Idempotency-Key; default: every method except GET. */
  idempotent?: boolean
  /** The response has a secret: for its Idempotency-Key it is stored sealed. */
  secretAnswer?: true
  /** Masks the links of approvals that name no caller: those who read them could decide as themselves. */
  hidesLinks?: true
  /** It stores more: refused with `quota_exceeded` while the organization stores as much as its plan allows. */
  grows?: true | ((body: Body) => boolean)
  /** The response has the version as ETag. */
  etag?: true
  /** The handler honours If-Match: 412 if the version is not current. */
  ifMatch?: true
  /** The handler may answer 410. */
  gone?: true
  /** The handler honours `Prefer: wait=N`. */
  waits?: true
  handler: (request: RouteRequest<Params, Query, Body>) => Promise<unknown>
  /**
   * Further issues of an invalid request, found with the database or the settings, so that one response lists all
   * issues. Query and body are unvalidated.
   */
  otherIssues?: (
    request: Pick<RouteRequest<Params>, 'caller' | 'deps' | 'params' | 'tenant'>,
    sent: Sent,
  ) => Promise<Issue[]>
}

/** Further scopes, which depend on the row that the path names. `of` throws not_found. */
export interface RowScopes<Params = unknown> {
  /** For the reference, after the other scopes: `that to read its records`. */
  description: string
  of: (tx: Tenant, params: Params) => Promise<readonly Scope[]>
}

/** A query whose parameters depend on the path. `of` returns its schema; `documented` is the schema for OpenAPI. */
export interface QueryByPath<Params, Query> {
  of: (params: Params) => z.ZodType<Query>
  documented: z.ZodType
}

export type RawQuery = Record<string, string | string[]>

export interface Sent {
  query: RawQuery
  body: unknown
}

/** The result of a handler whose response is a file; `content` is produced as the client reads it. */
export interface FileAnswer {
  name: string
  content: AsyncIterable<Buffer | string>
  /** The media type and the length in bytes, where the route does not know the type. */
  is?: { type: string; length: number }
  /** The Content-Type, where the route has several. */
  type?: string
}

/** Server-sent events: each item is a whole event or comment. It ends when the client disconnects, or by itself. */
export interface EventStream {
  events: AsyncGenerator<string>
  /** Called once, however the stream has ended. */
  close(): void
  /** Milliseconds after which the connection is closed even if the client does not read. */
  lifetimeMs: number
}

/** The validated request of a handler. The handler returns the body of the response, or throws AppError. */
export interface RouteRequest<Params = unknown, Query = unknown, Body = unknown> {
  params: Params
  query: Query
  body: Body
  /** The file of a route with `accepts`. Throws for other routes. */
  readonly upload: Upload
  caller: Caller
  actor: Actor
  headers: IncomingHttpHeaders
  requestId: string
  /** The trace of `traceparent`, else a new one. All that the request causes belongs to it. */
  trace: TraceContext
  log: Logger
  deps: AppDeps
  /** Aborted if the client disconnects, except for a keyed request: its retry needs the response. */
  signal: AbortSignal
  /**
   * Throws insufficient_scope. Handlers check scopes only with this method: a replay of the stored response requires
   * the same scopes.
   */
  requireScopes(needed: readonly Scope[]): void
  /** Runs `work` in a transaction of the caller's organization, with the caller as actor. */
  tenant<T>(work: (tx: Tenant) => Promise<T>): Promise<T>
  /**
   * `tenant` for work of exactly one statement, with which COMMIT is sent. GET of one record takes 1.2 to 1.4 times the
   * CPU time of API and PostgreSQL without it (`npm run bench -- records --only=GET`).
   */
  oneStatement<T>(work: (tx: Tenant) => Promise<T>): Promise<T>
  /**
   * Commits early. With an Idempotency-Key the request is one transaction, which ends when the handler returns. A
   * handler that waits for another process to act on its writes (the end of a run) must call this first. A retry gets
   * 409 until the handler returns; if the process dies first, the retry gets `answer` some seconds later. No-op without
   * a key.
   */
  commit(answer: unknown): Promise<void>
  /** The client's address, behind TRUSTED_PROXIES. */
  clientIp: string
  setHeader(name: string, value: string): void
  /** Declares the response a preview: status 200, and not stored under the Idempotency-Key. */
  asPreview(): void
}

/** Infers the types of `handler` from the schemas; the route table has the type `Route`. */
export function route<Params, Query, Body>(definition: Route<Params, Query, Body>): Route {
  return definition as unknown as Route
}

/**
 * The least privileged role that may call an operation of `/app`; `public` needs no session. `leastRole(scope)` derives
 * it from the scope that guards the same resource.
 */
export type Role = 'public' | MemberRole

/** An operation of /app: it has a role instead of a scope. */
export interface AppRoute<Params = unknown, Query = unknown, Body = unknown>
  extends Omit<Route<Params, Query, Body>, 'scope'> {
  role: Role
}

/** Infers the types of `handler` from the schemas; the route table has the type `AppRoute`. */
export function appRoute<Params, Query, Body>(definition: AppRoute<Params, Query, Body>): AppRoute {
  return definition as unknown as AppRoute
}

/** Whether an operation accepts an Idempotency-Key. Uploads do not: the body is not buffered, and a repeat is safe. */
export const isIdempotent = ({ idempotent, method, accepts }: Route | AppRoute): boolean =>
  idempotent ?? (method !== 'GET' && !accepts)
