/** Exact decimal numbers, as fractions of integers. */
export interface Fraction {
  above: bigint
  /** Greater than 0. */
  below: bigint
}

/** A decimal with at most as many digits as money and rates have. */
export const DECIMAL = /^-?\d{1,20}(\.\d{1,12})?$/

/** The number that a text like `-12.50` stands for. The text must match DECIMAL. */
export function fraction(text: string): Fraction {
  const [whole = '', decimals = ''] = text.split('.')
  return { above: BigInt(whole + decimals), below: 10n ** BigInt(decimals.length) }
}

export const times = (a: Fraction, b: Fraction): Fraction => ({
  above: a.above * b.above,
  below: a.below * b.below,
})

/** `b` must be greater than 0. */
export const over = (a: Fraction, b: Fraction): Fraction => times(a, { above: b.below, below: b.above })

export const ROUNDINGS = ['half_up', 'half_even', 'up', 'down'] as const
export type Rounding = (typeof ROUNDINGS)[number]

/**
 * A number with `decimals` places. `up` is away from zero, `down` towards zero; halves round away from it, or to even.
 */
export function rounded({ above, below }: Fraction, decimals: number, rounding: Rounding): string {
  const size = (above < 0n ? -above : above) * 10n ** BigInt(decimals)
  const [floor, rest] = [size / below, size % below]
  const half = rest * 2n
  const isUp = {
    half_up: half >= below,
    half_even: half > below || (half === below && floor % 2n === 1n),
    up: rest > 0n,
    down: false,
  }[rounding]
  const digits = String(isUp ? floor + 1n : floor).padStart(decimals + 1, '0')
  const text = decimals === 0 ? digits : `${digits.slice(0, -decimals)}.${digits.slice(-decimals)}`
  return above < 0n && /[1-9]/.test(text) ? `-${text}` : text
}
