/** By what a person is recognized in texts. An erasure has it until its end. */
export interface Person {
  /** The contact, and those that were merged into it. */
  ids: string[]
  emails: string[]
  /** Digits only, with the country code where it is known. */
  phones: string[]
  names: Name[]
  urls: string[]
}

export interface Name {
  first: string
  last: string
}

/** Contacts as they are and were: each object has some of the fields. */
export function personOf(ids: string[], states: Record<string, unknown>[]): Person {
  const texts = (...fields: string[]) =>
    distinct(
      states.flatMap((state) =>
        fields.flatMap((field) =>
          [state[field]].flat().flatMap((value) => (typeof value === 'string' ? [value.trim()] : [])),
        ),
      ),
    )
  const names = states.flatMap(({ first_name: first, last_name: last }): Name[] =>
    typeof first === 'string' && typeof last === 'string' && isName(first) && isName(last)
      ? [{ first: first.trim(), last: last.trim() }]
      : [],
  )
  return {
    ids,
    // As in the body of a form, too.
    emails: texts('email', 'other_emails').flatMap((email) =>
      email.includes('@') ? [email, encodeURIComponent(email)] : [],
    ),
    phones: texts('phone', 'mobile_phone', 'other_phones')
      .map((phone) => phone.replaceAll(/\D/g, ''))
      .filter((digits) => digits.length >= MIN_DIGITS),
    names: names.filter((one, place) => names.findIndex((other) => isSameName(one, other)) === place),
    urls: texts('linkedin_url').map((url) => url.replace(/^https?:\/\/(www\.)?/i, '').replace(/\/$/, '')),
  }
}

/** A shorter number is no person's, but any number. */
const MIN_DIGITS = 7

/** Parts of one letter would be found in any text. */
const isName = (part: string) => part.trim().length >= 2

const isSameName = (a: Name, b: Name) => fold(a.first) === fold(b.first) && fold(a.last) === fold(b.last)

const distinct = (texts: string[]): string[] => {
  const seen = new Map(texts.filter(Boolean).map((text) => [fold(text), text]))
  return [...seen.values()]
}

export const fold = (text: string): string => text.trim().toLowerCase()

/** The last digits of a number, by which it is found in national and international spelling. */
const coreOf = (digits: string): string => digits.slice(-Math.min(9, Math.max(MIN_DIGITS, digits.length - 2)))

const escaped = (text: string): string => text.replaceAll(/[\\^$.*+?()[\]{}|/-]/g, '\\$&')

/**
 * A regular expression, for PostgreSQL too, which matches each text that may name the person, and some others:
 * `finderOf` decides.
 */
export function candidatePattern({ ids, emails, phones, names, urls }: Person): string {
  const far = '.{0,80}'
  return [
    ...ids,
    ...[...emails, ...urls].map(escaped),
    ...phones.map((digits) => [...coreOf(digits)].join('[^0-9A-Za-z]{0,3}')),
    ...names.flatMap(({ first, last }) => [
      `${escaped(first)}${far}${escaped(last)}`,
      `${escaped(last)}${far}${escaped(first)}`,
    ]),
  ].join('|')
}

/** What a text has of the person. */
export interface Finder {
  /** Removes addresses and numbers, with `withNames` also the whole name. */
  redact(text: string, withNames: boolean): string
  /** Whether the text has the name, and nothing else decides. */
  hasName(text: string): boolean
  /** Whether the text is nothing but an address or a number of the person. */
  isKey(text: string): boolean
  /** Whether the text is nothing but a part of the name. */
  isPartOfName(text: string): boolean
  isId(value: unknown): boolean
}

/** What stands in the place of what was removed. */
export const ERASED = '[erased]'

export function finderOf(person: Person): Finder {
  const keys = new Set([...person.emails, ...person.urls].map(fold))
  const parts = new Set(
    person.names
      .flatMap(({ first, last }) => [first, last, `${first} ${last}`, `${last}, ${first}`])
      .map(fold),
  )
  const addresses = [...person.emails, ...person.urls].map(
    (key) =>
      new RegExp(`(?<![\\p{L}\\p{N}.%+])${escapedU(key)}(?![\\p{L}\\p{N}_-]|\\.[\\p{L}\\p{N}])`, 'giu'),
  )
  const numbers = person.phones.map((digits) => ({
    digits,
    pattern: new RegExp(
      `\\+?(?:\\d[\\s().\\/+-]{0,3}|\\()*?${[...coreOf(digits)].join('[\\s().\\/+-]{0,3}')}(?!\\d)`,
      'gu',
    ),
  }))
  const names = person.names.map(
    ({ first, last }) =>
      new RegExp(
        `(?<![\\p{L}\\p{N}])(?:${escapedU(first)}${GAP}${escapedU(last)}|${escapedU(last)},?${GAP}${escapedU(first)})(?![\\p{L}\\p{N}])`,
        'giu',
      ),
  )
  const redact = (text: string, withNames: boolean): string => {
    let rest = text
    for (const pattern of addresses) rest = rest.replaceAll(pattern, ERASED)
    for (const { digits, pattern } of numbers)
      rest = rest.replaceAll(pattern, (found) => (isNumber(found, digits) ? ERASED : found))
    if (withNames) for (const pattern of names) rest = rest.replaceAll(pattern, ERASED)
    return rest
  }
  return {
    redact,
    hasName: (text) => names.some((pattern) => text.search(pattern) >= 0),
    isKey: (text) => {
      const short = fold(text)
      return keys.has(short) || (short.length < 40 && /\d/.test(short) && redact(short, false) === ERASED)
    },
    isPartOfName: (text) => parts.has(fold(text)),
    isId: (value) => typeof value === 'string' && person.ids.includes(value),
  }
}

/** Between the parts of a name, also in the body of a form. */
const GAP = '(?:[\\s+]|%20)+'

/** As `escaped`, for the flag `u`, which refuses an escaped hyphen. */
const escapedU = (text: string): string => text.replaceAll(/[\\^$.*+?()[\]{}|/]/g, '\\$&')

/** Whether digits with separators are the number: with or without its country code, with zeros before it. */
function isNumber(found: string, digits: string): boolean {
  const plain = found.replace('(0)', '').replaceAll(/\D/g, '').replace(/^0+/, '')
  return digits.replace(/^0+/, '').endsWith(plain)
}
