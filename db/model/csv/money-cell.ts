import { isCurrency } from '../records/values.ts'
import { CellProblem } from './read-cell.ts'

/** Signs of one currency. */
const SIGNS: Record<string, string> = {
  '€': 'EUR',
  '£': 'GBP',
  us$: 'USD',
  ca$: 'CAD',
  c$: 'CAD',
  a$: 'AUD',
  au$: 'AUD',
  nz$: 'NZD',
  hk$: 'HKD',
  s$: 'SGD',
  mx$: 'MXN',
  r$: 'BRL',
  '₹': 'INR',
  '₽': 'RUB',
  '₺': 'TRY',
  '₩': 'KRW',
  '₪': 'ILS',
  '₫': 'VND',
  '₴': 'UAH',
  '₦': 'NGN',
  '₱': 'PHP',
  '฿': 'THB',
  zł: 'PLN',
  kč: 'CZK',
  ft: 'HUF',
  lei: 'RON',
  fr: 'CHF',
  sfr: 'CHF',
  元: 'CNY',
  円: 'JPY',
}

/**
 * Signs of several currencies, by their names: the organization's own if it is one of them, else the import says which.
 */
export const SHARED_SIGNS = {
  dollar: ['USD', 'CAD', 'AUD', 'NZD', 'SGD', 'HKD', 'MXN', 'ARS', 'CLP', 'COP', 'TWD'],
  yen: ['JPY', 'CNY'],
  krone: ['SEK', 'NOK', 'DKK', 'ISK'],
} as const
export type SharedSign = keyof typeof SHARED_SIGNS

const SHARED = new Map<string, SharedSign>([
  ['$', 'dollar'],
  ['¥', 'yen'],
  ['￥', 'yen'],
  ['kr', 'krone'],
])

/** The currencies of signs that several have. */
export type Currencies = { [sign in SharedSign]?: string | undefined }

/** A longer text is no amount. */
const MAX_CELL = 60

/** The parts of a cell: before its number, the number, and behind. */
const PARTS = /^\(?([^\d(-]*)(.*\d)([^\d)]*)\)?$/s

/**
 * Divides an amount from its sign or code, before or after: `CHF 8'000`, `8.000,00 €`. `own` is the organization's
 * currency. Throws CellProblem for a sign that several currencies have, and for text that names no currency.
 */
export function readMoney(
  text: string,
  currencies: Currencies,
  own: string,
): { amount: string; currency?: string } {
  if (text.length > MAX_CELL) return { amount: text }
  const [, before = '', , behind = ''] = PARTS.exec(text.trim()) ?? []
  const named = [before, behind].map(nameIn).filter((name) => name !== '')
  if (named.length === 0) return { amount: text }
  const codes = new Set(named.map((name) => codeOf(name, currencies, own)))
  if (codes.has(undefined)) return { amount: text }
  if (codes.size > 1) throw new CellProblem(`names two currencies: ${[...codes].join(' and ')}`)
  const amount = named.reduce(
    (rest, name) => rest.replace(new RegExp(`${escaped(name)}\\.?`, 'iu'), ''),
    text,
  )
  return { amount, currency: [...codes][0]! }
}

const nameIn = (part: string) => part.replace(/[\s.,'’+-]/g, '')

const escaped = (text: string) => text.replace(/[$]/g, '\\$&')

function codeOf(name: string, currencies: Currencies, own: string): string | undefined {
  const code = name.toUpperCase()
  if (/^[A-Z]{3}$/.test(code) && isCurrency(code)) return code
  const sign = name.toLowerCase()
  if (Object.hasOwn(SIGNS, sign)) return SIGNS[sign]
  const shared = SHARED.get(sign)
  if (!shared) return undefined
  const chosen = currencies[shared]
  if (chosen) return chosen
  const known: readonly string[] = SHARED_SIGNS[shared]
  if (known.includes(own)) return own
  throw new CellProblem(
    `${sign} may be ${known.slice(0, 3).join(', ')} or another currency: start with "currencies": {"${shared}": "${known[0]}"}`,
  )
}
