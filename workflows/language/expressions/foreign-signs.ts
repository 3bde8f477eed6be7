/** Signs of other languages, and what to write instead. The longer ones come first. */
const SIGNS: readonly [sign: string, instead: string][] = [
  ['===', '`==`'],
  ['!==', '`!=`'],
  ['&&', '`and`'],
  ['||', '`or`, or `| default: …` for an empty value'],
  ['??', '`| default: …`'],
  ['+', '`| plus: …`, or `| append: …` for texts'],
  ['*', '`| times: …`'],
  ['/', '`| divided_by: …`'],
  ['%', '`| modulo: …`'],
  [' - ', '`| minus: …`'],
  ['=>', '`>=`'],
]

/** Methods of other languages, and the filters that do the same. */
const METHODS: Record<string, string> = {
  toLowerCase: 'downcase',
  lower: 'downcase',
  toUpperCase: 'upcase',
  upper: 'upcase',
  trim: 'strip',
  strip: 'strip',
  split: 'split: …',
  join: 'join: …',
  replace: 'replace: …, …',
  replaceAll: 'replace: …, …',
  slice: 'slice: …',
  substring: 'slice: …',
  toFixed: 'to_fixed: …',
  filter: 'where: …, …',
  map: 'map: …',
  find: 'find: …, …',
  reverse: 'reverse',
  concat: 'concat: …',
  startsWith: 'slice: …',
}

/** Phrases of other languages, each with what to write instead. */
const PHRASES: readonly [phrase: RegExp, instead: (match: string[]) => string][] = [
  [
    /\.([a-zA-Z]\w*)\(/,
    ([, name = '']) =>
      name === 'includes'
        ? 'there is no `.includes(`: write `… contains …`'
        : Object.hasOwn(METHODS, name)
          ? `there is no \`.${name}(\`: write \`| ${METHODS[name]}\``
          : `there are no methods such as \`.${name.slice(0, 50)}(\`: use a filter, \`| …\``,
  ],
  [/\$node\b|\$\(/, () => 'there is no `$node`: write `nodes.<id>.output.…`'],
  [
    /\$(?:json|input|body)\b/,
    () => 'there is no `$json`: write `trigger.payload.…`, `inputs.…` or `nodes.<id>.output.…`',
  ],
  [/\$\w+/, ([written = '']) => `there is no \`${written.slice(0, 50)}\`: names have no \`$\``],
  [
    /\b(not\s+)?in\s*\[/,
    ([, not]) => `there is no \`in\`: write ${not ? '`… != … and … != …`' : '`… == … or … == …`'}`,
  ],
  [/[^=!<>]=[^=>]/, () => 'there is no `=`: write `==`'],
]

/** A filter before an operator: `a.tags | size > 0`. */
const FILTER_COMPARED = /^([^|(]*\|[^|()<>=!]*?)\s*(==|!=|>=|<=|>|<|\bcontains\b)\s*([^|]*)$/

/** A filter within a choice, behind texts that are masked: `c ? a | times: 2 : b`. */
const FILTER_CHOSEN = /^([^?]*\?\s*)([^?|()]*\|[^?()]*?)(\s:\s[^?|]*)$/

/** The longest expression that is searched by `FILTER_CHOSEN`, whose time can be quadratic. */
const MOST_SEARCHED = 1_000

/** LiquidJS reads what follows the filter as its argument. */
function filterChosen(inner: string): string | undefined {
  if (inner.length > MOST_SEARCHED) return undefined
  const masked = inner.replace(/"[^"]*"|'[^']*'/g, (text) => '_'.repeat(text.length))
  const [, before, filtered] = FILTER_CHOSEN.exec(masked) ?? []
  if (before === undefined || filtered === undefined) return undefined
  const end = before.length + filtered.length
  const value = inner.slice(before.length, end)
  return `a filter in a choice needs parentheses: write \`${inner.slice(0, before.length).trimStart()}(${value})${inner.slice(end).trimEnd()}\``
}

/** What is wrong with a text that does not parse, if a placeholder in it has a sign of another language. */
export function foreignSign(text: string): string | undefined {
  for (const [written, inner] of text.matchAll(/\{\{([^{}]*)\}\}/g)) {
    const plain = inner!.replace(/"[^"]*"|'[^']*'/g, '""')
    for (const [phrase, instead] of PHRASES) {
      const match = phrase.exec(plain)
      if (match) return instead(match)
    }
    const [, left, operator, right] = FILTER_COMPARED.exec(inner!) ?? []
    if (left !== undefined)
      return `a filter in a comparison needs parentheses: write \`(${left.trim()}) ${operator} ${right!.trim()}\``
    const chosen = filterChosen(inner!)
    if (chosen !== undefined) return chosen
    const found = SIGNS.find(([sign]) => plain.includes(sign))
    if (found) return `there is no \`${found[0].trim()}\` in ${written.slice(0, 100)}: write ${found[1]}`
  }
  return undefined
}
