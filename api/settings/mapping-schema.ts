import { isSupportedCountry } from 'libphonenumber-js'
import { RE2JS } from 're2js'
import { z } from 'zod'

const path = z.string().min(1).max(200).meta({
  description:
    'A path into the payload: `contact.emails[0]`. Of XML it begins below the root; an element’s attributes are below it: `email.type`.',
})

const pattern = z
  .string()
  .min(1)
  .max(500)
  .refine((text) => {
    try {
      RE2JS.compile(text)
      return true
    } catch {
      return false
    }
  }, 'is not a regular expression of RE2')
  .meta({ description: 'A regular expression, in the syntax of RE2.' })

const transform = z.discriminatedUnion('type', [
  z.strictObject({ type: z.enum(['uppercase', 'lowercase', 'trim', 'remove_special']) }),
  z.strictObject({
    type: z.literal('format_phone'),
    country: z
      .string()
      .refine(isSupportedCountry, 'is not a country of two letters, such as CH')
      .optional()
      .meta({ description: 'For numbers without a country’s prefix.' }),
  }),
  z.strictObject({ type: z.literal('parse_date'), format: z.enum(['ymd', 'dmy', 'mdy', 'unix']) }),
  z.strictObject({
    type: z.literal('convert_currency'),
    rate: z.string().regex(/^\d{1,9}(\.\d{1,10})?$/, 'must be a decimal, such as 1.08'),
  }),
  z.strictObject({ type: z.literal('split_name'), part: z.enum(['first_name', 'last_name']) }),
  z.strictObject({
    type: z.literal('combine'),
    with: z.array(path).min(1).max(10),
    separator: z.string().max(20).default(' '),
  }),
  z.strictObject({ type: z.literal('replace'), pattern, by: z.string().max(500).default('') }),
])

const condition = z.discriminatedUnion('is', [
  z.strictObject({ path, is: z.enum(['present', 'absent']) }),
  z.strictObject({ path, is: z.enum(['equal', 'not_equal']), to: z.string().max(500) }),
  z.strictObject({ path, is: z.literal('matching'), to: pattern }),
])

/** How a webhook's payload becomes fields. Whether its target has them is for `isTarget` to say. */
export const fieldMapping = z.discriminatedUnion('mode', [
  z.strictObject({ mode: z.literal('automatic') }),
  z.strictObject({
    mode: z.literal('manual'),
    rules: z
      .array(
        z.strictObject({
          from: path,
          to: z.string().max(100).meta({
            description:
              'A field of the target, `address.city`, `tags`, `custom_fields.tier`, `company_name` (the company is found or made) or `note_content` (a note is added).',
          }),
          transforms: z.array(transform).max(10).default([]),
          default: z.string().max(1_000).optional(),
          skip_if: pattern.optional(),
          when: condition.optional(),
        }),
      )
      .min(1)
      .max(100),
  }),
])
