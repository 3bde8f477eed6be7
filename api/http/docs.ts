import { readFile } from 'node:fs/promises'
import { createRequire } from 'node:module'
import { dirname, join } from 'node:path'
import { escaped } from '../../workflows/shared/escape-html.ts'
import { NAVIGATION } from './docs-pages/pages.ts'

/**
 * The bundle of the reference page: Scalar's API reference, which reads /openapi.json. It comes from Scalar's package
 * for Fastify because that installs 9 packages instead of the 299 of `@scalar/api-reference`.
 */
export function readBundle(): Promise<Buffer> {
  const main = createRequire(import.meta.url).resolve('@scalar/fastify-api-reference')
  return readFile(join(dirname(main), 'js/standalone.js'))
}

/** Disables the features that contact the vendor: fonts, telemetry, AI, the hosted client. */
const CONFIGURATION = {
  telemetry: false,
  withDefaultFonts: false,
  hideClientButton: true,
  showDeveloperTools: 'never',
  agent: { disabled: true },
  mcp: { disabled: true },
  persistAuth: false,
  authentication: { preferredSecurityScheme: 'apiKey' },
  defaultHttpClient: { targetKey: 'shell', clientKey: 'curl' },
  defaultOpenAllTags: false,
}

/**
 * A menu for each group of pages: a row of all links is wider than a laptop's screen. The bundle leaves
 * `--scalar-custom-header-height` free above its own parts.
 */
const STYLE = `:root{--scalar-custom-header-height:44px}
.pages{position:sticky;top:0;z-index:10;height:44px;padding:0 .5rem;display:flex;align-items:center;white-space:nowrap;font:14px system-ui;background:Canvas;color:CanvasText;color-scheme:light dark}
.pages details{position:relative}
.pages summary{padding:.5rem;cursor:pointer}
.pages ul{position:absolute;top:100%;left:0;margin:0;padding:.4rem 0;list-style:none;background:Canvas;border:1px solid GrayText;border-radius:6px}
.pages details:nth-of-type(n+3) ul{left:auto;right:0}
.pages a{display:block;padding:.35rem 1rem;color:CanvasText}`

const menu = ({ title, pages }: (typeof NAVIGATION)[number]) =>
  `<details name="pages"><summary>${title}</summary><ul>${pages.map(link).join('')}</ul></details>`

const link = ({ path, title }: { path: string; title: string }) =>
  `<li><a href="${path}"${path === '/docs' ? ' aria-current="page"' : ''}>${title}</a></li>`

/** The page; `bundle` is the path of the script. */
export const docsPage = (title: string, bundle: string) => `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>${title}</title>
<link rel="icon" href="data:,">
<style>${STYLE}</style>
</head>
<body>
<nav class="pages" aria-label="Documentation">${NAVIGATION.map(menu).join('')}</nav>
<noscript>This page needs JavaScript. The OpenAPI document is at <a href="/openapi.json">/openapi.json</a>.</noscript>
<script id="api-reference" data-url="/openapi.json" data-configuration="${escaped(JSON.stringify(CONFIGURATION))}"></script>
<script src="${bundle}"></script>
</body>
</html>
`

/**
 * The Content-Security-Policy: scripts and requests of this origin only, and requests to `api`. Inline styles are
 * allowed because the bundle inserts its styles into the page; inline scripts are not.
 */
export const docsPolicy = (api: string | undefined) =>
  [
    "default-src 'none'",
    "script-src 'self'",
    "style-src 'unsafe-inline'",
    'img-src data:',
    'font-src data:',
    `connect-src 'self'${api ? ` ${new URL(api).origin}` : ''}`,
    "base-uri 'none'",
    "form-action 'none'",
    "frame-ancestors 'none'",
  ].join('; ')
