import { z } from 'zod'
import { commonFields } from '../../db/model/records/common-fields.ts'
import { fieldTypes, type Operator } from '../../db/model/records/field-types.ts'
import { operatorsOf, TAG_OPERATORS } from '../../db/model/records/filters.ts'
import type { Field, FieldType, Kind } from '../../db/model/records/kind.ts'
import { RELATIVE_DAY, RELATIVE_DAYS } from '../../db/model/records/relative-days.ts'
import { operandsOf } from '../../workflows/shared/operators.ts'
import { IMPORT_ID, LAST_ACTIVITY, LIST_ID } from '../../workflows/shared/related-filters.ts'

/**
 * The filters of a list for OpenAPI: one parameter per field, with a value (`amount=5`) or an operator in brackets
 * (`amount[gte]=5`). Requests are validated by `parseFilter`.
 */
export function filterShapes(kind: Kind): Record<string, z.ZodType> {
  const common = Object.entries(commonFields).filter(([name]) => operatorsOf(kind, name).length > 0)
  const fields: [string, Pick<Field, 'description' | 'values'> & { type: string }][] = [
    ...Object.entries(kind.fields),
    ...common,
    [IMPORT_ID, { type: 'reference', description: 'An import that created or changed it. Only in filters.' }],
    [LIST_ID, { type: 'reference', description: 'A list that it is in. Only in filters.' }],
    ...(operatorsOf(kind, LAST_ACTIVITY).length > 0 ? [LAST_ACTIVITY_FIELD] : []),
  ]
  const native = Object.fromEntries(
    fields.map(([name, { type, description, values }]) => {
      const { value, operators } = shapes[type as Filtered]
      const single = values ? z.enum(values as [string, ...string[]]) : value
      const alternatives = single instanceof z.ZodUnion ? single.options : [single]
      const shape = operatorsOf(kind, name).includes('eq') ? z.union([...alternatives, operators]) : operators
      return [name, shape.optional().describe(description)]
    }),
  )
  return { ...native, filters: anyFilters }
}

/** Any filter by its full name: custom fields have no documented parameters. */
export const anyFilters = z
  .record(
    z.string().regex(/^([a-z_]+\.){0,3}[a-z][a-z0-9_]{0,62}(\[[a-z_]+\])?$/),
    z.union([z.string(), z.array(z.string())]),
  )
  .optional()
  .describe(
    'Filters by their full names, each sent as a parameter of its own: `custom_fields.tier=gold`, `amount[gte]=1000`, `associations.deals[is_null]=true`, `company.industry=software`. For custom fields, associations and fields of related records, and for clients that cannot send `deepObject` parameters.',
  )
  .meta({ example: { 'custom_fields.tier[in]': 'gold,silver' } })

type Filtered = FieldType | 'tags'

const LAST_ACTIVITY_FIELD: [string, { type: string; description: string }] = [
  LAST_ACTIVITY,
  {
    type: 'datetime',
    description:
      'The time of its last completed activity. Only in filters; needs the scope `activities:read`. `not_since` finds those without any, too.',
  },
]

const text = z.string()
const relativeDay = z.string().regex(RELATIVE_DAY)
/** The type of a single value; default: text. */
const VALUES: Partial<Record<Filtered, z.ZodType>> = {
  id: z.uuid(),
  reference: z.uuid(),
  user: z.union([z.uuid(), z.literal('me')]),
  integer: z.int(),
  money: z.string().meta({ format: 'decimal', examples: ['1250.00'] }),
  decimal: z.string().meta({ format: 'decimal', examples: ['1250.00'] }),
  boolean: z.boolean(),
  date: z.union([z.iso.date(), relativeDay]),
  datetime: z.union([z.iso.datetime({ offset: true }), z.iso.date(), relativeDay]),
}

/** The prefix of the component that describes a type's operators: `MoneyFilter`. Types stored as text share one. */
const NAMES: Partial<Record<Filtered, string>> = {
  integer: 'Integer',
  money: 'Money',
  decimal: 'Money',
  boolean: 'Boolean',
  date: 'Date',
  datetime: 'DateTime',
  enum: 'Enum',
  id: 'Id',
  reference: 'Reference',
  user: 'User',
  tags: 'Tags',
  emails: 'Tags',
  phones: 'Tags',
  address: 'Address',
}

const NOTES: Record<Operator, string> = {
  eq: 'Equal to.',
  ne: 'Not equal to; includes null.',
  gt: 'Greater than.',
  gte: 'Greater than or equal to.',
  lt: 'Less than.',
  lte: 'Less than or equal to.',
  between: 'Between two values, both included: `10,20`.',
  in: 'Equal to one of the values, separated by commas; a value with a comma is enclosed in double quotes.',
  nin: 'Equal to none of the values; includes null.',
  contains: 'Contains the text, in upper or lower case. Accents count; `q` ignores them.',
  starts_with: 'Begins with the text.',
  has: 'Has the item.',
  has_not: 'Does not have the item; includes none at all.',
  not_since: 'Before the time, or never: includes null.',
  is_null: 'Whether the field is empty.',
}

/** The rule for dates in filters of times. */
const WHOLE_DAYS = `A date without a time is the whole day in the time zone of the organization, or in \`time_zone\`: \`lte\`, \`between\` and \`eq\` include all of it; \`gt\` begins after it. Days relative to today: ${RELATIVE_DAYS}.`

/** Operators that take a single value of the field's type. */
const SINGLE: readonly Operator[] = ['eq', 'ne', 'gt', 'gte', 'lt', 'lte', 'not_since']

const components = new Map<string, z.ZodObject>()

const shapes = Object.fromEntries(
  [...Object.entries(fieldTypes), ['tags', { operators: TAG_OPERATORS }] as const].map(
    ([type, { operators }]) => {
      const value = VALUES[type as Filtered] ?? text
      const name = `${NAMES[type as Filtered] ?? 'Text'}Filter`
      const component = components.get(name) ?? operatorsShape(name, operators, value)
      components.set(name, component)
      return [type, { value, operators: component }]
    },
  ),
) as Record<Filtered, { value: z.ZodType; operators: z.ZodObject }>

function operatorsShape(name: string, operators: readonly Operator[], value: z.ZodType): z.ZodObject {
  const members = operators.map((operator) => [operator, operandOf(operator, value).optional()])
  return z
    .strictObject(Object.fromEntries(members))
    .meta({ id: name, ...(name === 'DateTimeFilter' ? { description: WHOLE_DAYS } : {}) })
}

function operandOf(operator: Operator, value: z.ZodType): z.ZodType {
  const operand = operandsOf(operator) === 'boolean' ? z.boolean() : SINGLE.includes(operator) ? value : text
  return operand.describe(NOTES[operator])
}
