import { type Problem, REMOVE, write } from '../language/problems.ts'

/**
 * Corrects common mistakes of people and language models in YAML: ``` around the text, tabs, placeholders and colons
 * without quotes. Each is reported with the text to write, and corrected, so that the rest of the spec is checked in
 * the same validation.
 */
export interface Mended {
  text: string
  /** The problems, each with its offset in the author's text. */
  problems: (Pick<Problem, 'code' | 'message' | 'hint'> & { offset: number })[]
  /** The offset in the author's text of an offset in the mended one. */
  original(offset: number): number
}

/** @returns undefined if there is nothing to mend. */
export function mendYaml(text: string): Mended | undefined {
  const edits = [...fenceEdits(text), ...lineEdits(text)].sort((a, b) => a.at - b.at)
  if (edits.length === 0) return undefined
  let mended = ''
  let from = 0
  /** The start of each edit in both texts, and of what follows it. */
  const steps: { mended: number; original: number }[] = [{ mended: 0, original: 0 }]
  for (const { at, removed, put } of edits) {
    if (at < from) continue
    mended += text.slice(from, at)
    steps.push({ mended: mended.length, original: at })
    mended += put
    from = at + removed
    steps.push({ mended: mended.length, original: from })
  }
  mended += text.slice(from)
  return {
    text: mended,
    problems: edits.flatMap(({ problem, at }) => (problem ? [{ offset: at, ...problem }] : [])),
    original(offset) {
      const index = lastAtMost(steps, offset, ({ mended }) => mended)
      const [step, next] = [steps[index]!, steps[index + 1]]
      return Math.min(step.original + offset - step.mended, next?.original ?? Number.POSITIVE_INFINITY)
    },
  }
}

/** The last item whose value is at most `limit`, by bisection; the first if there is none. */
export function lastAtMost<T>(items: readonly T[], limit: number, keyOf: (item: T) => number): number {
  let [from, to] = [0, items.length]
  while (to - from > 1) {
    const middle = (from + to) >> 1
    if (keyOf(items[middle]!) <= limit) from = middle
    else to = middle
  }
  return from
}

interface Edit {
  at: number
  removed: number
  put: string
  problem?: Mended['problems'][number] extends infer P ? Omit<P & object, 'offset'> : never
}

/** ``` at the start of a line is never part of a spec: texts within it are indented. */
function fenceEdits(text: string): Edit[] {
  const [open, close] = [...text.matchAll(/^```.*$/gm)]
  if (!open) return []
  const problem = (hint: string) => ({
    code: 'code_fence' as const,
    message: 'a spec is plain YAML, without ``` around it',
    hint,
  })
  const start = open.index + open[0].length
  const before = text.slice(0, open.index).trim()
  const edits: Edit[] =
    before === '' || close
      ? [{ at: 0, removed: start, put: '\n'.repeat(linesIn(text.slice(0, start))), problem: problem(REMOVE) }]
      : [{ at: open.index, removed: text.length - open.index, put: '', problem: problem(REMOVE) }]
  if (close && (before === '' || close))
    edits.push({ at: close.index, removed: text.length - close.index, put: '', problem: problem(REMOVE) })
  return edits
}

const linesIn = (text: string) => text.split('\n').length - 1

/** A key of a block mapping, or the dash of a list, and the white space after it. */
const BLOCK = /^(\s*(?:- +)*)((?:"[^"]*"|'[^']*'|[^\s"'#&*!|>%@`[\]{},?:-][^:#[\]{}]*):[ ]+)?/

function lineEdits(text: string): Edit[] {
  const edits: Edit[] = []
  let offset = 0
  /** The indent of the key whose block scalar the following, deeper lines are. */
  let scalar: number | undefined
  let depth = 0
  for (const line of text.split('\n')) {
    const start = offset
    offset += line.length + 1
    const indent = line.length - line.trimStart().length
    if (line.trim() === '') continue
    if (scalar !== undefined && indent > scalar) continue
    scalar = undefined
    const tabs = /^ *\t[ \t]*/.exec(line)
    if (tabs)
      edits.push({
        at: start,
        removed: tabs[0].length,
        put: tabs[0].replaceAll('\t', '  '),
        problem: {
          code: 'tab_indent',
          message: 'YAML is indented with spaces, not with tabs',
          hint: write(tabs[0].replaceAll('\t', '  ')),
        },
      })
    if (/^\s*#/.test(line)) continue
    if (/(^|[:-]\s+)[|>][+-]?\d?[+-]?\s*(#.*)?$/.test(line)) {
      scalar = indent
      continue
    }
    const [prefix = ''] = depth === 0 ? (BLOCK.exec(line) ?? []) : []
    const value = withoutComment(line.slice(prefix.length))
    const inBlock = depth === 0 && prefix.trim() !== ''
    const edit = inBlock ? blockEdit(value, start + prefix.length) : undefined
    if (edit) edits.push(edit)
    else {
      const found = flowEdits(line, start, depth)
      edits.push(...found.edits)
      depth = found.depth
    }
  }
  return edits
}

/** Without a pattern: `\s+$` takes quadratic time. */
function withoutComment(text: string): string {
  const comment = text.search(/\s#/)
  return (comment < 0 ? text : text.slice(0, comment)).trimEnd()
}

/** A value of a block mapping or list that needs quotes. */
function blockEdit(value: string, at: number): Edit | undefined {
  if (value.startsWith('{{')) return quoted(value, at, 'unquoted_placeholder')
  // A quoted value, a flow collection, a block scalar, or a tag.
  if (value === '' || /^["'[{|>!&*#]/.test(value)) return undefined
  if (/^[@`%]|:\s|:$/.test(value)) return quoted(value, at, 'unquoted_text')
  return undefined
}

/** Placeholders without quotes within brackets, and the brackets that are open at the end of the line. */
function flowEdits(line: string, start: number, open: number): { edits: Edit[]; depth: number } {
  const edits: Edit[] = []
  let depth = open
  let quote: string | undefined
  /** The last character that is not white space. */
  let before: string | undefined
  for (let index = 0; index < line.length; index++) {
    const character = line[index]!
    if (quote !== undefined) {
      if (character === '\\' && quote === '"') index += 1
      else if (character === quote) quote = undefined
      continue
    }
    const begins = before === undefined || ':,[{-'.includes(before)
    if (character.trim() !== '') before = character
    if ((character === '"' || character === "'") && begins) quote = character
    else if (character === '#' && /\s/.test(line[index - 1] ?? ' ')) break
    else if (line.startsWith('{{', index) && begins && depth > 0) {
      const value = /^\{\{.*?\}\}[^,\]}]*/.exec(line.slice(index))?.[0].trimEnd()
      if (value === undefined) break
      edits.push(quoted(value, start + index, 'unquoted_placeholder'))
      index += value.length - 1
      before = '}'
    } else if (character === '{' || character === '[') depth += 1
    else if (character === '}' || character === ']') depth = Math.max(0, depth - 1)
  }
  return { edits, depth }
}

function quoted(value: string, at: number, code: 'unquoted_placeholder' | 'unquoted_text'): Edit {
  const put = value.includes('"') && !value.includes("'") ? `'${value}'` : JSON.stringify(value)
  const message =
    code === 'unquoted_placeholder'
      ? 'a value that begins with a placeholder needs quotes: without them, { begins a mapping'
      : 'this text needs quotes: without them, YAML reads more than a text in it'
  return { at, removed: value.length, put, problem: { code, message, hint: write(put) } }
}
