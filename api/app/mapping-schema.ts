import { z } from 'zod'
import { filtersProblem } from '../../db/model/incoming/mapping/liquid.ts'
import { programSize, programsOf } from '../../db/model/incoming/mapping/patterns.ts'
import { DATE_FORMATS } from '../../db/model/incoming/types.ts'
import { PATTERN } from '../../workflows/shared/limits.ts'
import { isUnsupportedPath } from '../../workflows/shared/paths.ts'
import { isPhoneCountry } from '../../workflows/shared/phone.ts'

export const path = z
  .string()
  .min(1)
  .max(200)
  .refine(
    (text) => !isUnsupportedPath(text),
    'must name one value, by members and indexes: contact.emails[0], form["1.3"] or $.contact.emails[0]',
  )
  .meta({
    description:
      'A path into the payload: `contact.emails[0]`, also as JSONPath: `$.contact.emails[0]`. A name with dots or brackets stands in quotes: `form["1.3"]`. Paths into XML begin below the root element; attributes are like child elements: `email.type`.',
  })

const pattern = z
  .string()
  .min(1)
  .max(PATTERN.characters)
  .refine((text) => programSize(text) !== undefined, 'is not an RE2 regular expression')
  .refine(
    (text) => (programSize(text) ?? 0) <= PATTERN.program,
    `is too large as a program of RE2 (${PATTERN.program} instructions at most): write shorter repetitions than {1,1000}, or fewer`,
  )
  .meta({
    description: `A regular expression in RE2 syntax. Reads the first ${PATTERN.text.toLocaleString('en')} characters of a value.`,
  })

const transform = z
  .discriminatedUnion('type', [
    z
      .strictObject({ type: z.enum(['uppercase', 'lowercase', 'trim', 'remove_special']) })
      .meta({ id: 'TextTransform' }),
    z
      .strictObject({
        type: z.literal('format_phone'),
        country: z
          .string()
          .refine(isPhoneCountry, 'is not a two-letter country code, such as CH')
          .optional()
          .meta({ description: 'The country of numbers without a country code.' }),
      })
      .meta({ id: 'PhoneTransform' }),
    z
      .strictObject({ type: z.literal('parse_date'), format: z.enum(DATE_FORMATS) })
      .meta({ id: 'DateTransform' }),
    z
      .strictObject({
        type: z.literal('convert_currency'),
        rate: z.string().regex(/^\d{1,9}(\.\d{1,10})?$/, 'must be a decimal, such as 1.08'),
      })
      .meta({ id: 'CurrencyTransform' }),
    z
      .strictObject({ type: z.literal('split_name'), part: z.enum(['first_name', 'last_name']) })
      .meta({ id: 'SplitNameTransform' }),
    z
      .strictObject({
        type: z.literal('combine'),
        with: z.array(path).min(1).max(10),
        separator: z.string().max(20).default(' '),
      })
      .meta({ id: 'CombineTransform' }),
    z
      .strictObject({
        type: z.literal('liquid'),
        filters: z
          .string()
          .min(1)
          .max(500)
          .superRefine((filters, context) => {
            const message = filtersProblem(filters)
            if (message) context.addIssue({ code: 'custom', message })
          })
          .meta({
            description:
              'Liquid filters as in workflows, applied to the value: `remove: "#" | truncate: 20`. Arguments can read `value` and `payload`. A value that they cannot convert stays as it is.',
          }),
      })
      .meta({ id: 'LiquidTransform' }),
    z
      .strictObject({ type: z.literal('replace'), pattern, by: z.string().max(500).default('') })
      .meta({ id: 'ReplaceTransform' }),
  ])
  .meta({ id: 'Transform' })

export const condition = z
  .discriminatedUnion('is', [
    z.strictObject({ path, is: z.enum(['present', 'absent']) }).meta({ id: 'PresenceCondition' }),
    z
      .strictObject({ path, is: z.enum(['equal', 'not_equal']), to: z.string().max(500) })
      .meta({ id: 'EqualityCondition' }),
    z.strictObject({ path, is: z.literal('matching'), to: pattern }).meta({ id: 'PatternCondition' }),
  ])
  .meta({ id: 'MappingCondition' })

export const mappingRule = z
  .strictObject({
    from: path,
    to: z.string().max(100).meta({
      description:
        'A field of the target, `address.city`, `tags`, `custom_fields.tier`, `company_name` (finds or creates the company) or `note_content` (adds a note).',
    }),
    transforms: z.array(transform).max(10).default([]),
    default: z.string().max(1_000).optional(),
    skip_if: pattern.optional(),
    when: condition.optional(),
  })
  .meta({ id: 'MappingRule' })

/** Schema of a field mapping. `isTarget` tells whether the target entity has a field. */
export const fieldMapping = z
  .discriminatedUnion('mode', [
    z.strictObject({ mode: z.literal('automatic') }).meta({ id: 'AutomaticMapping' }),
    z
      .strictObject({
        mode: z.literal('manual'),
        rules: z
          .array(mappingRule)
          .min(1)
          .max(100)
          .refine(
            (rules) => programsOf(rules) <= PATTERN.programs,
            `have patterns that are too large together (${PATTERN.programs} instructions of RE2 at most): write shorter repetitions, or fewer patterns`,
          ),
      })
      .meta({ id: 'ManualMapping' }),
  ])
  .meta({ id: 'FieldMapping' })
