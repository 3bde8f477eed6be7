import { z } from 'zod'
import { isPhoneCountry, parsePhone } from '../shared/phone.ts'
import { defineNode } from './define.ts'

const FORMATS = {
  e164: 'E.164',
  international: 'INTERNATIONAL',
  national: 'NATIONAL',
  uri: 'RFC3966',
} as const
const formats = Object.keys(FORMATS) as (keyof typeof FORMATS)[]

export const formatPhone = defineNode({
  type: 'format_phone',
  engine: 4,
  category: 'data',
  title: 'Format phone number',
  alsoCalled: ['phone', 'phone_number', 'parse_phone', 'normalize_phone', 'validate_phone', 'phone_format'],
  description:
    'Writes a phone number in one form, and tells whether it is valid and of which country. A number that is not valid stays as it is, with `valid: false`.',
  effect: 'pure',
  config: z.strictObject({
    phone: z
      .string()
      .max(250)
      .nullable()
      .describe('The number as somebody wrote it; an empty one is not valid.'),
    country: z
      .string()
      .refine(isPhoneCountry, 'must be a two-letter country code, such as CH')
      .optional()
      .describe(
        'The country of a number without a country code: `CH`. Without it such a number is not valid.',
      ),
    format: z
      .enum(formats)
      .default('e164')
      .describe(
        '`e164`: +41446681800, as records hold it, without an extension; `international`: +41 44 668 18 00; `national`: 044 668 18 00; `uri`: tel:+41446681800.',
      ),
  }),
  output: z.strictObject({
    phone: z.string().nullable().describe('The number in the chosen form; as it was if it is not valid.'),
    valid: z.boolean(),
    country: z.string().nullable().describe('Its country, such as `CH`; null if unknown.'),
    calling_code: z.string().nullable().describe('Its country code, such as `41`.'),
    extension: z.string().nullable(),
  }),
  handles: () => [{ name: 'success', description: 'The number was read; see `valid`.' }],
  outputOnly: true,
  example: {
    config: { phone: '{{ trigger.record.phone }}', country: 'CH' },
    inputs: { trigger: { record: { phone: '044 668 18 00' } } },
    output: { phone: '+41446681800', valid: true, country: 'CH', calling_code: '41', extension: null },
  },
  run({ phone, country, format }) {
    const parsed = phone === null ? undefined : parsePhone(phone, country)
    if (!parsed)
      return { output: { phone, valid: false, country: null, calling_code: null, extension: null } }
    return {
      output: {
        phone: parsed.format(FORMATS[format]),
        valid: true,
        country: parsed.country ?? null,
        calling_code: parsed.countryCallingCode,
        extension: parsed.ext ?? null,
      },
    }
  },
})
