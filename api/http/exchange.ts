import type Koa from 'koa'
import type { Actor } from '../../db/model/actor.ts'
import type { TraceContext } from '../../db/model/trace-context.ts'
import type { TenantOptions } from '../../db/postgres/connect.ts'
import type { Tenant } from '../../db/postgres/tenancy.ts'
import type { Logger } from '../../db/process/log.ts'
import type { AppDeps } from '../deps.ts'
import { clientIp } from './client-ip.ts'
import type { RouteRequest } from './route.ts'
import { type Caller, requireScopes, type Scope } from './scopes.ts'
import { traceOf } from './trace.ts'
import type { Upload } from './upload.ts'

/** One request in the gateway: the request object of the handler, and the state that the handler sets. */
export class Exchange implements RouteRequest {
  query: unknown
  body: unknown
  readonly params: unknown
  /** `runOnce` replaces `compute`. */
  deps: AppDeps
  /** The transaction of a keyed request: it contains the handler's effects and the stored response. */
  transaction: Tenant | undefined
  /** Set by `runOnce`: stores a provisional answer and commits. */
  commitEarly: ((answer: unknown) => Promise<void>) | undefined
  /** Set by `runOnce`: a retry needs the response, so a disconnect does not abort keyed requests. */
  keyed = false
  isPreview = false
  /** The headers that the handler set. */
  readonly handlerHeaders: Record<string, string> = {}
  private readonly ctx: Koa.Context
  private readonly file: Upload | undefined
  private readonly options: TenantOptions
  private readonly optionalCaller: Caller | undefined
  private abortController: AbortController | undefined

  /** The last parameter has the uploaded file and the options of the transactions. */
  constructor(
    ctx: Koa.Context,
    deps: AppDeps,
    caller: Caller | undefined,
    params: unknown,
    { file, ...options }: TenantOptions & { file?: Upload | undefined } = {},
  ) {
    this.ctx = ctx
    this.file = file
    this.options = options
    this.deps = deps
    this.optionalCaller = caller
    this.params = params
  }

  get caller(): Caller {
    if (!this.optionalCaller) throw new Error('a public route has no caller')
    return this.optionalCaller
  }

  get upload(): Upload {
    if (!this.file) throw new Error('this route accepts no file')
    return this.file
  }

  get actor(): Actor {
    return { type: this.caller.type, id: this.caller.id }
  }

  get headers() {
    return this.ctx.req.headers
  }

  get requestId(): string {
    return this.ctx.state.requestId
  }

  get trace(): TraceContext {
    return traceOf(this.ctx)
  }

  get log(): Logger {
    return this.deps.log.child({ request_id: this.requestId })
  }

  get clientIp(): string {
    return clientIp(this.ctx.req, this.deps.config.TRUSTED_PROXIES)
  }

  get signal(): AbortSignal {
    if (!this.abortController) {
      const controller = new AbortController()
      const { res } = this.ctx
      res.once('close', () => {
        if (!res.writableFinished && !this.keyed) controller.abort()
      })
      this.abortController = controller
    }
    return this.abortController.signal
  }

  /** The scopes that the handler required, besides those of the route. */
  readonly requiredScopes = new Set<Scope>()

  private begin<T>(work: (tx: Tenant) => Promise<T>, options: TenantOptions): Promise<T> {
    return this.deps.db.tenant(this.caller.organization.id, this.actor, work, this.trace, options)
  }

  // Arrow functions, because handlers destructure the request: `({ body, tenant }) => …`.

  tenant = <T>(work: (tx: Tenant) => Promise<T>): Promise<T> =>
    this.transaction ? work(this.transaction) : this.begin(work, this.options)

  oneStatement = <T>(work: (tx: Tenant) => Promise<T>): Promise<T> =>
    this.transaction ? work(this.transaction) : this.begin(work, { ...this.options, oneStatement: true })

  requireScopes = (needed: readonly Scope[]): void => {
    requireScopes(this.caller, needed)
    for (const scope of needed) this.requiredScopes.add(scope)
  }

  commit = async (answer: unknown): Promise<void> => this.commitEarly?.(answer)

  setHeader = (name: string, value: string): void => {
    this.handlerHeaders[name] = value
    this.ctx.res.setHeader(name, value)
  }

  asPreview = (): void => {
    this.isPreview = true
  }
}
