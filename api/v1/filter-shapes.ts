import { z } from 'zod'
import { commonFields } from '../../db/records/model/common-fields.ts'
import { fieldTypes, type Operator } from '../../db/records/model/field-types.ts'
import { operatorsOf, TAG_OPERATORS } from '../../db/records/model/filters.ts'
import type { Field, Kind } from '../../db/records/model/kind.ts'
import { operandsOf } from '../../workflows/operators.ts'

/**
 * The filters of a list: a parameter by the name of each field, which takes a value or, in brackets, an operator:
 * `amount=5`, `amount[gte]=5`. To the gateway the brackets are a part of the name, which `parseFilter` takes apart;
 * what has them as members of an object is the OpenAPI document.
 */
export function filterShapes(kind: Kind): Record<string, z.ZodType> {
  const common = Object.entries(commonFields).filter(([name]) => operatorsOf(kind, name).length > 0)
  const fields: [string, Pick<Field, 'description' | 'values'> & { type: string }][] = [
    ...Object.entries(kind.fields),
    ...common,
  ]
  const native = Object.fromEntries(
    fields.map(([name, { type, description, values }]) => {
      // Said, not checked here: choices are read without regard to case.
      const value = values ? z.string().meta({ enum: [...values] }) : z.string()
      const operators = operatorShapes[type]!
      const shape = operatorsOf(kind, name).includes('eq')
        ? z.union([value, z.array(value), operators])
        : refusedLater(operators)
      return [name, shape.optional().describe(`Filter: ${description}`)]
    }),
  )
  return { ...native, custom_fields: customFilters }
}

/**
 * Said, not checked here: of a value without an operator `parseFilter` says what to write instead. Without an argument
 * zod asks for a default to put into the document, which there is none of.
 */
const refusedLater = (shape: z.ZodObject) =>
  shape.catch((given?: { input: unknown }) => given?.input as Record<string, unknown>)

/** Said, not checked here either: no parameter has this name, but each member is one, under the member's own name. */
const customFilters = z
  .unknown()
  .optional()
  .meta({
    type: 'object',
    propertyNames: { pattern: '^custom_fields\\.[a-z][a-z0-9_]{0,62}(\\[[a-z_]+\\])?$' },
    additionalProperties: { type: ['string', 'array'], items: { type: 'string' } },
    description:
      'Filters by custom fields, each a parameter of its own: `custom_fields.tier=gold`, `custom_fields.score[gte]=5`.',
    example: { 'custom_fields.tier[in]': 'gold,silver' },
  })

const OF_VALUE: Partial<Record<Operator, string>> = {
  between: 'Two values, separated by a comma.',
  in: 'Values, separated by commas; one with a comma in it in double quotes.',
  nin: 'Values, separated by commas; null is none of them.',
}

/** Said where times are filtered by. */
export const WHOLE_DAYS =
  'Among times a date alone is the whole day, in UTC: `lte`, `between` and no operator include all of it, `gt` begins after it.'

/** One for each type of field, whose fields share it: `MoneyFilter`. */
const operatorShapes: Record<string, z.ZodObject> = Object.fromEntries(
  [...Object.entries(fieldTypes), ['tags', { operators: TAG_OPERATORS }] as const].map(
    ([type, { operators }]) => [
      type,
      z.strictObject(Object.fromEntries(operators.map((operator) => [operator, operandOf(operator)]))).meta({
        id: `${type[0]!.toUpperCase()}${type.slice(1)}Filter`,
        ...(type === 'datetime' ? { description: WHOLE_DAYS } : {}),
      }),
    ],
  ),
)

function operandOf(operator: Operator): z.ZodType {
  if (operandsOf(operator) === 'boolean') return z.enum(['true', 'false']).optional()
  const note = OF_VALUE[operator]
  return note ? z.string().describe(note).optional() : z.string().optional()
}
