import {
  type Document,
  isAlias,
  isMap,
  isPair,
  isScalar,
  isSeq,
  type Pair,
  type ParsedNode,
  parseDocument,
} from 'yaml'
import { type Problem, pointer, write } from '../language/problems.ts'
import { flowText } from '../language/repair.ts'
import { SPEC } from '../shared/limits.ts'
import { isStorable } from '../shared/storable-text.ts'
import { lastAtMost, mendYaml } from './mend-yaml.ts'

/** Lines and commas of a text; a text with more takes too long to parse. */
const MAX_SEPARATORS = 16_000
/** `yaml` takes quadratic time for the tags or anchors of one node: a minute for 87,000. */
const MAX_PROPERTIES = 1_000
const TOO_DEEP = `a spec may be nested at most ${SPEC.depth} levels deep`
const NO_ALIASES = 'aliases are not supported: repeat the value'

export interface Position {
  line: number
  column: number
}

/** A text as plain JSON values, with their positions. */
export interface ParsedYaml {
  value: unknown
  problems: (Problem & Partial<Position>)[]
  /** The position of the value at a JSON Pointer, or of its key; of the nearest parent if there is none. From 1. */
  locate(path: string, atKey?: boolean): Position
}

/** The tags of YAML's core schema, whose values exist in JSON. */
const JSON_TAG = /^tag:yaml\.org,2002:(str|int|float|bool|null|map|seq)$/

/** Parses one YAML document of JSON values, without aliases. Never throws; with problems, `value` may be incomplete. */
export function parseYaml(text: string): ParsedYaml {
  const limit = beyondLimits(text)
  if (limit) return beyond(limit)
  const first = parsed(text)
  const mended = first.broken ? mendYaml(text) : undefined
  if (!mended) return first
  const second = parsed(mended.text, mended.original, text)
  const found = mended.problems.slice(0, SPEC.findings).map(({ offset, ...problem }) => ({
    ...problem,
    path: '',
    ...second.at(offset),
  }))
  return { ...second, problems: [...found, ...second.problems] }
}

const START: Position = { line: 1, column: 1 }

/** The result for a text above a limit. */
const beyond = (message: string) => ({
  value: undefined,
  problems: [{ code: 'yaml_limit' as const, message, path: '' }],
  broken: false,
  at: () => START,
  locate: () => START,
})

/** @returns undefined if the nesting of the text, which `depthOf` did not find, overflows the stack. */
function documentOf(text: string) {
  const { stackTraceLimit } = Error
  // An invalid text of 256 KiB has 100,000 errors: capturing their stacks took most of the time.
  Error.stackTraceLimit = 0
  try {
    return parseDocument(text, { uniqueKeys: false, logLevel: 'error', prettyErrors: false })
  } catch (error) {
    if (error instanceof RangeError) return undefined
    throw error
  } finally {
    Error.stackTraceLimit = stackTraceLimit
  }
}

/**
 * `original` maps an offset in `text` to one in the author's text, `source`.
 * @returns also the position of an offset in the author's text, and whether the text is not YAML, or not what was
 * meant.
 */
function parsed(
  text: string,
  original = (offset: number) => offset,
  source = text,
): ParsedYaml & { broken: boolean; at(offset: number): Position } {
  const document = documentOf(text)
  if (!document) return beyond(TOO_DEEP)
  const starts = lineStarts(source)
  const at = (offset: number): Position => {
    const line = lastAtMost(starts, offset, (start) => start)
    return { line: line + 1, column: offset - starts[line]! + 1 }
  }
  const position = (offset: number) => at(original(offset))
  const syntax = [...document.errors, ...document.warnings].map((error) => ({
    code: 'yaml_syntax' as const,
    message:
      error.code === 'MULTIPLE_DOCS'
        ? 'a spec holds one workflow: remove --- and the text after it'
        : error.message.split(' at line ')[0]!.split('\n')[0]!,
    path: '',
    ...position(Math.min(error.pos[0], text.length)),
  }))
  const root = syntax.length === 0 ? document.contents : null
  const reading: Reading = { document, path: [], problems: [], entries: 0, position }
  const value = root ? read(root, reading) : undefined
  if (reading.entries > SPEC.values)
    reading.problems = [
      { code: 'yaml_limit', message: `a spec may have at most ${SPEC.values} values`, path: '' },
    ]
  return {
    value,
    problems: [...syntax, ...reading.problems],
    broken: syntax.length > 0 || reading.problems.some(({ code }) => code === 'yaml_syntax'),
    at,
    locate: (path, atKey = false) => (root ? position(offsetAt(root, path, atKey)) : START),
  }
}

/** Searches the document when a finding is reported: recording all places takes a fifth of the time of parsing. */
function offsetAt(root: ParsedNode, path: string, atKey: boolean): number {
  let node: ParsedNode | null = root
  let key: number | undefined
  for (const segment of path.split('/').slice(1)) {
    const inner = memberAt(node, segment.replaceAll('~1', '/').replaceAll('~0', '~'))
    if (!inner) return placeOf(node, key)
    ;({ node, key } = inner)
  }
  return (atKey ? key : undefined) ?? placeOf(node, key)
}

/** The position of a value; that of its key for a block mapping, which starts on the line after the key. */
const placeOf = (node: ParsedNode | null, key: number | undefined): number =>
  (isMap(node) || isSeq(node) ? key : undefined) ?? node?.range[0] ?? key ?? 0

function memberAt(
  node: ParsedNode | null,
  name: string,
): { node: ParsedNode | null; key?: number | undefined } | undefined {
  if (isSeq(node)) {
    const item = /^\d+$/.test(name) ? node.items[Number(name)] : undefined
    return item === undefined || isPair(item) ? undefined : { node: item as ParsedNode }
  }
  if (!isMap(node)) return undefined
  // The last one of duplicate keys counts.
  const pair = (node.items as Entry[]).findLast(({ key }) => isScalar(key) && keyName(key) === name)
  return pair && { node: pair.value, key: pair.key.range?.[0] }
}

type Entry = Pair<ParsedNode, ParsedNode | null>

const keyName = ({ value }: { value: unknown }) => String(value ?? '')

function lineStarts(text: string): number[] {
  const starts = [0]
  for (const { index } of text.matchAll(/\n/g)) starts.push(index + 1)
  return starts
}

interface Reading {
  document: Document.Parsed
  /** The path from the document to the current value. */
  path: PropertyKey[]
  problems: (Problem & Partial<Position>)[]
  entries: number
  position(offset: number): Position
}

function read(node: ParsedNode | null, reading: Reading): unknown {
  reading.entries += 1
  if (reading.entries > SPEC.values) return null
  if (isAlias(node)) {
    const meant = node.resolve(reading.document)
    return refuse(reading, 'yaml_alias', NO_ALIASES, isScalar(meant) ? itself(meant.value) : undefined)
  }
  if (node?.tag !== undefined && !JSON_TAG.test(node.tag))
    return refuse(
      reading,
      'yaml_tag',
      `${node.tag.replace('tag:yaml.org,2002:', '!!')} is not supported: write the value itself`,
      isScalar(node) ? itself(node.source) : undefined,
    )
  if (isScalar(node)) return readScalar(node.value, reading, node.source)
  if (isMap(node)) return readMap(node.items as Entry[], reading)
  if (!isSeq(node)) return null
  return node.items.map((item, index) => {
    if (isPair(item)) return null
    reading.path.push(index)
    const value = read(item as ParsedNode, reading)
    reading.path.pop()
    return value
  })
}

function refuse({ problems, path }: Reading, code: Problem['code'], message: string, hint?: string): null {
  problems.push({ code, message, path: pointer(...path), ...(hint === undefined ? {} : { hint }) })
  return null
}

/** Characters of a value in a hint. */
const MAX_HINTED = 200

/** The hint to write a plain value. */
const itself = (value: unknown): string | undefined =>
  isJsonScalar(value) && String(value).length <= MAX_HINTED ? write(flowText(value)) : undefined

const isJsonScalar = (value: unknown) =>
  (typeof value === 'string' && isStorable(value) && !/[`\n]/.test(value)) ||
  typeof value === 'boolean' ||
  Number.isFinite(value)

const quoted = (source: string | undefined): string =>
  source !== undefined && source.length <= MAX_HINTED ? write(JSON.stringify(source)) : 'put it in quotes'

/** Refuses values that JSON does not have, and text that PostgreSQL cannot store. */
function readScalar(value: unknown, reading: Reading, source?: string): unknown {
  if (typeof value === 'string')
    return isStorable(value)
      ? value
      : refuse(
          reading,
          'yaml_value',
          'this text contains NUL or a lone surrogate',
          'remove the escape sequence',
        )
  if (typeof value === 'number') {
    if (!Number.isFinite(value))
      return refuse(reading, 'yaml_value', 'JSON has no such number', quoted(source))
    if (Number.isInteger(value) && !Number.isSafeInteger(value))
      return refuse(reading, 'yaml_value', 'this integer is too large to be stored exactly', quoted(source))
    return value
  }
  return typeof value === 'boolean' ? value : null
}

function readMap(pairs: Entry[], reading: Reading): unknown {
  const entries = new Map<string, unknown>()
  for (const { key, value } of pairs) {
    if (!isScalar(key)) {
      refuse(
        reading,
        isAlias(key) ? 'yaml_alias' : 'yaml_syntax',
        isAlias(key) ? NO_ALIASES : 'a key must be a string',
      )
      continue
    }
    const name = keyName(key)
    const double = entries.has(name)
    reading.path.push(name)
    entries.set(name, read(value, reading))
    const path = double || name === '__proto__' || !isStorable(name) ? pointer(...reading.path) : ''
    reading.path.pop()
    // Copies of objects lose `__proto__`.
    if (name === '__proto__' || !isStorable(name))
      reading.problems.push({ code: 'yaml_value', message: 'this key is not allowed', path, atKey: true })
    if (double)
      reading.problems.push({
        code: 'duplicate_key',
        message: `duplicate key ${name}`,
        hint: 'give it another name, or remove it',
        path,
        ...reading.position(key.range?.[0] ?? 0),
      })
  }
  return Object.fromEntries(entries)
}

function beyondLimits(text: string): string | undefined {
  if (Buffer.byteLength(text) > SPEC.bytes) return `a spec may have at most ${SPEC.bytes / 1024} KiB`
  if (count(text, /[\n\r,]/g) > MAX_SEPARATORS || count(text, /:\s/g) > MAX_SEPARATORS)
    return `a spec may have at most ${SPEC.values} values`
  if (count(text, /(?<![^\s,[{])[!&*]/g) > MAX_PROPERTIES)
    return 'tags, anchors and aliases are not supported'
  return depthOf(text) > SPEC.depth ? TOO_DEEP : undefined
}

function count(text: string, pattern: RegExp): number {
  let found = 0
  for (const _ of text.matchAll(pattern)) found += 1
  return found
}

/** An upper bound of the nesting: open brackets, increasing indents, and `- - -` within a line. */
function depthOf(text: string): number {
  const indents: number[] = []
  let brackets = 0
  let deepest = 0
  for (const line of text.split(/\r\n|\r|\n/)) {
    const content = line.trimStart()
    if (content === '' || content.startsWith('#')) continue
    const indent = line.length - content.length
    while (indents.length > 0 && indents.at(-1)! >= indent) indents.pop()
    indents.push(indent)
    const markers = /^(?:[-?:][ \t]+)*/.exec(content)![0].replaceAll(/[ \t]/g, '').length
    for (const character of content) {
      if (character === '[' || character === '{') brackets += 1
      else if (character === ']' || character === '}') brackets = Math.max(0, brackets - 1)
      deepest = Math.max(deepest, brackets + indents.length + markers)
    }
  }
  return deepest
}
