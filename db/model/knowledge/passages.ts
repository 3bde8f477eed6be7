import type { DocumentFormat } from '../../../workflows/shared/knowledge.ts'
import { KNOWLEDGE } from '../../../workflows/shared/limits.ts'
import { type Block, paragraph } from './block.ts'
import { clean } from './clean.ts'
import { blocksOfHtml } from './html.ts'
import { blocksOfMarkdown } from './markdown.ts'

/** A part of a document, the unit of search results. */
export interface Passage {
  /** The headings above it, outermost first; empty if it has none. */
  heading: string
  text: string
}

/**
 * The passages of a document, at least one. A passage consists of whole paragraphs, of one section unless sections are
 * short, and has at most `KNOWLEDGE.passage` characters. Passages do not overlap. Takes linear time.
 */
export function passagesOf(body: string, format: DocumentFormat): Passage[] {
  const passages: Passage[] = []
  const path: string[] = []
  let current = new Draft('')
  const flush = () => {
    if (!current.isEmpty) passages.push(current.passage)
    current = new Draft(headingOf(path))
  }
  for (const { level, text } of blocks[format](clean(body))) {
    if (level > 0) {
      if (current.length >= KNOWLEDGE.section) flush()
      path.length = Math.min(path.length, level - 1)
      path[level - 1] = text
      current.addHeading(text, headingOf(path))
      continue
    }
    for (const piece of piecesOf(text)) {
      if (current.length + piece.length > KNOWLEDGE.passage) {
        const headings = current.takeHeadings()
        flush()
        for (const one of headings) current.addHeading(one, headingOf(path))
      }
      current.add(piece)
    }
  }
  flush()
  return passages.length > 0 ? passages : [{ heading: '', text: '' }]
}

const blocks: Record<DocumentFormat, (text: string) => Block[]> = {
  text: paragraphsOf,
  markdown: blocksOfMarkdown,
  html: blocksOfHtml,
}

/** Paragraphs are separated by empty lines. */
function paragraphsOf(text: string): Block[] {
  const found: Block[] = []
  let lines: string[] = []
  for (const line of [...text.split('\n'), '']) {
    if (line.trim() !== '') lines.push(line)
    else if (lines.length > 0) {
      found.push(paragraph(lines.join('\n').trimEnd()))
      lines = []
    }
  }
  return found
}

/** A passage under construction. */
class Draft {
  heading: string
  length = 0
  private hasParagraph = false
  private parts: { text: string; isHeading: boolean }[] = []

  constructor(heading: string) {
    this.heading = heading
  }

  get isEmpty(): boolean {
    return this.parts.length === 0
  }

  get passage(): Passage {
    return { heading: this.heading, text: this.parts.map(({ text }) => text).join('\n\n') }
  }

  add(text: string): void {
    this.hasParagraph = true
    this.parts.push({ text, isHeading: false })
    this.length += text.length + 2
  }

  /** @param path with the headings above it. The passage gets the path of its first paragraph. */
  addHeading(text: string, path: string): void {
    if (!this.hasParagraph) this.heading = path
    this.parts.push({ text, isHeading: true })
    this.length += text.length + 2
  }

  /** Removes the headings at the end, which belong to the next paragraph. */
  takeHeadings(): string[] {
    const last = this.parts.findLastIndex(({ isHeading }) => !isHeading)
    const taken = this.parts.splice(last + 1).map(({ text }) => text)
    for (const text of taken) this.length -= text.length + 2
    return taken
  }
}

/** The innermost headings that fit into the limit. */
function headingOf(path: readonly (string | undefined)[]): string {
  const named = path.filter((one) => one !== undefined && one !== '')
  while (named.length > 1 && named.join(' > ').length > KNOWLEDGE.heading) named.shift()
  return named.join(' > ').slice(0, KNOWLEDGE.heading)
}

/** Ends of sentences, lines and words. A text is cut at the last end of the first kind that is far enough along. */
const ENDS: [pattern: RegExp, least: number][] = [
  [/\n/g, KNOWLEDGE.passage / 2],
  [/[.!?:;](?=\s)|[。！？]/g, KNOWLEDGE.passage / 2],
  [/\s/g, 1],
]

/** The pieces of a paragraph, each short enough for a passage. */
function* piecesOf(text: string): Generator<string> {
  let from = 0
  while (text.length - from > KNOWLEDGE.passage) {
    const window = text.slice(from, from + KNOWLEDGE.passage)
    const end = from + endIn(window)
    const piece = text.slice(from, end).trim()
    if (piece !== '') yield piece
    from = end
  }
  const rest = text.slice(from)
  if (rest.trim() !== '') yield from > 0 ? rest.trimStart() : rest
}

function endIn(window: string): number {
  for (const [pattern, least] of ENDS) {
    const last = [...window.matchAll(pattern)].at(-1)
    if (last && last.index >= least) return last.index + last[0].length
  }
  // Cuts inside of a word that is too long, but not inside of a surrogate pair.
  return /[\uD800-\uDBFF]$/.test(window) ? window.length - 1 : window.length
}
