import { Tokenizer } from 'htmlparser2'
import { type Block, heading, paragraph } from './block.ts'
import { clean, trimLines } from './clean.ts'

/** Elements whose content is not shown as text. `title` is among them: a document has its own title. */
const HIDDEN = new Set([
  'script',
  'style',
  'template',
  'noscript',
  'title',
  'svg',
  'math',
  'canvas',
  'iframe',
  'object',
  'audio',
  'video',
  'select',
  'datalist',
])

const HEADING = /^h[1-6]$/

/** Elements before and after which a paragraph ends. */
const BLOCKS = new Set([
  'address',
  'article',
  'aside',
  'blockquote',
  'body',
  'caption',
  'dd',
  'details',
  'dialog',
  'div',
  'dl',
  'dt',
  'fieldset',
  'figcaption',
  'figure',
  'footer',
  'form',
  'h1',
  'h2',
  'h3',
  'h4',
  'h5',
  'h6',
  'head',
  'header',
  'hr',
  'html',
  'legend',
  'li',
  'main',
  'menu',
  'nav',
  'ol',
  'option',
  'p',
  'pre',
  'section',
  'summary',
  'table',
  'tbody',
  'tfoot',
  'thead',
  'tr',
  'ul',
])

/**
 * The text of an HTML document or fragment, without scripts, styles and markup. It reads only tokens: a parser's stack
 * of open elements takes quadratic time, half a minute for 200,000 elements.
 */
export function blocksOfHtml(html: string): Block[] {
  const blocks: Block[] = []
  // A list, because reading the end of a growing string would copy it each time.
  let parts: string[] = []
  let endsInSpace = true
  let level = 0
  let hidden = 0
  let preformatted = 0

  const flush = () => {
    if (parts.length === 0) return
    const lines = clean(parts.join('')).split('\n')
    const found = lines.map((line) => (preformatted > 0 ? line.trimEnd() : line.trim())).join('\n')
    if (found.trim() !== '')
      blocks.push(level > 0 ? heading(level, found.trim()) : paragraph(trimLines(found)))
    parts = []
    endsInSpace = true
  }
  const add = (data: string) => {
    if (hidden > 0) return
    const shown = preformatted > 0 ? data : data.replace(/\s+/g, ' ')
    const part = preformatted === 0 && endsInSpace ? shown.trimStart() : shown
    if (part === '') return
    parts.push(part)
    endsInSpace = /\s/.test(part.at(-1)!)
  }
  const separate = (mark: string) => {
    parts.push(mark)
    endsInSpace = true
  }
  const open = (name: string) => {
    if (HIDDEN.has(name)) hidden++
    if (hidden > 0) return
    if (BLOCKS.has(name)) flush()
    if (HEADING.test(name)) level = Number(name[1])
    if (name === 'pre') preformatted++
    if (name === 'li') separate('- ')
    if (name === 'br') separate('\n')
    if ((name === 'td' || name === 'th') && parts.length > 0) separate(' | ')
  }
  const close = (name: string) => {
    if (HIDDEN.has(name)) hidden = Math.max(0, hidden - 1)
    if (hidden > 0) return
    if (BLOCKS.has(name)) flush()
    if (HEADING.test(name)) level = 0
    if (name === 'pre') preformatted = Math.max(0, preformatted - 1)
  }
  const nameAt = (start: number, end: number) => html.slice(start, end).toLowerCase()
  const ignored = () => {}
  const tokenizer = new Tokenizer(
    {},
    {
      ontext: (start, end) => add(html.slice(start, end)),
      ontextentity: (codepoint) => add(String.fromCodePoint(codepoint)),
      oncdata: ignored,
      onopentagname: (start, end) => open(nameAt(start, end)),
      onclosetag: (start, end) => close(nameAt(start, end)),
      onopentagend: ignored,
      onselfclosingtag: ignored,
      oncomment: ignored,
      ondeclaration: ignored,
      onprocessinginstruction: ignored,
      onend: ignored,
      onattribdata: ignored,
      onattribend: ignored,
      onattribentity: ignored,
      onattribname: ignored,
    },
  )
  tokenizer.write(html)
  tokenizer.end()
  flush()
  return blocks.filter(({ text }) => text !== '-')
}
