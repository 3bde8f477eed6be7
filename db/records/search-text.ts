/** Longer texts are found by their beginning only. */
const MAX_LENGTH = 32_000

/** Lower case, without accents, words separated by single spaces. */
export const normalize = (text: string): string =>
  text
    .normalize('NFD')
    .replace(/\p{Mn}+/gu, '')
    .toLowerCase()
    .replace(/\s+/g, ' ')
    .trim()

/** What free-text search looks at: the given values, their lists and objects included, as one text. */
export function searchText(values: unknown[]): string {
  const words: string[] = []
  const visit = (value: unknown): void => {
    if (typeof value === 'string') words.push(value)
    else if (typeof value === 'number') words.push(String(value))
    else if (Array.isArray(value)) value.forEach(visit)
    else if (value && typeof value === 'object') Object.values(value).forEach(visit)
  }
  values.forEach(visit)
  return ` ${normalize(words.join(' ')).slice(0, MAX_LENGTH)}`
}

/**
 * LIKE patterns of a query: every word must match. Words of one or two letters match at the start of a word only,
 * for inside words they would match nearly everything.
 */
export function searchPatterns(q: string): string[] {
  return normalize(q)
    .split(' ')
    .filter(Boolean)
    .map((word) => {
      const escaped = word.replace(/[\\%_]/g, '\\$&')
      return [...word].length < 3 ? `% ${escaped}%` : `%${escaped}%`
    })
}
