import {
  Document,
  isCollection,
  isMap,
  isPair,
  isScalar,
  isSeq,
  type Pair,
  type ParsedNode,
  parseDocument,
  stringify,
  type YAMLMap,
} from 'yaml'
import { isObject } from '../../shared/is-object.ts'

/**
 * Changes a YAML text so that it has another value, and leaves the text of what is equal as it was, with its comments
 * and blank lines. A comment belongs to the key below it; one that is indented deeper, to the value above it. The caller
 * parses the result and compares it, so a form that is not handled here costs comments, never meaning.
 */
export function patchYaml(text: string, value: unknown): string {
  const whole = text.endsWith('\n') ? text : `${text}\n`
  const document = parseDocument(whole, { uniqueKeys: false, logLevel: 'error' })
  const root = document.contents
  if (document.errors.length > 0 || !root) return writeYaml(value)
  const edits = new Patch(whole).edits(root, value)
  return edits ? spliced(whole, edits, 0, whole.length) : writeYaml(value)
}

const FORMAT = { lineWidth: 0, aliasDuplicateObjects: false } as const

/** A value as a YAML text in block style. */
export const writeYaml = (value: unknown): string => stringify(value, FORMAT)

/** Replaces the characters from `start` up to `end`. */
interface Edit {
  start: number
  end: number
  text: string
}

type Entry = Pair<ParsedNode, ParsedNode | null>

/** A key of a block mapping with the comments above it; `start` and `end` are starts of lines. */
interface Segment {
  name: string
  entry: Entry
  start: number
  /** The start of the line of the key. */
  keyLine: number
  end: number
}

class Patch {
  private readonly text: string
  private readonly padded: boolean

  constructor(text: string) {
    this.text = text
    this.padded = /\{ /.test(text)
  }

  /** The edits that give the node this value; undefined if its parent has to be written again. */
  edits(node: ParsedNode | null, value: unknown): Edit[] | undefined {
    if (node && same(plain(node), value)) return []
    if (isMap(node) && isObject(value))
      return node.flow ? this.inFlowMap(node, value) : this.inBlockMap(node, value)
    if (isSeq(node) && Array.isArray(value) && node.items.length === value.length) {
      const edits = node.items.map((item, i) => this.edits(item as ParsedNode, value[i]))
      if (edits.every((one) => one !== undefined)) return edits.flat()
    }
    return this.replaced(node, value)
  }

  /** A value within a line: a scalar by a scalar, a flow collection by one. */
  private replaced(node: ParsedNode | null, value: unknown): Edit[] | undefined {
    if (!node) return undefined
    const isInline = isCollection(node) ? node.flow : isScalar(node) && !/^BLOCK/.test(node.type ?? '')
    if (!isInline || node.tag?.startsWith('!')) return undefined
    if (isObject(value) !== isMap(node) || Array.isArray(value) !== isSeq(node)) return undefined
    if (typeof value === 'string' && value.includes('\n')) return undefined
    const [start, end] = node.range
    return start === end ? undefined : [{ start, end, text: this.inline(value) }]
  }

  private inline(value: unknown): string {
    // Within a flow collection, so that a text with a comma or a bracket is quoted.
    const document = new Document([value])
    const { contents } = document
    if (isSeq(contents)) contents.flow = true
    const written = document.toString({ ...FORMAT, flowCollectionPadding: this.padded }).trim()
    return written.slice(1, -1).trim()
  }

  private inFlowMap(node: YAMLMap, value: Record<string, unknown>): Edit[] | undefined {
    const entries = node.items as Entry[]
    const names = entries.map(nameOf)
    if (!same(names, Object.keys(value))) return this.replaced(node as ParsedNode, value)
    const edits = entries.map((entry, i) => this.edits(entry.value, value[names[i]!]))
    return edits.every((one) => one !== undefined) ? edits.flat() : this.replaced(node as ParsedNode, value)
  }

  private inBlockMap(node: YAMLMap, value: Record<string, unknown>): Edit[] | undefined {
    const segments = this.segments(node)
    const [first] = segments ?? []
    if (!segments || !first) return undefined
    const column = first.entry.key.range[0] - first.keyLine
    const byName = new Map(segments.map((segment) => [segment.name, segment]))
    if (byName.size !== segments.length) return undefined
    const written = Object.entries(value).map(([name, wanted]) => {
      const segment = byName.get(name)
      return { segment, ...this.member(segment, name, wanted, column) }
    })
    const kept = written.flatMap(({ segment }) => (segment ? [segment.name] : []))
    if (written.length === segments.length && same(kept, [...byName.keys()]))
      return written.flatMap(({ edits }) => edits)
    const text = written
      .map(({ segment, edits, added }) =>
        segment ? spliced(this.text, edits, segment.start, segment.end) : added,
      )
      .join('')
    return [{ start: first.start, end: segments.at(-1)!.end, text }]
  }

  /** A member of a block mapping: edits within its segment, or the lines of a new one. */
  private member(
    segment: Segment | undefined,
    name: string,
    value: unknown,
    column: number,
  ): { edits: Edit[]; added: string } {
    if (!segment) return { edits: [], added: lines(name, value, column) }
    const edits = this.edits(segment.entry.value, value)
    if (edits) return { edits, added: '' }
    return {
      edits: [{ start: segment.keyLine, end: segment.end, text: lines(name, value, column) }],
      added: '',
    }
  }

  /** Undefined if a key does not begin its line. */
  private segments(node: YAMLMap): Segment[] | undefined {
    const entries = node.items as Entry[]
    const found: Segment[] = []
    for (const entry of entries) {
      const { key, value } = entry
      if (!isScalar(key)) return undefined
      const keyLine = this.text.lastIndexOf('\n', key.range[0] - 1) + 1
      if (this.text.slice(keyLine, key.range[0]).trim() !== '') return undefined
      const end = this.withOwnComments(this.lineEnd(endOf(value) ?? key.range[1]), key.range[0] - keyLine)
      const start = found.at(-1)?.end ?? this.commentsAbove(keyLine, key.range[0] - keyLine)
      found.push({ name: nameOf(entry), entry, start, keyLine, end })
    }
    return found
  }

  /** The start of the comments directly above the first key; those at the head of the document are no key's. */
  private commentsAbove(keyLine: number, column: number): number {
    let start = keyLine
    while (column > 0 && start > 0) {
      const line = this.text.lastIndexOf('\n', start - 2) + 1
      if (!/^ +#/.test(this.text.slice(line, start))) break
      start = line
    }
    return start
  }

  private lineEnd(offset: number): number {
    if (offset > 0 && this.text[offset - 1] === '\n') return offset
    const newline = this.text.indexOf('\n', offset)
    return newline < 0 ? this.text.length : newline + 1
  }

  /** Past the comments that are indented deeper than the key. */
  private withOwnComments(offset: number, column: number): number {
    let end = offset
    for (let at = offset; at < this.text.length; at = this.lineEnd(at + 1)) {
      const line = this.text.slice(at, this.lineEnd(at + 1))
      const indent = line.length - line.trimStart().length
      if (line.trim() === '') continue
      if (!line.trimStart().startsWith('#') || indent <= column) break
      end = at + line.length
    }
    return end
  }
}

/** The end of the last scalar or flow collection in a value, without the comments that follow it. */
function endOf(node: ParsedNode | null): number | undefined {
  if (!node) return undefined
  if (!isCollection(node) || node.flow) return node.range[1]
  const last = node.items.at(-1)
  if (isPair(last)) return endOf((last as Entry).value) ?? (last as Entry).key.range[1]
  return endOf((last as ParsedNode | undefined) ?? null) ?? node.range[1]
}

const nameOf = ({ key }: Entry): string => String(isScalar(key) ? (key.value ?? '') : '')

function lines(name: string, value: unknown, column: number): string {
  const indent = ' '.repeat(column)
  return stringify({ [name]: value }, FORMAT).replaceAll(/^(?=[^\n])/gm, indent)
}

function spliced(text: string, edits: Edit[], from: number, to: number): string {
  const parts: string[] = []
  let at = from
  for (const edit of edits.toSorted((a, b) => a.start - b.start)) {
    parts.push(text.slice(at, edit.start), edit.text)
    at = edit.end
  }
  return parts.join('') + text.slice(at, to)
}

/** The value of a node as `parseYaml` reads it. */
function plain(node: unknown): unknown {
  if (isScalar(node)) return node.value ?? null
  if (isSeq(node)) return node.items.map(plain)
  if (isMap(node))
    return Object.fromEntries((node.items as Entry[]).map((entry) => [nameOf(entry), plain(entry.value)]))
  return null
}

/** In the same order too: the cases of a switch are tried in their order. */
const same = (a: unknown, b: unknown): boolean => JSON.stringify(a) === JSON.stringify(b)
