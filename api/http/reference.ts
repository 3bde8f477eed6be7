import type Koa from 'koa'
import type { AppDeps } from '../deps.ts'
import { docsPage, docsPolicy } from './docs.ts'
import { openApi } from './openapi.ts'
import type { AppRoute, Route } from './route.ts'

/** Answers /openapi.json and /docs; both are made once, when first asked for. */
export function createReference(deps: AppDeps, v1: readonly Route[], app: readonly AppRoute[]) {
  let made: { json: string; page: string } | undefined
  const policy = docsPolicy()

  function make() {
    const document = openApi(v1, app, deps.config.PUBLIC_URL ?? '/')
    return { json: JSON.stringify(document), page: docsPage(document) }
  }

  return {
    json(ctx: Koa.Context): void {
      made ??= make()
      ctx.type = 'application/json'
      ctx.body = made.json
    },
    page(ctx: Koa.Context): void {
      made ??= make()
      ctx.type = 'text/html'
      ctx.set('Content-Security-Policy', policy)
      ctx.set('X-Content-Type-Options', 'nosniff')
      ctx.body = made.page
    },
  }
}
