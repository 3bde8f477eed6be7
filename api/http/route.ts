import type { IncomingHttpHeaders } from 'node:http'
import type { z } from 'zod'
import type { MemberRole } from '../../db/access/roles.ts'
import type { Issue } from '../../db/errors.ts'
import type { Logger } from '../../db/log.ts'
import type { Actor, Tenant } from '../../db/postgres/tenancy.ts'
import type { AppDeps } from '../deps.ts'
import type { Caller, Scope } from './scopes.ts'
import type { Upload } from './upload.ts'

/**
 * One operation of the gateway: its one definition, from which routing, authorization, validation, idempotency and
 * OpenAPI read. To add one: an entry in a file of `api/v1/`, which `route-table.ts` lists.
 */
export interface Route<Params = unknown, Query = unknown, Body = unknown> {
  method: 'GET' | 'POST' | 'PUT' | 'PATCH' | 'DELETE'
  /** Below /v1, OpenAPI style: `/workflows/{workflow_id}`. Literal segments win over parameters. */
  path: string
  /**
   * `any`: every valid key. Several: all are needed. A function where they depend on the path. `ofRecords`: on the kind
   * of record that the body or the row behind the path is about; the handler, who knows it, calls `requireScopes`.
   */
  scope: Scope | 'any' | Scope[] | ((params: Params) => Scope[]) | { ofRecords: 'read' | 'write' }
  /** OpenAPI: `operationId`, tag and summary; the description says what a caller must know. */
  id: string
  tag: string
  summary: string
  description?: string
  params?: z.ZodType<Params>
  query?: z.ZodType<Query> | QueryByPath<Params, Query>
  body?: z.ZodType<Body>
  /** The type of a body that is a file: it is not read, but given to the handler as `upload`. */
  accepts?: 'text/csv'
  /** In bytes; default 1 MiB. */
  bodyLimit?: number
  /** `file`: the answer is no JSON but a `FileAnswer` of this type. */
  response:
    | { status: 200 | 201; schema: z.ZodType; description?: string }
    | { status: 200; file: 'text/csv'; description?: string }
  /** An example body, shown in the reference. */
  example?: unknown
  /**
   * Writing operations take an Idempotency-Key; default: every method but GET. False where the answer holds a secret,
   * for answers are stored as they are.
   */
  idempotent?: boolean
  /** Its answer carries a version as ETag. */
  etag?: true
  /** The handler honours If-Match: a version that is not the current one is 412. */
  ifMatch?: true
  /** The handler honours `Prefer: wait=N`. */
  waits?: true
  handler: (request: RouteRequest<Params, Query, Body>) => Promise<unknown>
  /**
   * What only the database can say of a request that is refused as invalid anyway, so that everything is told at once.
   * Query and body are as they were sent, whatever that is.
   */
  otherIssues?: (
    request: Pick<RouteRequest<Params>, 'caller' | 'params' | 'tenant'>,
    sent: Sent,
  ) => Promise<Issue[]>
}

/** A query string whose parameters depend on the path: `of` checks it; `documented` is what OpenAPI shows. */
export interface QueryByPath<Params, Query> {
  of: (params: Params) => z.ZodType<Query>
  documented: z.ZodType
}

export type RawQuery = Record<string, string | string[]>

export interface Sent {
  query: RawQuery
  body: unknown
}

/** What a handler of a route whose response is a file returns; what it does not read is not made. */
export interface FileAnswer {
  name: string
  content: AsyncIterable<Buffer | string>
}

/** What a handler gets: everything checked and typed. It returns the body, or throws AppError. */
export interface RouteRequest<Params = unknown, Query = unknown, Body = unknown> {
  params: Params
  query: Query
  body: Body
  /** The file, of a route that `accepts` one. Throws elsewhere. */
  readonly upload: Upload
  caller: Caller
  actor: Actor
  headers: IncomingHttpHeaders
  requestId: string
  log: Logger
  deps: AppDeps
  /** Aborted when the client has gone; not under an Idempotency-Key, where a retry gets what became of it. */
  signal: AbortSignal
  /** A transaction of the caller's organization, acting as the caller. */
  tenant<T>(work: (tx: Tenant) => Promise<T>): Promise<T>
  /**
   * Under an Idempotency-Key the whole request is one transaction, which ends when the handler returns. A handler that
   * waits for others to act on what it wrote (a run's end) must call this first: it commits. A retry is told that the
   * first request is in flight until the handler answers, which takes it at most `seconds`; should the process die
   * before, `answer` is what the retry gets after them. Without a key everything is committed already.
   */
  commit(answer: unknown, seconds: number): Promise<void>
  /** The client's address, behind TRUSTED_PROXIES. */
  clientIp: string
  setHeader(name: string, value: string): void
  /** This answer is not kept for Idempotency-Key (a preview). */
  doNotStore(): void
}

/** Gives `handler` the types of the schemas; the table holds them all as `Route`. */
export function route<Params, Query, Body>(definition: Route<Params, Query, Body>): Route {
  return definition as unknown as Route
}

/**
 * The least role that an operation of the application's own routes (`/app`) needs; `public` needs no session. Where a
 * scope guards the same thing, it is `leastRole(scope)`.
 */
export type Role = 'public' | MemberRole

/** An operation below /app: the same machinery, a session and a role in place of a key and a scope. */
export interface AppRoute<Params = unknown, Query = unknown, Body = unknown>
  extends Omit<Route<Params, Query, Body>, 'scope'> {
  role: Role
}

/** Gives `handler` the types of the schemas; the table holds them all as `AppRoute`. */
export function appRoute<Params, Query, Body>(definition: AppRoute<Params, Query, Body>): AppRoute {
  return definition as unknown as AppRoute
}

/** Whether an operation takes an Idempotency-Key. A file that is sent again replaces itself, and is not there to be compared. */
export const isIdempotent = ({ idempotent, method, accepts }: Route | AppRoute): boolean =>
  idempotent ?? (method !== 'GET' && !accepts)
