/**
 * The operators of a filter as clients generated for Python send them: as the text of a dictionary,
 * `amount={'gte': '1000', 'is_null': False}`, instead of `amount[gte]=1000`.
 * @returns the operators with their values; undefined for any other text.
 */
export function operatorsIn(text: string): [operator: string, value: string][] | undefined {
  if (!text.startsWith("{'") || !text.endsWith('}')) return undefined
  const found: [string, string][] = []
  MEMBER.lastIndex = 1
  while (MEMBER.lastIndex < text.length) {
    const [, operator, value] = MEMBER.exec(text) ?? []
    if (operator === undefined || value === undefined) return undefined
    found.push([operator, readLiteral(value)])
  }
  return found
}

/** A member with the separator, or the bracket, behind it. Both texts end at their own quote. */
const MEMBER = /'([a-z_]+)': ('(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*"|True|False|-?[\d.]+)(?:, (?=')|\}$)/y

function readLiteral(literal: string): string {
  if (literal === 'True' || literal === 'False') return literal.toLowerCase()
  return /^['"]/.test(literal) ? literal.slice(1, -1).replace(/\\(.)/g, '$1') : literal
}
