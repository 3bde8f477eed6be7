import { createHash } from 'node:crypto'
import { escaped } from '../../workflows/shared/escape-html.ts'
import { NAVIGATION } from './docs-pages/pages.ts'
import type { Heading } from './docs-pages/render.ts'

/** The pages of /docs other than the API reference: static, without scripts and images. */

const STYLE = `
:root { color-scheme: light dark; --text: #1f2328; --back: #fff; --soft: #f5f6f8; --line: #d8dce2; --link: #0550ae }
@media (prefers-color-scheme: dark) {
  :root { --text: #d7dce3; --back: #15181d; --soft: #1e2229; --line: #343a44; --link: #8ab8ff }
}
* { box-sizing: border-box }
html { scroll-padding-top: 1rem; -webkit-text-size-adjust: 100% }
body { font: 16px/1.6 system-ui, sans-serif; margin: 0; color: var(--text); background: var(--back) }
a { color: var(--link); text-decoration: none } a:hover { text-decoration: underline }
main { padding: 1.5rem 1rem 4rem; min-width: 0; max-width: 52rem; overflow-wrap: break-word }
nav { padding: 1.5rem 1rem; background: var(--soft); font-size: .94rem; line-height: 1.45 }
nav h2 { font-size: .8rem; margin: 1.25rem 0 .3rem; opacity: .7; font-weight: 600 } nav h2:first-of-type { margin-top: 0 }
nav ul { list-style: none; margin: 0; padding: 0 } nav li { margin: .3rem 0 } nav ul ul { padding-left: .9rem; font-size: .9rem }
nav [aria-current] { font-weight: 600; color: inherit }
h1 { font-size: 1.8rem; line-height: 1.25; margin: .5rem 0 1rem } h2 { font-size: 1.3rem; margin: 2.5rem 0 .75rem }
h3 { font-size: 1.05rem; margin: 2rem 0 .5rem } h2, h3 { line-height: 1.3 } .anchor { color: inherit }
code { font: .875em/1.5 ui-monospace, monospace; background: var(--soft); padding: .1em .3em; border-radius: 4px }
pre { background: var(--soft); padding: .9rem 1rem; overflow: auto; border-radius: 6px; line-height: 1.45 }
pre code { padding: 0; background: none }
.table { overflow-x: auto; margin: 1rem 0 } table { border-collapse: collapse; font-size: .92rem; line-height: 1.5 }
th, td { border-bottom: 1px solid var(--line); padding: .45rem .9rem .45rem 0; text-align: left; vertical-align: top }
td { overflow-wrap: normal } td:last-child { min-width: 14rem } td code { white-space: nowrap } td:last-child code { white-space: normal }
@media (min-width: 64rem) {
  .page { display: grid; grid-template-columns: 17rem minmax(0, 1fr); min-height: 100vh }
  nav { grid-area: 1 / 1; padding: 1.75rem 1.5rem } nav > div { position: sticky; top: 1.75rem; max-height: calc(100vh - 3.5rem); overflow-y: auto }
  main { grid-area: 1 / 2; padding: 1.5rem 3rem 6rem } .to-contents { display: none }
}`

export interface GuidePage {
  path: string
  /** Also the heading. */
  title: string
  /** HTML. */
  body: string
  /** Listed in the navigation below the page. */
  sections?: readonly Heading[]
}

/** The navigation comes after the text, for phones; wide screens have it at the left. */
export const guidePage = ({ path, title, body, sections = [] }: GuidePage) => `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>${escaped(title)} - agx</title>
<link rel="icon" href="data:,">
<style>${STYLE}</style>
</head>
<body>
<div class="page">
<main>
<p class="to-contents"><a href="#contents">Contents</a></p>
<h1>${escaped(title)}</h1>
${body}
</main>
<nav id="contents" aria-label="Documentation"><div>
${NAVIGATION.map((group) => `<h2>${group.title}</h2>\n<ul>\n${group.pages.map((page) => item(page, path, sections)).join('\n')}\n</ul>`).join('\n')}
</div></nav>
</div>
</body>
</html>
`

function item(page: { path: string; title: string }, path: string, sections: readonly Heading[]): string {
  const link = (current: string) => `<a href="${page.path}"${current}>${page.title}</a>`
  if (page.path !== path) return `<li>${link('')}</li>`
  const below = sections.map(({ id, html }) => `<li><a href="#${id}">${html}</a></li>`).join('\n')
  return `<li>${link(' aria-current="page"')}${below ? `\n<ul>\n${below}\n</ul>` : ''}</li>`
}

export const GUIDE_POLICY = [
  "default-src 'none'",
  `style-src 'sha256-${createHash('sha256').update(STYLE).digest('base64')}'`,
  'img-src data:',
  "base-uri 'none'",
  "form-action 'none'",
  "frame-ancestors 'none'",
].join('; ')
