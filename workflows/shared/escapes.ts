/**
 * Texts whose characters are written as escapes: `%41`, `&#65;`, `&#x41;`, `&commat;`, `\u0041`, `\x41`. Any character
 * may be escaped, and escapes may be escaped again.
 */

/** A text without its escapes, and for each of its characters where it begins in the original, with the end last. */
export interface Unescaped {
  text: string
  starts: Uint32Array
}

/** Levels of escapes within escapes. */
const LEVELS = 3

const PERCENT = '%([0-9a-fA-F]{2})'
const ENTITY = '&(?:#0{0,5}(\\d{1,5})|#[xX]0{0,5}([0-9a-fA-F]{1,4})|([a-zA-Z]{2,7}));'
const BACKSLASH = '\\\\{1,8}(?:u([0-9a-fA-F]{4})|x([0-9a-fA-F]{2}))'

interface EscapeKind {
  /** Found in a text that has such an escape. */
  mark: RegExp
  escapes: RegExp
}

const KINDS: EscapeKind[] = [
  { mark: new RegExp(PERCENT), escapes: new RegExp(`${PERCENT}|(?!)()()()()()`, 'g') },
  { mark: new RegExp(ENTITY), escapes: new RegExp(`(?!)()|${ENTITY}|(?!)()()`, 'g') },
  { mark: new RegExp(BACKSLASH), escapes: new RegExp(`(?!)()()()()|${BACKSLASH}`, 'g') },
]

const ALL: EscapeKind = { mark: /[%&\\]/, escapes: new RegExp(`${PERCENT}|${ENTITY}|${BACKSLASH}`, 'g') }

/**
 * The forms of a text without its escapes, level by level; none if it has no escapes. Decodes each kind alone, because a
 * text may contain what only looks like another kind, and all kinds together. A level takes 0.1 s per MiB of nothing but
 * escapes, so the first level is decoded only once if the text has one kind.
 */
export function unescapedForms(text: string): Unescaped[] {
  const kinds = KINDS.filter(({ mark }) => mark.test(text))
  const [only, ...others] = kinds
  if (!only) return []
  if (others.length > 0) return [...kinds, ALL].flatMap((kind) => levelsOf(text, kind))
  const first = withoutEscapes(text, undefined, only)
  if (!first) return []
  const isMixed = KINDS.some((kind) => kind !== only && kind.mark.test(first.text))
  return [first, ...levelsOf(text, only, first), ...(isMixed ? levelsOf(text, ALL, first) : [])]
}

/** The levels of a kind, after the first one where that is known. */
function levelsOf(text: string, kind: EscapeKind, first?: Unescaped): Unescaped[] {
  const forms: Unescaped[] = []
  let last = first
  for (let level = first ? 1 : 0; level < LEVELS; level++) {
    last = withoutEscapes(last?.text ?? text, last, kind)
    if (!last) break
    forms.push(last)
  }
  return forms
}

function withoutEscapes(
  text: string,
  before: Unescaped | undefined,
  { mark, escapes }: EscapeKind,
): Unescaped | undefined {
  if (!mark.test(text)) return undefined
  const startOf = (at: number) => (before ? before.starts[at]! : at)
  const starts = new Uint32Array(text.length + 1)
  let length = 0
  let end = 0
  let found = false
  const unescaped = text.replace(escapes, (whole, percent, decimal, hex, name, unit, byte, at: number) => {
    const character = name ? NAMED[name] : characterOf(percent, decimal, hex, unit, byte)
    if (character === undefined) return whole
    for (let literal = end; literal < at; literal++) starts[length++] = startOf(literal)
    starts[length++] = startOf(at)
    end = at + whole.length
    found = true
    return character
  })
  if (!found) return undefined
  for (let literal = end; literal <= text.length; literal++) starts[length++] = startOf(literal)
  return { text: unescaped, starts: starts.subarray(0, length) }
}

/** One UTF-16 unit. A byte is read as Latin-1: the bytes of UTF-8 stay one character each. */
function characterOf(percent?: string, decimal?: string, hex?: string, unit?: string, byte?: string): string {
  const hexadecimal = percent ?? hex ?? unit ?? byte
  return String.fromCharCode(hexadecimal === undefined ? Number(decimal) : Number.parseInt(hexadecimal, 16))
}

/** The names of ASCII characters in HTML. */
const NAMED: Record<string, string> = Object.assign(Object.create(null), {
  Tab: '\t',
  NewLine: '\n',
  excl: '!',
  quot: '"',
  QUOT: '"',
  num: '#',
  dollar: '$',
  percnt: '%',
  amp: '&',
  AMP: '&',
  apos: "'",
  lpar: '(',
  rpar: ')',
  ast: '*',
  plus: '+',
  comma: ',',
  period: '.',
  sol: '/',
  colon: ':',
  semi: ';',
  lt: '<',
  LT: '<',
  equals: '=',
  gt: '>',
  GT: '>',
  quest: '?',
  commat: '@',
  lsqb: '[',
  lbrack: '[',
  bsol: '\\',
  rsqb: ']',
  rbrack: ']',
  Hat: '^',
  lowbar: '_',
  grave: '`',
  lcub: '{',
  lbrace: '{',
  verbar: '|',
  vert: '|',
  rcub: '}',
  rbrace: '}',
})
