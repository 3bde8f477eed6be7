import type Koa from 'koa'
import type { Logger } from '../../db/log.ts'
import type { Actor, Tenant } from '../../db/postgres/tenancy.ts'
import type { AppDeps } from '../deps.ts'
import { clientIp } from './client-ip.ts'
import type { RouteRequest } from './route.ts'
import type { Caller } from './scopes.ts'
import type { Upload } from './upload.ts'

/** One request on its way through the gateway: what the handler gets to see of it, and what it asked for. */
export class Exchange implements RouteRequest {
  query: unknown
  body: unknown
  readonly params: unknown
  readonly deps: AppDeps
  /** A transaction that the whole request runs in, where its answer is stored together with its effect. */
  transaction: Tenant | undefined
  /** Set by `runOnce`: stores an early answer and commits. */
  commitEarly: ((answer: unknown, seconds: number) => Promise<void>) | undefined
  /** Set by `runOnce`: the answer is also for whoever retries, so the client's going ends nothing. */
  keyed = false
  stored = true
  /** What the handler set. */
  readonly ownHeaders: Record<string, string> = {}
  private readonly ctx: Koa.Context
  private readonly file: Upload | undefined
  private readonly who: Caller | undefined
  private aborter: AbortController | undefined

  constructor(ctx: Koa.Context, deps: AppDeps, caller: Caller | undefined, params: unknown, file?: Upload) {
    this.ctx = ctx
    this.file = file
    this.deps = deps
    this.who = caller
    this.params = params
  }

  get caller(): Caller {
    if (!this.who) throw new Error('a public route has no caller')
    return this.who
  }

  get upload(): Upload {
    if (!this.file) throw new Error('this route takes no file')
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

  get log(): Logger {
    return this.deps.log.child({ request_id: this.requestId })
  }

  get clientIp(): string {
    return clientIp(this.ctx.req, this.deps.config.TRUSTED_PROXIES)
  }

  get signal(): AbortSignal {
    if (!this.aborter) {
      const aborter = new AbortController()
      const { res } = this.ctx
      res.once('close', () => {
        if (!res.writableFinished && !this.keyed) aborter.abort()
      })
      this.aborter = aborter
    }
    return this.aborter.signal
  }

  // Arrow functions, for handlers take them out of the request: `({ body, tenant }) => …`.

  tenant = <T>(work: (tx: Tenant) => Promise<T>): Promise<T> =>
    this.transaction
      ? work(this.transaction)
      : this.deps.db.tenant(this.caller.organization.id, this.actor, work)

  commit = async (answer: unknown, seconds: number): Promise<void> => this.commitEarly?.(answer, seconds)

  setHeader = (name: string, value: string): void => {
    this.ownHeaders[name] = value
    this.ctx.res.setHeader(name, value)
  }

  doNotStore = (): void => {
    this.stored = false
  }
}
