import assert from 'node:assert/strict'
import fc from 'fast-check'
import {
  add,
  type Decimal,
  decimalText,
  divide,
  integer,
  multiply,
  parseDecimal,
  ROUNDINGS,
} from '../../../workflows/shared/decimal.ts'

const decimal = (text: string) => parseDecimal(text)!

describe('decimals', () => {
  it('keep their places in sums, and add them in products', () => {
    assert.equal(decimalText(add(decimal('1.50'), decimal('2.5'))), '4.00')
    assert.equal(decimalText(multiply(decimal('-1.50'), decimal('0.02'))), '-0.0300')
  })

  it('are read from numbers and texts, with exponents', () => {
    const written: [unknown, string | undefined][] = [
      [' +12.50 ', '12.50'],
      ['-0.05', '-0.05'],
      ['1.5e3', '1500'],
      [1e-7, '0.0000001'],
      ['1e9999', undefined],
      ['1,5', undefined],
      [Number.NaN, undefined],
      [null, undefined],
    ]
    for (const [value, text] of written) {
      const parsed = parseDecimal(value)
      assert.equal(parsed && decimalText(parsed), text, String(value))
    }
  })

  it('are rounded in each way', () => {
    const rounded = (text: string) =>
      ROUNDINGS.map((rounding) => decimalText(divide(decimal(text), integer(1), 0, rounding)))
    assert.deepEqual(ROUNDINGS, ['half_up', 'half_even', 'up', 'down'])
    assert.deepEqual(rounded('2.5'), ['3', '2', '3', '2'])
    assert.deepEqual(rounded('-3.5'), ['-4', '-4', '-4', '-3'])
    assert.deepEqual(rounded('0.49'), ['0', '0', '1', '0'])
    assert.deepEqual(rounded('-0.4'), ['0', '0', '-1', '0'])
    assert.deepEqual(rounded('-2.51'), ['-3', '-3', '-3', '-2'])
    assert.deepEqual(rounded('7'), ['7', '7', '7', '7'])
  })

  it('are divided as their rounding says, whatever they are', () => {
    const number = fc.record({ digits: fc.bigInt(-(10n ** 25n), 10n ** 25n), places: fc.nat(12) })
    const divisor = fc.record({ digits: fc.bigInt(1n, 10n ** 25n), places: fc.nat(12) })
    const tenTo = (places: number) => 10n ** BigInt(places)
    fc.assert(
      fc.property(
        number,
        divisor,
        fc.nat(10),
        fc.constantFrom(...ROUNDINGS),
        (a: Decimal, by: Decimal, places, rounding) => {
          const { digits } = divide(a, by, places, rounding)
          // Both are multiplied by the same power of ten: the exact quotient is `exact` / `unit`.
          const unit = by.digits * tenTo(a.places)
          const exact = a.digits * tenTo(by.places + places)
          const error = digits * unit - exact
          const isAway = exact < 0n ? error <= 0n : error >= 0n
          const size = error < 0n ? -error : error
          if (rounding === 'up') assert.ok(isAway && size < unit)
          else if (rounding === 'down') assert.ok((!isAway || size === 0n) && size < unit)
          else assert.ok(size * 2n <= unit)
          if (size * 2n === unit && rounding === 'half_up') assert.ok(isAway)
          if (size * 2n === unit && rounding === 'half_even') assert.equal(digits % 2n, 0n)
        },
      ),
    )
  })
})
