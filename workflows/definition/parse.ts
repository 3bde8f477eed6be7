import { isAlias, isMap, isPair, isScalar, isSeq, type Pair, type ParsedNode, parseDocument } from 'yaml'
import { SPEC } from '../limits.ts'
import { isStorable } from '../storable-text.ts'
import { type Problem, pointer } from './errors.ts'
import { lastAtMost, mendYaml } from './mend-yaml.ts'

/** Lines and commas: what takes longer to parse than any real spec is refused before. */
const MAX_SEPARATORS = 12_000
/** `yaml` takes quadratic time for the tags or anchors of one node: a minute for 87,000. */
const MAX_PROPERTIES = 1_000
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

/** The tags of YAML's core schema, whose values exist in JSON. Values of other tags would be lost. */
const JSON_TAG = /^tag:yaml\.org,2002:(str|int|float|bool|null|map|seq)$/

/** Parses one YAML document of JSON values, without aliases. Never throws; with problems, `value` may be incomplete. */
export function parseYaml(text: string): ParsedYaml {
  const limit = beyondLimits(text)
  const start = { line: 1, column: 1 }
  if (limit)
    return {
      value: undefined,
      problems: [{ code: 'yaml_limit', message: limit, path: '' }],
      locate: () => start,
    }

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

/**
 * `original`: the offset in the author's text, `source`, of one in `text`.
 * @returns also the position of an offset in the author's text, and whether it is no YAML, or other than was meant.
 */
function parsed(
  text: string,
  original = (offset: number) => offset,
  source = text,
): ParsedYaml & { broken: boolean; at(offset: number): Position } {
  const document = parseDocument(text, { uniqueKeys: false, logLevel: 'error', prettyErrors: false })
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
  const reading: Reading = { places: new Map(), problems: [], entries: 0, position }
  const value = document.contents && syntax.length === 0 ? read(document.contents, '', reading) : undefined
  if (reading.entries > SPEC.values)
    reading.problems = [
      { code: 'yaml_limit', message: `a spec may have at most ${SPEC.values} values`, path: '' },
    ]
  return {
    value,
    problems: [...syntax, ...reading.problems],
    broken: syntax.length > 0 || reading.problems.some(({ code }) => code === 'yaml_syntax'),
    at,
    locate(path, atKey = false) {
      for (let up = path; ; up = up.slice(0, up.lastIndexOf('/'))) {
        const place = reading.places.get(up)
        if (place) return position((atKey && up === path ? place.key : undefined) ?? place.value)
        if (up === '') return { line: 1, column: 1 }
      }
    },
  }
}

function lineStarts(text: string): number[] {
  const starts = [0]
  for (const { index } of text.matchAll(/\n/g)) starts.push(index + 1)
  return starts
}

interface Reading {
  places: Map<string, { key?: number; value: number }>
  problems: (Problem & Partial<Position>)[]
  entries: number
  position(offset: number): Position
}

function read(node: ParsedNode | null, path: string, reading: Reading, key?: number): unknown {
  reading.entries += 1
  if (reading.entries > SPEC.values) return null
  const own = node?.range[0] ?? key ?? 0
  // A mapping starts on the line after its key: report the position of the key.
  const value = isMap(node) || isSeq(node) ? (key ?? own) : own
  reading.places.set(path, key === undefined ? { value } : { key, value })
  if (isAlias(node)) {
    reading.problems.push({ code: 'yaml_alias', message: NO_ALIASES, path })
    return null
  }
  if (node?.tag !== undefined && !JSON_TAG.test(node.tag)) {
    const message = `${node.tag.replace('tag:yaml.org,2002:', '!!')} is not supported: write the value itself`
    reading.problems.push({ code: 'yaml_tag', message, path })
    return null
  }
  if (isSeq(node))
    return node.items.map((item, index) => {
      if (!isPair(item)) return read(item as ParsedNode, `${path}${pointer(index)}`, reading)
      return null
    })
  if (isMap(node)) return readMap(node.items as Pair<ParsedNode, ParsedNode | null>[], path, reading)
  return isScalar(node) ? readScalar(node.value, path, reading) : null
}

/** Refuses values that JSON does not have, and text that PostgreSQL cannot store. */
function readScalar(value: unknown, path: string, reading: Reading): unknown {
  const refuse = (message: string, hint: string) => {
    reading.problems.push({ code: 'yaml_value', message, path, hint })
    return null
  }
  if (typeof value === 'number') {
    if (!Number.isFinite(value)) return refuse('JSON has no such number', 'put it in quotes')
    if (Number.isInteger(value) && !Number.isSafeInteger(value))
      return refuse('this integer is too large to be stored exactly', 'put it in quotes')
    return value
  }
  if (typeof value === 'string' && !isStorable(value))
    return refuse('this text contains NUL or a lone surrogate', 'remove the escape sequence')
  return typeof value === 'string' || typeof value === 'boolean' ? value : null
}

function readMap(pairs: Pair<ParsedNode, ParsedNode | null>[], path: string, reading: Reading): unknown {
  const entries = new Map<string, unknown>()
  for (const pair of pairs) {
    if (!isScalar(pair.key)) {
      const message = isAlias(pair.key) ? NO_ALIASES : 'a key must be a string'
      reading.problems.push({ code: isAlias(pair.key) ? 'yaml_alias' : 'yaml_syntax', message, path })
      continue
    }
    const name = String(pair.key.value ?? '')
    const inner = `${path}${pointer(name)}`
    const double = entries.has(name)
    const value = read(pair.value, inner, reading, pair.key.range?.[0])
    // Code that copies objects would lose `__proto__`.
    if (name === '__proto__' || !isStorable(name))
      reading.problems.push({
        code: 'yaml_value',
        message: 'this key is not allowed',
        path: inner,
        atKey: true,
      })
    if (double)
      reading.problems.push({
        code: 'duplicate_key',
        message: `duplicate key ${name}`,
        hint: 'give it another name, or remove it',
        path: inner,
        ...reading.position(pair.key.range?.[0] ?? 0),
      })
    entries.set(name, value)
  }
  return Object.fromEntries(entries)
}

function beyondLimits(text: string): string | undefined {
  if (Buffer.byteLength(text) > SPEC.bytes) return `a spec may have at most ${SPEC.bytes / 1024} KiB`
  if (count(text, /[\n\r,]/g) > MAX_SEPARATORS || count(text, /:\s/g) > MAX_SEPARATORS)
    return `a spec may have at most ${SPEC.values} values`
  if (count(text, /(?<![^\s,[{])[!&*]/g) > MAX_PROPERTIES)
    return 'tags, anchors and aliases are not supported'
  return depthOf(text) > SPEC.depth ? `a spec may be nested at most ${SPEC.depth} levels deep` : undefined
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
