/** Text to put at an offset. */
export interface Insertion {
  at: number
  text: string
}

/** A spec with a further node: see `insertionOf`. */
export function insertNode(spec: string, snippet: string): string {
  const { at, text } = insertionOf(spec, snippet)
  return spec.slice(0, at) + text + spec.slice(at)
}

/**
 * Where the lines of a node go: below the node that has this line (from 0), else at the end of `nodes:`, which is added
 * if there is none.
 */
export function insertionOf(spec: string, snippet: string, line = -1): Insertion {
  const lines = spec.split('\n')
  const begin = lines.findIndex((one) => /^nodes:\s*(#.*)?$/.test(one))
  const after = (from: number, ends: RegExp) => {
    const found = lines.findIndex((one, i) => i > from && ends.test(one))
    return found < 0 ? lines.length : found
  }
  const end = begin < 0 ? lines.length : after(begin, /^[^\s#]/)
  const isWithin = begin >= 0 && line > begin && line < end
  let place = isWithin ? Math.min(end, after(line, /^ {0,2}[^\s#]/)) : end
  // What stands before the next one belongs to that.
  while (place > 0 && /^\s*(#.*)?$/.test(lines[place - 1]!)) place--
  const at = lines.slice(0, place).join('\n').length
  const text = `${begin < 0 ? 'nodes:\n' : ''}${snippet.replace(/\n$/, '')}`
  return { at, text: `${at === 0 ? '' : '\n'}${text}${at === spec.length ? '\n' : ''}` }
}
