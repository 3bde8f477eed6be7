import { z } from 'zod'
import { parseDuration } from '../language/duration.ts'
import { NodeError } from '../language/node-error.ts'
import { DECIMAL, decimalText, divide, multiply, parseDecimal, ROUNDINGS } from '../shared/decimal.ts'
import {
  crossRate,
  FIXED_RATES,
  perEuro,
  placesOf,
  plainRate,
  type Rate,
  type RateTable,
  ratedCurrencies,
} from '../shared/exchange-rates.ts'
import { defineNode, type NodeContext } from './define.ts'
import { duration } from './fields.ts'

const RATE_DECIMALS = 10

/** The attempt from which a source that cannot be read is replaced by the table that the service ships: the last one. */
const SHIPPED_FROM = 3

const decimal = z.union([
  z.string().regex(DECIMAL, 'must be a decimal such as 1250.00'),
  z.number().refine((value) => DECIMAL.test(String(value)), 'must be a decimal with at most 12 decimals'),
])

const currency = z.string().regex(/^[A-Z]{3}$/, 'must be an ISO 4217 code in upper case, such as USD')

export const convertCurrency = defineNode({
  type: 'convert_currency',
  engine: 1,
  category: 'data',
  title: 'Convert currency',
  alsoCalled: ['currency', 'exchange_rate', 'currency_converter', 'convert_money', 'forex'],
  description:
    'Converts an amount of money, exactly, and rounds it once, to the decimals of the currency. The rates are the daily ones of the European Central Bank, or of another source that the operator has configured, unless `rate` is given. If the source cannot be read at the third attempt, the node takes the older rates that the service ships: `rates_date` and `rates_source` say so, and `max_age` refuses them.',
  effect: ({ rate }) => (rate === undefined ? 'external' : 'pure'),
  effects: ['rates'],
  outputOnly: true,
  config: z.strictObject({
    amount: decimal.describe('A decimal: `"{{ trigger.record.amount }}"`.'),
    from: currency.describe('The currency of the amount.'),
    to: currency.describe('The currency of the result.'),
    rate: decimal
      .refine((rate) => Number(rate) > 0, 'must be greater than 0')
      .optional()
      .describe('The units of `to` for one of `from`. Default: from the source of the service.'),
    decimals: z.int().min(0).max(8).optional().describe('Default: the decimals of the currency, 2 for most.'),
    rounding: z.enum(ROUNDINGS).default('half_up').describe('`up` is away from zero, `down` towards zero.'),
    max_age: duration('1d', '365d')
      .optional()
      .describe('The node fails if the rates are older: `5d`. They have the date of a working day.'),
  }),
  output: z.strictObject({
    amount: z.string().describe('The converted amount, as a decimal.'),
    currency: z.string(),
    rate: z.string().describe(`The units of \`to\` for one of \`from\`, with ${RATE_DECIMALS} decimals.`),
    rates_date: z.string().nullable().describe('The day of the rates; null for a fixed rate or your own.'),
    rates_source: z
      .enum(['service', 'shipped'])
      .nullable()
      .describe('`shipped`: the source of the service could not be read.'),
  }),
  handles: () => [{ name: 'success', description: 'The amount is converted.' }],
  retry: { max_attempts: 3 },
  example: {
    config: { amount: '{{ inputs.amount }}', from: 'USD', to: 'EUR' },
    inputs: { inputs: { amount: '1250.00' } },
    output: {
      amount: '1041.67',
      currency: 'EUR',
      rate: '0.8333333333',
      rates_date: '2026-01-05',
      rates_source: 'service',
    },
  },
  async run({ amount, from, to, rate: own, decimals, rounding, max_age }, ctx) {
    const isFixed = [from, to].every((code) => Object.hasOwn(FIXED_RATES, code))
    const table = own !== undefined || from === to || isFixed ? undefined : await latest(ctx)
    if (table && max_age !== undefined) requireFresh(table, max_age, ctx.now)
    const rate =
      own !== undefined
        ? plainRate(own)
        : from === to
          ? plainRate(1)
          : crossRate(euroRate(to, table), euroRate(from, table))
    const converted = multiply(parseDecimal(amount)!, rate.above)
    return {
      output: {
        amount: decimalText(divide(converted, rate.below, decimals ?? placesOf(to), rounding)),
        currency: to,
        rate: decimalText(divide(rate.above, rate.below, RATE_DECIMALS, 'half_even')),
        rates_date: table?.date ?? null,
        rates_source: table ? (table.shipped ? 'shipped' : 'service') : null,
      },
    }
  },
})

async function latest({ rates, node }: NodeContext<'rates'>): Promise<RateTable> {
  try {
    return await rates.latest()
  } catch (error) {
    const isUnavailable = error instanceof NodeError && error.code === 'rates_unavailable'
    if (!isUnavailable || node.attempt < SHIPPED_FROM) throw error
    return rates.shipped()
  }
}

/** A currency's units for one euro. Throws NodeError `unknown_currency`. */
function euroRate(code: string, table: RateTable | undefined): Rate {
  const rate = perEuro(code, table)
  if (rate) return rate
  throw new NodeError(
    'unknown_currency',
    `There is no rate of ${code}: there are ${ratedCurrencies(table).join(', ')}. Or give a \`rate\`.`,
  )
}

function requireFresh({ date }: RateTable, max_age: string, now: Date): void {
  if (Date.parse(date) >= now.getTime() - parseDuration(max_age)!) return
  throw new NodeError('rates_too_old', `The rates are of ${date}, which is more than ${max_age} ago.`, {
    retryable: true,
  })
}
