import { z } from 'zod'
import { isCurrency } from '../../db/model/records/values.ts'
import { listRates, setRates } from '../../db/records/exchange-rates.ts'
import { listEnvelope, wholeList } from '../http/list-query.ts'
import { type Route, route } from '../http/route.ts'

/** The rates of one request at most: there are some 160 currencies. */
const MAX_RATES = 200

const codeOf = (name: string): string => name.trim().toUpperCase()

const code = z.string().refine((name) => isCurrency(codeOf(name)), 'is not an ISO 4217 currency')

const RATE = /^\d{1,12}(\.\d{1,12})?$/

const rate = z
  .union([z.string(), z.number()])
  .transform((value) => String(value).trim())
  .refine(
    (value) => RATE.test(value) && Number(value) > 0,
    'must be a decimal above 0 such as "1.0825", with at most 12 digits before the point and 12 after it',
  )

const day = z.iso
  .date('must be a valid date such as 2026-01-31')
  .refine((value) => value >= '1900-01-01' && value < '2200-01-01', 'must be in the years 1900 to 2199')

const exchangeRate = z
  .object({
    object: z.literal('exchange_rate'),
    currency: z.string(),
    base: z.string().describe('The currency of the organization.'),
    rate: z.string().describe('The units of `base` for one of `currency`.'),
    valid_from: z.iso
      .date()
      .nullable()
      .describe(
        'The day from which it counts, or of the shipped table, which counts before it too; null: fixed.',
      ),
    source: z
      .enum(['own', 'shipped', 'fixed'])
      .describe('`own`: set here; `shipped`: of the table that the service ships; `fixed`: by law.'),
  })
  .meta({ id: 'ExchangeRate' })

const tag = 'Exchange rates'
const path = '/exchange-rates'

/** The rates by which filters, sorts and totals compare amounts of several currencies. */
export const exchangeRateRoutes: Route[] = [
  route({
    method: 'GET',
    path,
    scope: 'deals:read',
    id: 'listExchangeRates',
    tag,
    summary: 'List exchange rates',
    description:
      'Lists the rate of each currency that counts on a day: your own, or else the one that ships.',
    query: z.strictObject({ day: day.optional().describe('Default: today.') }),
    response: { status: 200, schema: listEnvelope(exchangeRate) },
    handler: async ({ query, tenant }) => present(await tenant((tx) => listRates(tx, { day: query.day }))),
  }),
  route({
    method: 'PUT',
    path,
    scope: 'deals:write',
    id: 'setExchangeRates',
    grows: true,
    tag,
    summary: 'Set exchange rates',
    description:
      'Sets the units of the organization’s currency for one of each that is named, from a day on; others stay. null takes the rate of that day away.',
    body: z
      .strictObject({
        valid_from: day.optional().describe('Default: today.'),
        rates: z
          .record(code, rate.nullable())
          .refine((rates) => Object.keys(rates).length > 0, 'must name a currency')
          .refine((rates) => Object.keys(rates).length <= MAX_RATES, `must be at most ${MAX_RATES}`)
          .superRefine((rates, context) => {
            const names = Object.keys(rates)
            const others = names.filter(
              (name, place) => names.findIndex((one) => codeOf(one) === codeOf(name)) < place,
            )
            for (const name of others)
              context.addIssue({ code: 'custom', path: [name], message: `${codeOf(name)} is named twice` })
          })
          .transform((rates) =>
            Object.fromEntries(Object.entries(rates).map(([name, one]) => [codeOf(name), one])),
          ),
      })
      .meta({ id: 'ExchangeRateUpdate' }),
    response: { status: 200, schema: listEnvelope(exchangeRate) },
    example: { valid_from: '2026-01-01', rates: { AUD: '0.66', GBP: '1.27' } },
    handler: async ({ body, tenant }) =>
      present(await tenant((tx) => setRates(tx, body.rates, body.valid_from))),
  }),
]

const present = ({ rates }: Awaited<ReturnType<typeof listRates>>) =>
  wholeList(rates.map((one) => ({ object: 'exchange_rate' as const, ...one })))
