import { type Unescaped, unescapedForms } from './escapes.ts'
import { SECRETS } from './limits.ts'
import { Needles } from './needles.ts'
import { Parts } from './parts.ts'
import { MASK } from './secret-names.ts'

/**
 * Masks given secrets wherever they occur: verbatim, escaped in JSON or HTML, URL-encoded, in base64 (also as part of a
 * longer text, such as `user:password`, and in base64 again), in base32 and in hexadecimal. A secret that was changed
 * in any other way, such as reversed or compressed, is not found.
 */
export class Redactor {
  private readonly parts = new Set<string>()
  /** By the text that every match contains. */
  private readonly patterns = new Needles<Pattern>()
  /** The secrets of which parts are masked too. */
  private readonly divisible = new Parts()

  constructor(secrets: Iterable<string> = []) {
    for (const secret of secrets) this.add(secret)
  }

  /**
   * Ignores a secret shorter than `SECRETS.least`, which would mask parts of common words.
   * @param options.parts also masks parts of `SECRETS.part` and more characters: a service may show the beginning of a
   *   key, and an error cuts what it shows.
   */
  add(secret: string, { parts = false }: { parts?: boolean } = {}): void {
    for (const part of partsOf(secret)) {
      if (!this.parts.has(part)) for (const one of patternsOf(part)) this.patterns.add(one.sure, one)
      this.parts.add(part)
    }
    if (parts) for (const [form, least] of divisibleForms(secret.trim())) this.divisible.add(form, least)
  }

  text(text: string): string {
    const plain = this.plain(text)
    const masked = maskRanges(
      plain,
      unescapedForms(plain).flatMap((form) => this.rangesIn(form)),
    )
    return masked === text ? text : masked.replaceAll(PIECES, MASK)
  }

  /** False if these bytes, in an encoding that extends ASCII, have no secret: a cheap check before `value`. */
  mayBeIn(bytes: Buffer): boolean {
    return this.mayBeInText(bytes.toString('latin1'))
  }

  /** Every text in a value, keys and numbers too. The levels of `value` must be bounded. */
  value<T>(value: T): T {
    if (this.patterns.isEmpty) return value
    const json = JSON.stringify(value)
    return (json !== undefined && this.mayBeInText(json) ? this.deep(value) : value) as T
  }

  private mayBeInText(text: string): boolean {
    const has = (one: string) => this.patterns.in(one).length > 0 || this.divisible.find(one).length > 0
    return has(text) || unescapedForms(text).some((form) => has(form.text))
  }

  /** A text in which no character of a secret is escaped, but for those that the patterns know. */
  private plain(text: string): string {
    let masked = text
    for (const { pattern } of this.patterns.in(text)) masked = masked.replace(pattern(), MASK)
    return this.divisible.isEmpty ? masked : maskRanges(masked, this.divisible.find(masked))
  }

  /** The ranges of the original text whose unescaped form has a secret. */
  private rangesIn({ text, starts }: Unescaped): Range[] {
    const found: Range[] = this.divisible.isEmpty ? [] : this.divisible.find(text)
    for (const { pattern } of this.patterns.in(text))
      for (const match of text.matchAll(pattern()))
        if (match[0] !== '') found.push([match.index, match.index + match[0].length])
    return found.map(([start, end]) => [starts[start]!, starts[end]!])
  }

  private deep(value: unknown): unknown {
    if (typeof value === 'string') return this.text(value)
    if (typeof value === 'number') {
      const text = String(value)
      return text.length < SECRETS.least || this.text(text) === text ? value : MASK
    }
    if (Array.isArray(value)) return value.map((item) => this.deep(item))
    if (typeof value !== 'object' || value === null) return value
    return Object.fromEntries(
      Object.entries(value).map(([name, member]) => [this.text(name), this.deep(member)]),
    )
  }
}

type Range = [start: number, end: number]

/** The text with a mask in place of each range; ranges that overlap are one. */
function maskRanges(text: string, ranges: Range[]): string {
  if (ranges.length === 0) return text
  let masked = ''
  let end = 0
  for (const [start, last] of ranges.toSorted((a, b) => a[0] - b[0])) {
    if (start >= end) masked += text.slice(end, start) + MASK
    end = Math.max(end, last)
  }
  return masked + text.slice(end)
}

/** Characters of all forms of one secret whose parts are found: those of a longer one are a line of its whole. */
const MAX_DIVISIBLE = 2_048

/** The forms of a secret whose parts are masked, each with the least length of a part. */
function divisibleForms(secret: string): [form: string, least: number][] {
  // The host of a URL is no secret, and other texts name it.
  const text = secret.replace(/^\w+:\/\/(?:[^/?#@]*@)?[^/?#]*/, '')
  if (text.length < SECRETS.part || text.length > MAX_DIVISIBLE) return []
  const bytes = Buffer.from(text)
  const hex = bytes.toString('hex')
  return [
    [text, SECRETS.part],
    ...base64Cores(bytes).map((core): [string, number] => [core, Math.ceil((SECRETS.part * 4) / 3)]),
    [hex, SECRETS.part * 2],
    [hex.toUpperCase(), SECRETS.part * 2],
  ]
}

/** A secret that was masked in several pieces. */
const PIECES = new RegExp(`(?:${MASK.replace(/[[\]]/g, '\\$&')}){2,}`, 'g')

/** Characters of one pattern: a longer pattern takes seconds to compile, or cannot be compiled. */
const PIECE = 128

/** The texts to look for, the longest first. */
function partsOf(secret: string): string[] {
  const whole = secret.trim()
  if (whole.length < SECRETS.least) return []
  // A receiver may read the bytes of UTF-8 as Latin-1, as headers are.
  const misread = Buffer.from(whole).toString('latin1')
  // A header or a log may show a single line.
  const lines = whole.includes('\n') ? whole.split('\n').map((line) => line.trim()) : []
  return [whole, misread, ...lines.filter((line) => line.length >= SECRETS.distinctive)].flatMap(piecesOf)
}

/** Pieces of about the same size. */
function piecesOf(text: string): string[] {
  const characters = [...text]
  const size = Math.ceil(characters.length / Math.ceil(characters.length / PIECE))
  const starts = [...Array(Math.ceil(characters.length / size)).keys()].map((index) => index * size)
  return starts.map((start) => characters.slice(start, start + size).join(''))
}

/**
 * A pattern, and the longest text that every match contains. Searching for the text takes 0.2 ms for each MiB, for the
 * pattern 10 ms and more. Patterns are compiled when their text is first found: those of a secret take some 50 µs.
 */
interface Pattern {
  sure: string
  pattern(): RegExp
}

function patternsOf(text: string): Pattern[] {
  const encodings = [Buffer.from(text), Buffer.from(text, 'latin1')]
  const distinct = encodings[0]!.equals(encodings[1]!) ? encodings.slice(1) : encodings
  const encoded = distinct.flatMap((bytes) => [
    ...base64Patterns(bytes),
    ...base64Cores(bytes).flatMap((core) =>
      alphabets(core).flatMap((one) => base64Patterns(Buffer.from(one))),
    ),
    ...base32Patterns(bytes),
    ...hexPatterns(bytes),
  ])
  return [patternOf(text, () => [...text].map(characterPattern).join('')), ...encoded]
}

/** @param text without its escapes: they leave letters, digits and `_` as they are. */
function patternOf(text: string, source: () => string): Pattern {
  let compiled: RegExp | undefined
  return {
    sure: (text.match(/\w+/g) ?? []).reduce(
      (longest, run) => (run.length > longest.length ? run : longest),
      '',
    ),
    pattern() {
      compiled ??= new RegExp(source(), 'g')
      return compiled
    },
  }
}

/** A character with all its escapes. Letters, digits and `_` are escaped by no encoder. */
function characterPattern(character: string): string {
  if (/\w/.test(character)) return character
  const bytes = [...Buffer.from(character)].map((byte) => `%(?:25){0,3}${anyCase(hexOf(byte))}`).join('')
  const units = [...Array(character.length).keys()].map((at) => character.charCodeAt(at))
  const unicode = units.map((unit) => `\\\\{1,8}u${anyCase(unit.toString(16).padStart(4, '0'))}`).join('')
  const code = character.codePointAt(0)!
  return `(?:${[
    bytes,
    unicode,
    ...(SHORT_ESCAPES[character] ?? []),
    `&#(?:0{0,5}${code}|[xX]0{0,5}${anyCase(code.toString(16))});`,
    ...(ENTITIES[character] ?? []),
    // In JSON within JSON an escape is escaped again.
    `\\\\{0,8}${escaped(character)}`,
  ].join('|')})`
}

const SHORT_ESCAPES: Record<string, string[]> = {
  '\n': ['\\\\{1,8}n', '\\\\{1,8}r\\\\{1,8}n', '\r\n'],
  '\r': ['\\\\{1,8}r'],
  '\t': ['\\\\{1,8}t'],
  ' ': ['\\+'],
}
const ENTITIES: Record<string, string[]> = {
  '&': ['&amp;'],
  '<': ['&lt;'],
  '>': ['&gt;'],
  '"': ['&quot;'],
  "'": ['&apos;'],
}

/**
 * The base64 of any text that contains these bytes, for each of their three alignments. The characters at both ends
 * also hold bits of the neighbouring bytes; they are masked too.
 */
function base64Patterns(bytes: Buffer): Pattern[] {
  return base64Cores(bytes).map((core) => {
    const pattern = () => [...core].map((character) => BASE64[character] ?? character).join('')
    return patternOf(core, () => `[\\w+/-]?${pattern()}[\\w+/-]?(?:=|%3[dD]){0,2}`)
  })
}

/** What is the same in the base64 of any text that contains these bytes, for each of their three alignments. */
function base64Cores(bytes: Buffer): string[] {
  return [0, 1, 2].map((before) => {
    const text = Buffer.concat([Buffer.alloc(before), bytes])
      .toString('base64')
      .replaceAll('=', '')
    return text.slice(Math.ceil((before * 8) / 6), Math.floor(((before + bytes.length) * 8) / 6))
  })
}

/** A text in base64, and in base64url if that differs. */
const alphabets = (text: string): string[] => [
  ...new Set([text, text.replaceAll('+', '-').replaceAll('/', '_')]),
]

const BASE32 = 'ABCDEFGHIJKLMNOPQRSTUVWXYZ234567'

/** The base32 of any text that contains these bytes, for each of their five alignments. */
function base32Patterns(bytes: Buffer): Pattern[] {
  const bits = [...bytes].map((byte) => byte.toString(2).padStart(8, '0')).join('')
  return [0, 1, 2, 3, 4].flatMap((before) => {
    const cut = (5 - ((before * 8) % 5)) % 5
    const fives = bits.slice(cut).match(/.{5}/g) ?? []
    const core = fives.map((five) => BASE32[Number.parseInt(five, 2)]).join('')
    return [core, core.toLowerCase()].map((text) =>
      patternOf(text, () => `[a-zA-Z2-7]?${text}[a-zA-Z2-7]?={0,6}`),
    )
  })
}

/** The characters of both alphabets that differ, also as URLs and JSON write them. */
const BASE64: Record<string, string> = { '+': '(?:[+-]|%2[bB])', '/': '(?:\\\\{0,8}/|_|%2[fF])' }

const hexPatterns = (bytes: Buffer): Pattern[] =>
  [bytes.toString('hex'), bytes.toString('hex').toUpperCase()].map((text) => patternOf(text, () => text))

const hexOf = (byte: number) => byte.toString(16).padStart(2, '0')

const anyCase = (hex: string) =>
  hex.replace(/[a-f]/gi, (digit) => `[${digit.toLowerCase()}${digit.toUpperCase()}]`)

const escaped = (text: string) => text.replace(/[\\^$.*+?()[\]{}|/-]/g, '\\$&')
