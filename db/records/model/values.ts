import { type CountryCode, parsePhoneNumberFromString } from 'libphonenumber-js'
import { z } from 'zod'

/** How single values are read: what is accepted, and the one form in which it is kept. */

export const DECIMAL =
  'must be a decimal such as "1250.00", of at most 16 digits before the point and 8 behind it'
/** Money as it may be written as text. */
export const MONEY = /^\s*(-?)0*(\d{1,16})(?:\.(\d{1,8}))?\s*$/
const CURRENCIES = new Set(Intl.supportedValuesOf('currency'))

export const isCurrency = (code: string): boolean => CURRENCIES.has(code)

/** The first so many characters, as zod and PostgreSQL count them; to JavaScript's `length` an emoji is two. */
export function firstCharacters(text: string, count: number): string {
  if (text.length <= count) return text
  let [end, left] = [0, count]
  for (const character of text) {
    if (left-- === 0) break
    end += character.length
  }
  return text.slice(0, end)
}

/**
 * Whether a text is probably an address; quickly, however long it is: each part is without what ends it, or a MiB that
 * somebody sends would take its square.
 */
export const looksLikeEmail = (text: string): boolean => /^[^\s@]+@[^\s@.]+(\.[^\s@.]+)+$/.test(text)

/** To milliseconds in UTC, as everything is stored and shown; undefined outside the years 1 to 9999. */
export function toTimestamp(value: string): string | undefined {
  const date = new Date(value)
  if (Number.isNaN(date.getTime())) return undefined
  const text = date.toISOString()
  return /^(?!0000)\d{4}-/.test(text) ? text : undefined
}

/** Whether PostgreSQL has the day: it has no year 0. */
export const isDay = (date: string): boolean => toTimestamp(date) !== undefined

/**
 * E.164 where it parses as an international number, or as one of `country`; else as it was written, for a half number
 * is better than none. So is one with an extension, which E.164 has no place for.
 */
export function toE164(value: string, country?: CountryCode): string {
  const parsed = parsePhoneNumberFromString(value, country)
  return parsed?.isValid() && parsed.ext === undefined ? parsed.number : value
}

/** `example.com/about` as people write it. */
export const withScheme = (value: string): string =>
  /^[\p{L}\p{N}-]+(\.[\p{L}\p{N}-]+)+(:\d+)?([/?#]|$)/u.test(value) ? `https://${value}` : value

export const isDomain = (text: string): boolean =>
  /^([a-z0-9]([a-z0-9-]*[a-z0-9])?\.)+(?!\d+$)[a-z0-9-]{2,}$/.test(text)

/** The host of an address, without `www.`; what is no address stays as it is. */
export function toDomain(value: string): string {
  if (value.includes('@')) return value
  const address = /^https?:\/\//i.test(value) ? value : `https://${value}`
  if (!URL.canParse(address)) return value
  return new URL(address).hostname.replace(/^www\./, '').replace(/\.$/, '')
}

export function toStoredTimestamp(value: string, ctx: z.RefinementCtx): string {
  const timestamp = toTimestamp(value)
  if (timestamp !== undefined) return timestamp
  ctx.addIssue({ code: 'custom', message: 'must be in the years 0001 to 9999', params: { type: 'datetime' } })
  return z.NEVER
}

/** A decimal with at least two places, as text: money is never a float. */
export function toMoney(value: string | number, ctx: z.RefinementCtx): string {
  if (typeof value === 'number' && mayBeRounded(value)) {
    ctx.addIssue({
      code: 'custom',
      message: 'has more digits than a number in JSON keeps',
      params: { type: 'decimal', hint: 'send it as a string, such as "1250.00"' },
    })
    return z.NEVER
  }
  const written = typeof value === 'number' ? withoutExponent(String(value)) : value
  const match = MONEY.exec(written)
  if (!match) {
    ctx.addIssue({
      code: 'custom',
      message: DECIMAL,
      params: { type: 'decimal' },
    })
    return z.NEVER
  }
  const [, minus, whole, fraction = ''] = match
  const places = fraction.replace(/0+$/, '').padEnd(2, '0')
  // PostgreSQL has no negative zero.
  const sign = /[1-9]/.test(whole + places) ? minus : ''
  return `${sign}${whole}.${places}`
}

/** JavaScript writes what is below a millionth as `1.2e-7`. */
const withoutExponent = (number: string): string =>
  number.replace(
    /^(-?)(\d)(?:\.(\d+))?e-(\d+)$/,
    (_, sign, first, rest = '', exponent) => `${sign}0.${'0'.repeat(Number(exponent) - 1)}${first}${rest}`,
  )

/** From here on a double may be whole though cents were written: 999999999999999.01 becomes 999999999999999. */
const MAX_WHOLE = 1e14

/** Whether a number may not be the one that was written: of JSON a double is made, which keeps 15 digits of any. */
const mayBeRounded = (number: number): boolean =>
  Number.isInteger(number) ? Math.abs(number) >= MAX_WHOLE : digitsOf(number) > 15

const digitsOf = (number: number): number =>
  String(number).replace(/e.*/, '').replace(/\D/g, '').replace(/^0+/, '').length
