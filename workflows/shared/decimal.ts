/** Exact decimal numbers, for money: `digits` / 10 ** `places`. */
export interface Decimal {
  digits: bigint
  places: number
}

const WRITTEN = /^\s*([+-]?)(\d{1,300})(?:\.(\d{1,300}))?(?:e([+-]?\d{1,3}))?\s*$/i

/** A number, or a text such as `-12.50`; undefined if it is neither. */
export function parseDecimal(value: unknown): Decimal | undefined {
  if (typeof value !== 'number' && typeof value !== 'string') return undefined
  const [, sign, whole, fraction = '', exponent = '0'] = WRITTEN.exec(String(value)) ?? []
  if (whole === undefined) return undefined
  const digits = BigInt(`${whole}${fraction}`) * (sign === '-' ? -1n : 1n)
  const places = fraction.length - Number(exponent)
  return places >= 0 ? { digits, places } : { digits: digits * 10n ** BigInt(-places), places: 0 }
}

export function add(a: Decimal, b: Decimal): Decimal {
  const places = Math.max(a.places, b.places)
  return { digits: scaled(a, places) + scaled(b, places), places }
}

/** Rounded to `places`, half away from zero. */
export function divide({ digits, places }: Decimal, count: number, to: number): Decimal {
  const dividend = to >= places ? digits * 10n ** BigInt(to - places) : digits
  const divisor = BigInt(count) * (to >= places ? 1n : 10n ** BigInt(places - to))
  const half = divisor / 2n
  return { digits: (dividend + (dividend < 0n ? -half : half)) / divisor, places: to }
}

/** Negative, zero or positive. */
export function order(a: Decimal, b: Decimal): number {
  const places = Math.max(a.places, b.places)
  const [left, right] = [scaled(a, places), scaled(b, places)]
  return left < right ? -1 : left > right ? 1 : 0
}

/** `-12.50`, with all places. */
export function decimalText({ digits, places }: Decimal): string {
  const text = (digits < 0n ? -digits : digits).toString().padStart(places + 1, '0')
  const point = text.length - places
  return `${digits < 0n ? '-' : ''}${text.slice(0, point)}${places > 0 ? `.${text.slice(point)}` : ''}`
}

const scaled = ({ digits, places }: Decimal, to: number) => digits * 10n ** BigInt(to - places)
