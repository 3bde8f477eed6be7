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

/** What is wrong with a text that does not parse, if a placeholder in it has a sign of another language. */
export function foreignSign(text: string): string | undefined {
  for (const [written, inner] of text.matchAll(/\{\{([^{}]*)\}\}/g)) {
    const plain = inner!.replace(/"[^"]*"|'[^']*'/g, '""')
    const found = SIGNS.find(([sign]) => plain.includes(sign))
    if (found) return `there is no \`${found[0].trim()}\` in ${written.slice(0, 100)}: write ${found[1]}`
  }
  return undefined
}
