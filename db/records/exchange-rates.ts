import { localParts } from '../../workflows/language/time.ts'
import { recordChange } from '../access/audit-log.ts'
import { getOrganization } from '../access/organization.ts'
import { invalid } from '../model/errors.ts'
import { type ExchangeRate, plainText, type Rates, shippedRates } from '../model/records/exchange-rates.ts'
import { currencyCodes } from '../model/records/values.ts'
import type { Tenant } from '../postgres/tenancy.ts'

/**
 * The exchange rates of the organization, each with the day from which it counts; without one, the rate that the service
 * ships. They are units of the organization's currency: after a change of that, only rates that were set for it count.
 */

/**
 * The rates that count on a day, by default today, in the order of their currencies. `only`: of these, by default of all.
 * `base`: the currency of the organization.
 */
export async function listRates(
  tx: Tenant,
  { day, only }: { day?: string | undefined; only?: readonly string[] | undefined } = {},
): Promise<{ base: string; day: string; rates: ExchangeRate[] }> {
  const { currency: base, timezone } = await getOrganization(tx)
  const on = day ?? localParts(new Date(), timezone).date
  // One step in the index for each currency, however many days have a rate.
  const { rows } = await tx.trx.raw<{ rows: { currency: string; rate: string; valid_from: string }[] }>(
    `select currency, rate::text, valid_from::text from unnest(?::text[]) as named (code)
     cross join lateral (
       select currency, rate, valid_from from exchange_rates
       where organization_id = ? and base = ? and currency = code and valid_from <= ?::date
       order by valid_from desc limit 1
     ) newest`,
    [only ?? currencyCodes(), tx.organizationId, base, on] as never,
  )
  const own = rows.map(
    ({ currency, rate, valid_from }): ExchangeRate => ({
      currency,
      base,
      rate: plainText(rate),
      valid_from,
      source: 'own',
    }),
  )
  const others = shippedRates(base).filter(
    ({ currency }) => (only?.includes(currency) ?? true) && own.every((one) => one.currency !== currency),
  )
  const rates = [...own, ...others].sort((a, b) => (a.currency < b.currency ? -1 : 1))
  return { base, day: on, rates }
}

/** The rates of today, of all currencies or `only` of these. */
export async function readRates(tx: Tenant, only?: readonly string[]): Promise<Rates> {
  const { base, rates } = await listRates(tx, { only })
  return { base, rates: Object.fromEntries(rates.map(({ currency, rate }) => [currency, rate])) }
}

/**
 * Sets rates from a day on, by default today; null takes one of that day away. @returns those of that day. Throws
 * `validation_error` for a rate of the organization's own currency.
 */
export async function setRates(
  tx: Tenant,
  rates: Readonly<Record<string, string | null>>,
  day?: string,
): ReturnType<typeof listRates> {
  const { base, day: from } = await listRates(tx, { day, only: [] })
  if (Object.hasOwn(rates, base)) throw ownCurrency(base)
  // In one order, so that two writers do not wait for each other.
  const given = Object.entries(rates)
    .map(([currency, rate]) => ({ currency, rate }))
    .sort((a, b) => (a.currency < b.currency ? -1 : 1))
  await tx.trx.raw(
    `insert into exchange_rates (organization_id, base, currency, valid_from, rate)
     select ?::uuid, ?, currency, ?::date, rate from jsonb_to_recordset(?) as given (currency text, rate numeric)
     where rate is not null order by currency
     on conflict (organization_id, base, currency, valid_from) do update set rate = excluded.rate`,
    [tx.organizationId, base, from, JSON.stringify(given)],
  )
  await tx
    .trx('exchange_rates')
    .where({ organization_id: tx.organizationId, base, valid_from: from })
    .whereIn(
      'currency',
      given.filter(({ rate }) => rate === null).map(({ currency }) => currency),
    )
    .delete()
  await recordChange(tx, 'organization.exchange_rates_changed', {
    id: tx.organizationId,
    name: from,
    details: { fields: given.map(({ currency }) => currency) },
  })
  return listRates(tx, { day: from })
}

const ownCurrency = (base: string) =>
  invalid([
    {
      loc: ['body', 'rates', base],
      msg: 'is the currency of the organization, to which the rates are',
      type: 'invalid_value',
      hint: `give the units of ${base} for one of another currency`,
    },
  ])
