import {
  type CountryCode,
  getCountries,
  isSupportedCountry,
  type PhoneNumber,
  parsePhoneNumberFromString,
} from 'libphonenumber-js'

/** A valid phone number; undefined for any other text. `country` is that of a number without a country code. */
export function parsePhone(text: string, country?: string): PhoneNumber | undefined {
  const parsed = parsePhoneNumberFromString(text, country as CountryCode | undefined)
  return parsed?.isValid() ? parsed : undefined
}

/** Whether phone numbers of a country are known, by its two-letter code. */
export const isPhoneCountry = (code: string): boolean => isSupportedCountry(code)

/** The two-letter codes of the countries whose phone numbers are known. */
export const phoneCountries = (): string[] => getCountries()
