import { posix } from 'node:path'
import { Marked, type Tokens } from 'marked'
import { escaped } from '../../../workflows/shared/escape-html.ts'
import { MARKDOWN_PAGES, type MarkdownPage, NAVIGATION } from './pages.ts'

export interface Heading {
  id: string
  /** HTML. */
  html: string
}

/** A page as HTML: what is below its first heading, which is its title, and its headings of the second level. */
export interface Rendered {
  title: string
  body: string
  sections: Heading[]
}

/**
 * Renders a page of docs/. Raw HTML is shown as text, comments and images are left out, and links to other pages lead to
 * where these are served. The headings have the anchors that GitHub gives them.
 */
export function renderPage(page: MarkdownPage, markdown: string): Rendered {
  const anchors = new Map<string, number>()
  const sections: Heading[] = []
  let title = page.title
  const marked = new Marked({ gfm: true, async: false })
  marked.use({
    renderer: {
      heading({ tokens, depth, text }: Tokens.Heading) {
        const html = this.parser.parseInline(tokens)
        if (depth === 1) {
          title = text
          return ''
        }
        const id = anchorOf(text, anchors)
        if (depth === 2) sections.push({ id, html })
        return `<h${depth} id="${id}"><a class="anchor" href="#${id}">${html}</a></h${depth}>\n`
      },
      html: ({ text }: Tokens.HTML | Tokens.Tag) => (/^<!--/.test(text) ? '' : escaped(text)),
      image: ({ text }: Tokens.Image) => escaped(text),
      link({ href, tokens }: Tokens.Link) {
        const target = targetOf(page, href)
        const html = this.parser.parseInline(tokens)
        return target === undefined ? html : `<a href="${escaped(target)}">${html}</a>`
      },
      codespan({ text }: Tokens.Codespan) {
        const code = `<code>${escaped(text)}</code>`
        return SERVED.has(text) ? `<a href="${text}">${code}</a>` : code
      },
      // A wide table scrolls by itself, so that the page stays readable on a phone.
      table(token: Tokens.Table) {
        const cell = (tag: string, { tokens }: Tokens.TableCell) =>
          `<${tag}>${this.parser.parseInline(tokens)}</${tag}>`
        const head = token.header.map((one) => cell('th', one)).join('')
        const rows = token.rows.map((row) => `<tr>${row.map((one) => cell('td', one)).join('')}</tr>`)
        return `<div class="table"><table>\n<thead><tr>${head}</tr></thead>\n<tbody>\n${rows.join('\n')}\n</tbody></table></div>\n`
      },
    },
  })
  const body = marked.parse(markdown) as string
  return { title, body, sections }
}

/** Paths that a code span links to: in a Markdown file, a link to them would be dead. */
const SERVED = new Set(['/openapi.json', ...NAVIGATION.flatMap(({ pages }) => pages.map(({ path }) => path))])

/** Where a link of a page leads; undefined if that is not served. */
function targetOf({ file }: MarkdownPage, href: string): string | undefined {
  if (/^(https?:|#)/.test(href)) return href
  const [path = '', anchor] = href.split('#')
  const linked = posix.join(posix.dirname(file), path)
  const page = MARKDOWN_PAGES.find((one) => one.file === linked)
  return page && page.path + (anchor ? `#${anchor}` : '')
}

/** The anchor of a heading, by GitHub's rule: the second of one name ends with `-1`. */
function anchorOf(text: string, taken: Map<string, number>): string {
  const anchor = text
    .toLowerCase()
    .replaceAll(/[^\p{L}\p{N}\p{M}_ -]/gu, '')
    .replaceAll(' ', '-')
  const count = taken.get(anchor) ?? 0
  taken.set(anchor, count + 1)
  return count === 0 ? anchor : `${anchor}-${count}`
}
