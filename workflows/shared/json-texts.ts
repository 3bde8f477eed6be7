import { createScanner, type ParseError, parse, printParseErrorCode } from 'jsonc-parser'

/** Values of jsonc-parser's SyntaxKind, a `const enum` without a value at run time. */
const [NUMBER, END] = [11, 17]

/** The same JSON, with a text in place of each integer that would be rounded, and of each number that is too large. */
export function withExactNumbers(json: string): string {
  const scanner = createScanner(json, true)
  let exact = ''
  let from = 0
  for (let token: number = scanner.scan(); token !== END; token = scanner.scan()) {
    const written = scanner.getTokenValue()
    const value = Number(written)
    const isExact = Number.isFinite(value) && (!/^-?\d+$/.test(written) || Number.isSafeInteger(value))
    if (token !== NUMBER || isExact) continue
    const at = scanner.getTokenOffset()
    exact += `${json.slice(from, at)}"${written}"`
    from = at + written.length
  }
  return exact + json.slice(from)
}

/** Says what is wrong with a text that is not JSON, and where. */
export function jsonProblem(json: string): string {
  if (json.trim() === '') return 'The text is empty: there is no JSON in it.'
  const errors: ParseError[] = []
  try {
    parse(json, errors, { disallowComments: true, allowTrailingComma: false })
  } catch {
    // The nesting overflows the parser's stack: the position is unknown.
  }
  const [error] = errors
  if (!error) return 'The text is not JSON.'
  const before = json.slice(0, error.offset).split('\n')
  const place = `line ${before.length}, column ${before.at(-1)!.length + 1}`
  const words = printParseErrorCode(error.error)
    .replaceAll(/([a-z])([A-Z])/g, '$1 $2')
    .toLowerCase()
  return `The text is not JSON: ${words} at ${place}, near ${JSON.stringify(json.slice(error.offset, error.offset + 20))}.`
}
