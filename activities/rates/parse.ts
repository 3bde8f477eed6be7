import { z } from 'zod'
import { DECIMAL } from '../../workflows/shared/decimal.ts'
import type { RateTable } from '../../workflows/shared/exchange-rates.ts'

/** The rates in a response: the XML of the European Central Bank, or JSON with base, date and rates. */
export const parseRates = (body: unknown): RateTable | undefined =>
  valid(typeof body === 'string' ? fromXml(body) : fromJson(body))

/** The rates of the first of several days, which is the newest. */
function fromXml(text: string): RateTable | undefined {
  const [, , date = '', day = ''] = /<Cube\s+time=(['"])([\d-]{10})\1\s*>([\s\S]*)/.exec(text) ?? []
  const [ofDay = ''] = day.split(/<Cube\s+time=/, 1)
  const found = ofDay.matchAll(/<Cube\s+currency=(['"])([A-Z]{3})\1\s+rate=(['"])([\d.]{1,30})\3/g)
  const rates = Object.fromEntries([...found].map(([, , code, , rate]) => [code!, rate!]))
  return date === '' ? undefined : { base: 'EUR', date, rates }
}

const document = z.object({
  base: z.string().regex(/^[A-Z]{3}$/),
  date: z.string(),
  rates: z.record(z.string(), z.union([z.number(), z.string()])),
})

function fromJson(body: unknown): RateTable | undefined {
  const parsed = document.safeParse(body)
  if (!parsed.success) return undefined
  const { base, date, rates } = parsed.data
  const entries = Object.entries(rates).map(([code, rate]) => [code, String(rate)])
  return { base, date: date.slice(0, 10), rates: Object.fromEntries(entries) }
}

/** The table without invalid rates. */
function valid(table: RateTable | undefined): RateTable | undefined {
  if (!table || Number.isNaN(Date.parse(table.date))) return undefined
  const rates = Object.entries(table.rates).filter(
    ([code, rate]) => /^[A-Z]{3}$/.test(code) && DECIMAL.test(rate) && Number(rate) > 0,
  )
  return rates.length === 0 ? undefined : { ...table, rates: Object.fromEntries(rates) }
}
