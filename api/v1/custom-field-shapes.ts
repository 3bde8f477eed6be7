import { z } from 'zod'
import type { Issue } from '../../db/model/errors.ts'
import {
  contradictions,
  type DefinitionInput,
  type DefinitionPatch,
} from '../../db/model/records/custom-fields/definition.ts'
import { fieldName, storable } from '../../db/model/records/custom-fields/shape.ts'
import {
  CUSTOM_FIELD_TYPES,
  SENSITIVE_TYPES,
  UNIQUE_TYPES,
} from '../../db/model/records/custom-fields/types.ts'
import type { KindName } from '../../db/model/records/kind.ts'
import { kindNames } from '../../db/model/records/kinds/index.ts'
import { refuseOthers } from '../../db/model/records/schemas.ts'
import { DELETED_AT, deletion } from '../http/deletion.ts'

/** The shapes of custom-field definitions. */

const MAX_OPTIONS = 500

const type = z
  .enum(CUSTOM_FIELD_TYPES)
  .describe(
    'The type of the values. Values are stored in one form: dates as `2026-01-31`, times in UTC, phone numbers as E.164 if they parse. Text that represents a value (`"12.5"`, `"yes"`, `"gold;silver"` for multi_select) is converted; empty text is null. Numbers are doubles with 15 significant digits.',
  )
const label = z.string().trim().min(1).max(255).describe('The display name; default: the name.')
const description = z.string().trim().max(2_000).nullable()
const required = z
  .boolean()
  .describe(
    'Whether a new record must have a value (or gets the default). A value cannot be cleared. Other fields of existing records without a value can be changed.',
  )
const unique = z
  .boolean()
  .describe(
    `Whether no two records share a value. Text comparison is case-insensitive; deleted records are ignored until they are restored. Types: ${UNIQUE_TYPES.join(', ')}.`,
  )
const options = z
  .array(
    z
      .string()
      .trim()
      .min(1)
      .max(255)
      .refine((option) => !option.includes(';'), 'has a semicolon, which separates options in lists'),
  )
  .min(1)
  .max(MAX_OPTIONS)
  .refine(
    (list) => new Set(list.map((option) => option.toLowerCase())).size === list.length,
    'has a duplicate option',
  )
  .nullable()
  .describe('The values of select and multi_select. Input is case-insensitive and stored in this form.')
const fallback = storable.describe('The value of new records without one. Not for unique fields.')

const sensitive = z
  .boolean()
  .describe(
    `Whether the value is shown only to who may see sensitive values: everything else has a mask such as \`[masked:…]\`. It cannot be changed. Types: ${SENSITIVE_TYPES.join(', ')}.`,
  )

const parts = {
  label: label.optional(),
  description: description.optional(),
  required: required.optional(),
  unique: unique.optional(),
  options: options.optional(),
  default: fallback.optional(),
  sensitive: sensitive.optional(),
}

export const createBody: z.ZodType<DefinitionInput & { name: string }> = z
  .strictObject({
    name: fieldName.describe('The key in `custom_fields`. It cannot be changed.'),
    type,
    ...parts,
  })
  .meta({ id: 'CustomFieldCreate' })

/** Contradictions between the valid members of an otherwise invalid definition. */
export function contradictionsIn(body: unknown): Issue[] {
  const valid = Object.entries({ type, ...parts }).flatMap(([name, schema]) => {
    const read = schema.safeParse((body as Record<string, unknown> | null | undefined)?.[name])
    return read.success ? [[name, read.data] as const] : []
  })
  const input: Partial<DefinitionInput> = Object.fromEntries(valid)
  return input.type ? contradictions({ ...input, type: input.type }) : []
}

const changeable = { type: type.optional(), ...parts }
const READ_ONLY = new Set(['object', 'entity', 'name', 'version', 'created_at', 'updated_at'])

export const updateBody: z.ZodType<DefinitionPatch> = z
  .object(changeable)
  .catchall(z.unknown())
  .superRefine((input, ctx) => refuseOthers(input, changeable, READ_ONLY, ctx), {
    when: ({ value }) => typeof value === 'object' && value !== null,
  })
  .meta({ additionalProperties: false })
  .meta({ id: 'CustomFieldUpdate' })

export const deleteQuery = z.strictObject({
  delete_values: z
    .enum(['true', 'false'])
    .default('false')
    .describe('Whether to delete the values from the records too.'),
})

export const definitionSchema = z
  .object({
    object: z.literal('custom_field'),
    entity: z.enum(kindNames as [KindName, ...KindName[]]),
    name: z.string(),
    type: z.enum(CUSTOM_FIELD_TYPES),
    label: z.string(),
    description: z.string().nullable(),
    required: z.boolean(),
    unique: z.boolean(),
    options: z.array(z.string()).nullable(),
    default: z.unknown(),
    sensitive: z.boolean(),
    version: z.int(),
    created_at: z.iso.datetime(),
    updated_at: z.iso.datetime(),
  })
  .meta({ id: 'CustomField' })

export const deletedField = deletion('custom_field', {
  entity: z.enum(kindNames),
  name: z.string(),
  ...DELETED_AT,
  values_deleted: z.int().describe('The number of records whose value was deleted.'),
})
