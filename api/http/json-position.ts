/** Punctuation, a string, or another scalar, after white space. */
const TOKEN =
  /[ \t\n\r]*([{}[\],:]|"(?:[ !#-[\]-\u{10ffff}]|\\(?:["\\/bfnrt]|u[0-9a-fA-F]{4}))*"|-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?|true|false|null)/uy
const SPACE = /[ \t\n\r]*/y

/**
 * Where a text stops being JSON: the index of the first token that does not fit. JSON.parse knows, but its messages
 * leave the position out as often as not.
 */
export function jsonErrorIndex(text: string): number {
  const token = new RegExp(TOKEN)
  const open: ('{' | '[')[] = []
  let expected: 'value' | 'value or ]' | 'key' | 'key or }' | ':' | 'more' = 'value'
  for (;;) {
    const from = token.lastIndex
    const match = token.exec(text)
    if (!match) return skipSpace(text, from)
    const part = match[1]!
    const at = token.lastIndex - part.length
    const closes =
      (part === '}' && open.at(-1) === '{' && (expected === 'more' || expected === 'key or }')) ||
      (part === ']' && open.at(-1) === '[' && (expected === 'more' || expected === 'value or ]'))

    if (closes) {
      open.pop()
      expected = 'more'
    } else if (expected === 'key' || expected === 'key or }') {
      if (!part.startsWith('"')) return at
      expected = ':'
    } else if (expected === ':') {
      if (part !== ':') return at
      expected = 'value'
    } else if (expected === 'more') {
      if (part !== ',' || open.length === 0) return at
      expected = open.at(-1) === '{' ? 'key' : 'value'
    } else if (part === '{' || part === '[') {
      open.push(part)
      expected = part === '{' ? 'key or }' : 'value or ]'
    } else if ('}],:'.includes(part)) return at
    else expected = 'more'
  }
}

function skipSpace(text: string, from: number): number {
  const space = new RegExp(SPACE)
  space.lastIndex = from
  space.exec(text)
  return space.lastIndex
}
