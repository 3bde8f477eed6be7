import { escapeLike } from './like.ts'

/** Above the longest body plus the largest custom fields; search does not find text beyond this length. */
const MAX_LENGTH = 180_000

/** Letters that Unicode does not decompose into a letter and an accent. */
const FOLDED: Record<string, string> = {
  ł: 'l',
  ø: 'o',
  đ: 'd',
  ð: 'd',
  ħ: 'h',
  ŧ: 't',
  ı: 'i',
  æ: 'ae',
  œ: 'oe',
  ß: 'ss',
  þ: 'th',
  // A sigma at the end of a word becomes ς in lower case, which depends on the context.
  ς: 'σ',
}
const FOLDABLE = new RegExp(`[${Object.keys(FOLDED).join('')}]`, 'g')

/** Lower case, without accents, one kind of apostrophe, words separated by single spaces. */
export const normalize = (text: string): string =>
  text
    .normalize('NFKD')
    .replace(/\p{Mn}+/gu, '')
    .toLowerCase()
    // Lower-casing can add an accent (İ).
    .replace(/\p{Mn}+/gu, '')
    .replace(FOLDABLE, (letter) => FOLDED[letter]!)
    .replace(/[’‘ʼ´`]/g, "'")
    .replace(/[\s\0]+/g, ' ')
    .trim()

/**
 * The text for full-text search: all values, including nested ones. A word with punctuation is included whole and in
 * its parts, because words also start after punctuation.
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

/** Parts of a formatted phone number; stored numbers have no punctuation: `(415)`, `555-0100`. */
const PHONE_PART = /^(\+?\(\d{2,}\)|(?=(\D*\d){6})\+?[\d()./-]+)$/
/** A whole phone number of one or several words, from its country or trunk code: `+49 30 …`, `0049 …`, `030 …`. */
const PHONE = /(?<!\S)[+(]{0,2}[0+](?:[\d()./-]| (?=[\d(]))*\d(?!\S)/g

/**
 * The LIKE patterns for each word of a query; one of them must match. A word of one or two letters matches only at the
 * start of a word, because inside of words it would match nearly everything.
 */
export function searchPatterns(q: string): string[][] {
  const phones: string[][] = []
  const others = q.replace(PHONE, (written) => {
    const patterns = phonePatterns(written)
    if (!patterns) return written
    phones.push(patterns)
    return ' '
  })
  const words = others.split(/\s+/).filter((word) => normalize(word) !== '')
  return [...words.flatMap(wordPatterns), ...phones]
}

/** Undefined for fewer than 6 digits. A number without its country code is stored in E.164, without the trunk zero. */
function phonePatterns(written: string): string[] | undefined {
  const digits = written.replace('(0)', '').replace(/\D/g, '')
  const significant = digits.replace(/^0+/, '')
  if (significant.length < 6) return undefined
  // A number that was not understood is stored as it was written.
  return [...new Set([`%${significant}%`, `%${escapeLike(normalize(written))}%`])]
}

/** Usually one word; normalisation may make several of it. */
const wordPatterns = (written: string): string[][] =>
  normalize(written)
    .split(' ')
    .map((word) => [...new Set([word, ...otherSpellings(word, written)])].flatMap(patternsOf))

/** German umlauts are also written with an e: `Mueller` finds Müller, and `Müller` finds Mueller. */
function otherSpellings(word: string, written: string): string[] {
  const withE = normalize(written.normalize('NFC').replace(/[äöüÄÖÜ]/g, (letter) => `${letter}e`))
  return [withE.includes(' ') ? word : withE, word.replace(/([ao])e|(?<!q)ue/g, (pair) => pair[0]!)]
}

function patternsOf(word: string): string[] {
  const escaped = escapeLike(word)
  const pattern = [...word].length < 3 ? `% ${escaped}%` : `%${escaped}%`
  return PHONE_PART.test(word) ? [pattern, `%${word.replace(/\D/g, '')}%`] : [pattern]
}
