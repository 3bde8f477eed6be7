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

/** The bundle leaves `--scalar-custom-header-height` free above its own parts. */
const STYLE = `:root{--scalar-custom-header-height:44px}
.pages{position:sticky;top:0;z-index:10;height:44px;padding:0 1rem;display:flex;gap:1.2rem;align-items:center;overflow-x:auto;white-space:nowrap;font:14px system-ui;background:Canvas;color-scheme:light dark}
.pages a{color:CanvasText}`

const LINKS = NAVIGATION.flatMap(({ pages }) => pages)
  .map(({ path, title }) => `<a href="${path}"${path === '/docs' ? ' aria-current="page"' : ''}>${title}</a>`)
  .join('')

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
<nav class="pages" aria-label="Documentation">${LINKS}</nav>
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
