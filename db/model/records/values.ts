import { z } from 'zod'
import { parseTime } from '../../../workflows/language/time.ts'
import { parsePhone } from '../../../workflows/shared/phone.ts'

/** Parsers of single values: the accepted input and the stored form. */

export const DECIMAL =
  'must be a decimal such as "1250.00", with at most 16 digits before the point and 8 after it'
/** The digits before the point that money has at most. */
export const MONEY_DIGITS = 16

/** Whether a computed amount, as `moneyText` writes it, is not too large to be stored. */
export const fitsMoney = (money: string): boolean => money.replace(/^-|\..*/g, '').length <= MONEY_DIGITS

/** The accepted text of money. */
export const MONEY = /^\s*(-?)0*(\d{1,16})(?:\.(\d{1,8}))?\s*$/
/** The accepted text of a decimal that is not negative. */
export const QUANTITY = /^\s*0*(\d{1,16})(?:\.(\d{1,8}))?\s*$/
const CURRENCIES = new Set(Intl.supportedValuesOf('currency'))

/** All codes of currencies, former ones too. */
export const currencyCodes = (): string[] => [...CURRENCIES]

export const isCurrency = (code: string): boolean => CURRENCIES.has(code)

/** Whether a text is a language tag that Intl knows, such as `de-CH`. */
export function isLocale(tag: string): boolean {
  try {
    return Intl.NumberFormat.supportedLocalesOf(tag).length > 0
  } catch {
    return false
  }
}

/** The first `count` characters, as zod and PostgreSQL count them; JavaScript's `length` of an emoji is 2. */
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
 * Whether a text is probably an email address. No part of the pattern matches its own terminator: backtracking would
 * take quadratic time on long input.
 */
export const looksLikeEmail = (text: string): boolean => /^[^\s@]+@[^\s@.]+(\.[^\s@.]+)+$/.test(text)

/** Converts a time to its stored form: UTC with milliseconds; undefined outside the years 1 to 9999. */
export function toTimestamp(value: string): string | undefined {
  const date = new Date(value)
  if (Number.isNaN(date.getTime())) return undefined
  const text = date.toISOString()
  return /^(?!0000)\d{4}-/.test(text) ? text : undefined
}

/** Whether a time has no offset, or is a date: it is in the time zone of the organization or of the request. */
export const isLocal = (time: string): boolean => /^\d{4}-\d\d-\d\d(T[\d:.]+)?$/.test(time)

/** The stored form of a time in a time zone; a date is its first moment. Undefined outside the years 1 to 9999. */
export function inZone(time: string, timezone: string): string | undefined {
  const moment = isLocal(time) ? parseTime(time, timezone) : undefined
  return moment && toTimestamp(moment.toISOString())
}

/** Whether a date is in the years 1 to 9999: PostgreSQL has no year 0. */
export const isDay = (date: string): boolean => toTimestamp(date) !== undefined

/**
 * Converts a phone number to E.164 if it parses as an international number, or as one of `country`. An incomplete
 * number, or one with an extension, which E.164 does not have, stays unchanged.
 */
export function toE164(value: string, country?: string): string {
  const parsed = parsePhone(value, country)
  return parsed && parsed.ext === undefined ? parsed.number : value
}

/** Adds the scheme to an address such as `example.com/about`. */
export const withScheme = (value: string): string =>
  /^[\p{L}\p{N}-]+(\.[\p{L}\p{N}-]+)+(:\d+)?([/?#]|$)/u.test(value) ? `https://${value}` : value

export const isDomain = (text: string): boolean =>
  /^([a-z0-9]([a-z0-9-]*[a-z0-9])?\.)+(?!\d+$)[a-z0-9-]{2,}$/.test(text)

/** The host of an address, without `www.`; other text stays unchanged. */
export function toDomain(value: string): string {
  if (value.includes('@')) return value
  const address = /^https?:\/\//i.test(value) ? value : `https://${value}`
  if (!URL.canParse(address)) return value
  return new URL(address).hostname.replace(/^www\./, '').replace(/\.$/, '')
}

/** A local time stays as it is until it is written: db/records/local-times.ts. */
export function toStoredTimestamp(value: string, ctx: z.RefinementCtx): string {
  const timestamp = toTimestamp(value)
  if (timestamp !== undefined) return isLocal(value) ? value : timestamp
  ctx.addIssue({ code: 'custom', message: YEARS, params: { type: 'datetime' } })
  return z.NEVER
}

export const YEARS = 'must be in the years 0001 to 9999'

/** A decimal with at least two places, as text: money is never a float. */
export function toMoney(value: string | number, ctx: z.RefinementCtx): string {
  if (typeof value === 'number' && mayBeRounded(value)) {
    ctx.addIssue({
      code: 'custom',
      message: 'has more digits than a JSON number can hold',
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
  return moneyText(written)
}

/** The stored form of money: a decimal with at least two places, and no zeros behind these. */
export function moneyText(decimal: string): string {
  const [, minus = '', whole = '', fraction = ''] = /^\s*(-?)0*(\d+)(?:\.(\d+))?\s*$/.exec(decimal)!
  const places = fraction.replace(/0+$/, '').padEnd(2, '0')
  // PostgreSQL has no negative zero.
  return `${/[1-9]/.test(whole + places) ? minus : ''}${whole}.${places}`
}

/** JavaScript formats numbers below a millionth as `1.2e-7`. */
const withoutExponent = (number: string): string =>
  number.replace(
    /^(-?)(\d)(?:\.(\d+))?e-(\d+)$/,
    (_, sign, first, rest = '', exponent) => `${sign}0.${'0'.repeat(Number(exponent) - 1)}${first}${rest}`,
  )

/** Above this a double may lose the cents: 999999999999999.01 becomes 999999999999999. */
const MAX_WHOLE = 1e14

/** Whether parsing may have rounded a number: JSON numbers become doubles, which hold 15 digits. */
const mayBeRounded = (number: number): boolean =>
  Number.isInteger(number) ? Math.abs(number) >= MAX_WHOLE : digitsOf(number) > 15

const digitsOf = (number: number): number =>
  String(number).replace(/e.*/, '').replace(/\D/g, '').replace(/^0+/, '').length
