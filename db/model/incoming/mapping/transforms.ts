import { RE2JS } from 're2js'
import { parseDay } from '../../../../workflows/language/time.ts'
import { splitName } from '../../records/split-name.ts'
import { toE164 } from '../../records/values.ts'
import type { DateFormat, Transform } from '../types.ts'
import { filtered } from './liquid.ts'
import { textAt } from './path.ts'
import { compiled, readable } from './patterns.ts'

/** More than any field accepts. Bounds the growth by replacements and filters. In UTF-16 code units. */
export const MAX_TEXT = 2 * 65_537

/**
 * Applies one transform. Text that it cannot convert is unchanged, so that validation can report it.
 * @param payload the source of the other values of `combine`.
 */
export function transformed(text: string, transform: Transform, payload: unknown): string {
  switch (transform.type) {
    case 'uppercase':
      return text.toUpperCase()
    case 'lowercase':
      return text.toLowerCase()
    case 'trim':
      return text.trim()
    case 'remove_special':
      return text.replace(/[^\p{Letter}\p{Mark}\p{Number}\s]/gu, '')
    case 'format_phone':
      return toE164(text, transform.country)
    case 'parse_date':
      return parseDate(text, transform.format)
    case 'convert_currency':
      return multiply(text, transform.rate)
    case 'split_name':
      return splitName(text)[transform.part] ?? ''
    case 'combine':
      return [text, ...transform.with.map((path) => textAt(payload, path))]
        .filter(Boolean)
        .join(transform.separator)
    case 'liquid':
      return filtered(text, transform.filters, payload, MAX_TEXT)
    case 'replace':
      return replaced(text, transform)
  }
}

/** Replaces in the part of the text that patterns read; what is behind it stays. */
function replaced(text: string, { pattern, by }: Transform & { type: 'replace' }): string {
  const part = readable(text)
  // Quoted, so that `$1` in it is no reference.
  return compiled(pattern).matcher(part).replaceAll(RE2JS.quoteReplacement(by)) + text.slice(part.length)
}

function parseDate(text: string, format: DateFormat): string {
  if (format === 'unix') {
    const date = new Date(Number(text || Number.NaN) * 1000)
    return Number.isNaN(date.getTime()) ? text : date.toISOString()
  }
  return parseDay(text, format) ?? text
}

const DECIMAL = /^(-?)(\d{1,15})(?:\.(\d{1,10}))?$/

/** Exact decimal product, rounded to cents, half away from zero. */
function multiply(amount: string, rate: string): string {
  const [a, b] = [DECIMAL.exec(amount.trim()), DECIMAL.exec(rate)]
  if (!a || !b) return amount
  const decimals = (a[3]?.length ?? 0) + (b[3]?.length ?? 0)
  const product = BigInt(a[2]! + (a[3] ?? '')) * BigInt(b[2]! + (b[3] ?? '')) * 100n
  const unit = 10n ** BigInt(decimals)
  const cents = (product + unit / 2n) / unit
  const sign = a[1] !== b[1] && cents > 0n ? '-' : ''
  return `${sign}${cents / 100n}.${String(cents % 100n).padStart(2, '0')}`
}
