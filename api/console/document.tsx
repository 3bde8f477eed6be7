import { render } from 'preact-render-to-string'
import type { AssetPaths } from './assets.ts'
import { Navigation } from './components/navigation.tsx'
import { Notice } from './components/notice.tsx'
import { PageProvider } from './context.ts'
import type { Page, View } from './route.ts'

/** The whole HTML of a page. */
export function document(view: View, page: Page, assets: AssetPaths): string {
  const isBare = page.isBare || !view.session
  const html = (
    <PageProvider value={{ view, assets }}>
      <html lang="en" data-theme={view.theme}>
        <head>
          <meta charset="utf-8" />
          <meta name="viewport" content="width=device-width, initial-scale=1" />
          {page.reloads && <meta http-equiv="refresh" content="0" />}
          <title>{`${page.title} · agx`}</title>
          <link rel="icon" href={`${assets.icons}#workflow`} type="image/svg+xml" />
          <link rel="stylesheet" href={assets.style} />
          <script type="module" src={assets.script} />
        </head>
        <body class={isBare ? 'bare' : 'app'}>
          <a class="skip" href="#main">
            Skip to the content
          </a>
          {!isBare && <Navigation />}
          <main id="main" tabIndex={-1}>
            <Notice />
            {page.content}
          </main>
        </body>
      </html>
    </PageProvider>
  )
  return `<!doctype html>\n${render(html)}`
}
