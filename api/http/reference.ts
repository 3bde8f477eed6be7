import type Koa from 'koa'
import { AppError } from '../../db/model/errors.ts'
import type { AppDeps } from '../deps.ts'
import { docsPage, docsPolicy, readBundle } from './docs.ts'
import { MARKDOWN_PAGES, type MarkdownPage, readPage } from './docs-pages/pages.ts'
import { renderPage } from './docs-pages/render.ts'
import { findingsGuide } from './findings-guide.ts'
import { GUIDE_POLICY, guidePage } from './guide-page.ts'
import { openApi } from './openapi.ts'
import { receiverGuide } from './receiver-guide/page.ts'
import type { AppRoute, Route } from './route.ts'
import { type StaticAnswer, staticAnswer } from './static-answer.ts'

type Page = (ctx: Koa.Context) => Promise<void>

const SCRIPT = /^\/docs\/scalar-[\w-]+\.js$/

/**
 * /openapi.json, /docs and its script, and the other pages of /docs, each built at the first request. @returns the page
 * of a path, if any.
 */
export function createReference(
  { config: { PUBLIC_URL } }: AppDeps,
  v1: readonly Route[],
  app: readonly AppRoute[],
): (path: string) => Page | undefined {
  const document = once(async () =>
    staticAnswer(JSON.stringify(await openApi(v1, app, PUBLIC_URL ?? '/')), { type: 'application/json' }),
  )
  const script = once(async () =>
    staticAnswer(await readBundle(), { type: 'text/javascript', immutable: true }),
  )
  const page = once(async () =>
    staticAnswer(docsPage('agx API', scriptPath(await script())), { type: 'text/html' }),
  )
  const guide = (path: string, make: () => string | Promise<string>): [string, Page] => {
    const html = once(async () => staticAnswer(await make(), { type: 'text/html' }))
    return [
      path,
      async (ctx) => {
        ctx.set('Content-Security-Policy', GUIDE_POLICY)
        ctx.set('Referrer-Policy', 'no-referrer')
        const answer = await html()
        answer.send(ctx)
      },
    ]
  }
  const policy = docsPolicy(PUBLIC_URL)
  const pages = new Map<string, Page>([
    ['/openapi.json', async (ctx) => (await document()).send(ctx)],
    [
      '/docs',
      async (ctx) => {
        ctx.set('Content-Security-Policy', policy)
        ctx.set('Referrer-Policy', 'no-referrer')
        const html = await page()
        html.send(ctx)
      },
    ],
    guide('/docs/webhooks', receiverGuide),
    guide('/docs/findings', findingsGuide),
    ...MARKDOWN_PAGES.map((page) => guide(page.path, () => markdownGuide(page))),
  ])

  /** Only under the current hash: a client must not cache this script under the hash of another version. */
  async function answerScript(ctx: Koa.Context): Promise<void> {
    const current = await script()
    if (ctx.path !== scriptPath(current)) throw new AppError('not_found', 'the path does not exist')
    current.send(ctx)
  }

  return (path) => pages.get(path) ?? (SCRIPT.test(path) ? answerScript : undefined)
}

const markdownGuide = async (page: MarkdownPage) =>
  guidePage({ path: page.path, ...renderPage(page, await readPage(page)) })

const scriptPath = ({ hash }: StaticAnswer) => `/docs/scalar-${hash}.js`

/** Memoises the result of `make`; a failure is not kept. */
function once<T>(make: () => Promise<T>): () => Promise<T> {
  let result: Promise<T> | undefined
  return () => {
    result ??= make().catch((error) => {
      result = undefined
      throw error
    })
    return result
  }
}
