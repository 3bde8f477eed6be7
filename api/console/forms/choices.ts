import { currencyCodes } from '../../../db/model/records/values.ts'
import { phoneCountries } from '../../../workflows/shared/phone.ts'

/** An option of a select: what is sent, and what people read. */
export interface Choice {
  id: string
  name: string
}

const named = (codes: readonly string[], type: 'currency' | 'region', withCode: boolean): Choice[] => {
  const names = new Intl.DisplayNames('en', { type })
  return codes
    .map((id) => {
      const name = names.of(id) ?? id
      return { id, name: withCode && name !== id ? `${id} ${name}` : name }
    })
    .sort((a, b) => a.name.localeCompare(b.name, 'en'))
}

/** The currencies of amounts: `CHF Swiss Franc`. */
export const CURRENCY_CHOICES: readonly Choice[] = named(currencyCodes(), 'currency', true)

/** The countries of phone numbers. */
export const COUNTRY_CHOICES: readonly Choice[] = named(phoneCountries(), 'region', false)

/** The IANA time zones that the platform knows. */
export const TIMEZONE_CHOICES: readonly Choice[] = [
  ...new Set(['UTC', ...Intl.supportedValuesOf('timeZone')]),
].map((id) => ({ id, name: id }))
