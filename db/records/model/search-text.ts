/** More than the longest body and the largest custom fields together; what is beyond is not found. */
const MAX_LENGTH = 160_000

/** Letters that Unicode does not take apart into a letter and an accent. */
const FOLDED: Record<string, string> = {
  ...{ ł: 'l', ø: 'o', đ: 'd', ð: 'd', ħ: 'h', ŧ: 't', ı: 'i' },
  ...{ æ: 'ae', œ: 'oe', ß: 'ss', þ: 'th' },
  // Lower case makes it of a sigma at the end of a word, and what is a word's end depends on the text around.
  ς: 'σ',
}
const FOLDABLE = new RegExp(`[${Object.keys(FOLDED).join('')}]`, 'g')

/** Lower case, without accents, words separated by single spaces. */
export const normalize = (text: string): string =>
  text
    .normalize('NFKD')
    .replace(/\p{Mn}+/gu, '')
    .toLowerCase()
    // Lower case can bring an accent of its own (İ).
    .replace(/\p{Mn}+/gu, '')
    .replace(FOLDABLE, (letter) => FOLDED[letter]!)
    .replace(/[\s\0]+/g, ' ')
    .trim()

/**
 * What free-text search looks at: the given values, their lists and objects included, as one text. What punctuation
 * holds together is there twice, whole and as its parts, for a word starts after punctuation too.
 */
export function searchText(values: unknown[]): string {
  const found: string[] = []
  const visit = (value: unknown): void => {
    if (typeof value === 'string') found.push(value)
    else if (typeof value === 'number') found.push(String(value))
    else if (Array.isArray(value)) value.forEach(visit)
    else if (value && typeof value === 'object') Object.values(value).forEach(visit)
  }
  values.forEach(visit)
  const whole = normalize(found.join(' ')).slice(0, MAX_LENGTH)
  const parts = whole.split(' ').flatMap((word) => {
    const split = word.split(/[^\p{L}\p{N}]+/u).filter(Boolean)
    return split.length > 1 || split[0] !== word ? split : []
  })
  return ` ${[whole, ...new Set(parts)].join(' ').slice(0, 2 * MAX_LENGTH)}`
}

/** Words as people write parts of a phone number, which is kept without such signs: `(415)`, `555-0100`. */
const PHONE_PART = /^(\+?\(\d{2,}\)|(?=(\D*\d){6})\+?[\d()./-]+)$/

/**
 * LIKE patterns of a query: of every word one must match. Words of one or two letters match at the start of a word
 * only, for inside words they would match nearly everything.
 */
export function searchPatterns(q: string): string[][] {
  return normalize(q)
    .split(' ')
    .filter(Boolean)
    .map((word) => {
      const escaped = word.replace(/[\\%_]/g, '\\$&')
      const pattern = [...word].length < 3 ? `% ${escaped}%` : `%${escaped}%`
      return PHONE_PART.test(word) ? [pattern, `%${word.replace(/\D/g, '')}%`] : [pattern]
    })
}
