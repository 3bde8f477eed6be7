import { type Block, heading, paragraph } from './block.ts'

const FENCE = /^ {0,3}(`{3,}|~{3,})/
const HEADING = /^ {0,3}(#{1,6})(?:[ \t]|$)/
const UNDERLINE = /^ {0,3}(=+|-+)[ \t]*$/

/** The headings and paragraphs of Markdown, unrendered. A fenced block is one paragraph. */
export function blocksOfMarkdown(markdown: string): Block[] {
  const blocks: Block[] = []
  let lines: string[] = []
  let fence: string | undefined
  const flush = () => {
    const text = lines.join('\n').trimEnd()
    if (text.trim() !== '') blocks.push(paragraph(text))
    lines = []
  }
  for (const line of markdown.split('\n')) {
    const mark = FENCE.exec(line)?.[1]
    if (fence !== undefined) {
      lines.push(line)
      if (mark?.startsWith(fence)) {
        fence = undefined
        flush()
      }
      continue
    }
    if (mark !== undefined) {
      flush()
      fence = mark
      lines.push(line)
      continue
    }
    const level = HEADING.exec(line)?.[1]?.length
    if (level !== undefined) {
      flush()
      blocks.push(heading(level, plain(line.trim().slice(level))))
      continue
    }
    const underline = lines.length === 1 ? UNDERLINE.exec(line)?.[1] : undefined
    if (underline !== undefined) {
      blocks.push(heading(underline.startsWith('=') ? 1 : 2, plain(lines[0]!)))
      lines = []
    } else if (line.trim() === '') flush()
    else lines.push(line)
  }
  flush()
  return blocks.filter(({ text }) => text !== '')
}

/** A heading without its closing `#`, links and emphasis. */
const plain = (text: string): string =>
  text
    .slice(0, 500)
    .trim()
    .replace(/\s#+$/, '')
    .replace(/\[([^\]]*)\]\([^)]*\)/g, '$1')
    .replace(/[*_`]{1,3}(\S(?:[^*_`]*\S)?)[*_`]{1,3}/g, '$1')
    .trim()
