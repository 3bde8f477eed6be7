import { z } from 'zod'
import { meantBy } from '../../../workflows/language/problems.ts'
import { pascalCase } from '../../../workflows/shared/record-kinds.ts'
import { isStorable } from '../../../workflows/shared/storable-text.ts'
import { ACTOR_TYPES } from '../actor.ts'
import type { TraceContext } from '../trace-context.ts'
import { backdatedFields, isLate, LATE } from './backdated.ts'
import { commonFields, READ_ONLY } from './common-fields.ts'
import { customFields } from './custom-fields/shape.ts'
import { recordExample } from './examples.ts'
import { ADDRESS_PARTS, fieldTypes } from './field-types.ts'
import { isList } from './filters.ts'
import { type Field, isNeverNull, type Kind, type KindName } from './kind.ts'
import { kindNamed, kindNames, kinds } from './kinds/index.ts'
import { meantField } from './meant-field.ts'

const MAX_TAGS = 100

/** The writable common fields. */
const common = {
  external_id: z.string().trim().min(1).max(255).describe(commonFields.external_id.description),
  owner_id: z.uuid().toLowerCase().describe(commonFields.owner_id.description),
  tags: z
    .array(z.string().trim().min(1).max(64))
    .max(MAX_TAGS)
    .nullable()
    .transform((tags) => [...new Set(tags)]),
  custom_fields: customFields.nullable(),
}

const objectName = z
  .enum([...kindNames, ...kindNames.map((kind) => kinds[kind].object)])
  .transform((name) => kindNamed(name) as KindName)

const associations = z
  .array(
    z.strictObject({ object: objectName, id: z.uuid().toLowerCase(), label: z.string().max(64).nullish() }),
  )
  .max(50)
  .meta({ id: 'GivenAssociations' })
  .nullish()

const inputOf = (field: Field) => fieldTypes[field.type].input(field).describe(field.description)

/** A field with a default is never null; null in a request means the default. */
const withDefault = (field: Field) =>
  inputOf(field)
    .nullable()
    .transform((value) => value ?? field.default)

/** The body of POST: optional fields may also be null. Parsing normalises values and adds defaults. */
function buildCreate(kind: Kind) {
  const { atLeastOneOf } = kind
  const shape: Record<string, z.ZodType> = {}
  for (const [name, field] of Object.entries(kind.fields)) {
    if (field.readOnly) continue
    if (field.required) shape[name] = inputOf(field)
    else if (field.default !== undefined) shape[name] = withDefault(field).default(field.default)
    else shape[name] = inputOf(field).nullable().optional()
  }
  return refined(kind, {
    ...shape,
    external_id: common.external_id.nullable().optional(),
    owner_id: common.owner_id.nullable().optional(),
    tags: common.tags.default([]),
    custom_fields: common.custom_fields.transform((fields) => fields ?? {}).default({}),
    ...backdated(kind),
    associations: associations.describe('Records to associate with the new record.'),
  })
    .superRefine((input, ctx) => {
      const values = input as Record<string, unknown>
      if (atLeastOneOf && !atLeastOneOf.some((name) => values[name] != null))
        ctx.addIssue({
          code: 'custom',
          path: [atLeastOneOf[0]!],
          message: `at least one of ${atLeastOneOf.join(', ')} is required`,
          params: { type: 'missing' },
        })
    })
    .meta({
      description: `${kind.description}${atLeastOneOf ? ` At least one of ${atLeastOneOf.join(', ')} is required.` : ''}`,
      ...(atLeastOneOf ? { anyOf: atLeastOneOf.map((name) => ({ required: [name] })) } : {}),
    })
}

/** The body of PATCH: an absent field stays unchanged, null clears a field or resets it to its default. */
const buildUpdate = (kind: Kind) => refined(kind, changes(kind))

/** The data of an upsert, which updates an existing record as PATCH does, and adds links as POST does. */
const buildUpsert = (kind: Kind) =>
  refined(kind, {
    ...changes(kind),
    ...backdated(kind),
    associations: associations.describe('Records to associate. Existing associations remain.'),
  })

const backdated = (kind: Kind): Record<string, z.ZodType> =>
  Object.fromEntries(
    backdatedFields(kind).map((name) => [
      name,
      inputOf(kind.fields[name] ?? commonFields.created_at)
        .refine((time) => !isLate(time), { error: LATE, params: { type: 'invalid_value' } })
        .nullable()
        .optional(),
    ]),
  )

function changes(kind: Kind): Record<string, z.ZodType> {
  const shape: Record<string, z.ZodType> = {}
  for (const [name, field] of Object.entries(kind.fields)) {
    if (field.readOnly) continue
    if (field.required) shape[name] = inputOf(field).optional()
    else if (field.default !== undefined) shape[name] = withDefault(field).optional()
    else shape[name] = inputOf(field).nullable().optional()
  }
  return {
    ...shape,
    external_id: common.external_id.nullable().optional(),
    owner_id: common.owner_id.nullable().optional(),
    tags: common.tags.optional(),
    custom_fields: common.custom_fields
      .optional()
      .describe('Merged key by key. null clears a key, or all keys.'),
  }
}

/**
 * A strict schema; read-only fields get their own error. An empty text clears an optional field, since forms and
 * webhook payloads cannot send null.
 */
function refined(kind: Kind, shape: Record<string, z.ZodType>) {
  const readOnly = new Set<string>([
    ...READ_ONLY,
    ...Object.entries(kind.fields).flatMap(([name, field]) => (field.readOnly ? [name] : [])),
  ])
  const clearable = new Set([
    ...Object.keys(kind.fields).filter((name) => !kind.fields[name]!.required),
    'external_id',
    'owner_id',
    'created_at',
  ])
  const object = z
    .object(shape)
    .catchall(z.unknown())
    .superRefine(
      (input, ctx) => {
        refuseOthers(input, shape, readOnly, ctx, (name, names) =>
          meantField(kind, name, [...names, ...PARTS]),
        )
        // Custom fields have their own check.
        const { custom_fields: _, ...others } = input
        refuseUnstorable(others, [], ctx)
        // Runs even if a field is invalid, to report all issues at once.
      },
      { when: ({ value }) => typeof value === 'object' && value !== null },
    )
    .meta({ additionalProperties: false })
  return z.preprocess((input) => {
    if (typeof input !== 'object' || input === null || Array.isArray(input)) return input
    let others = 0
    const entries = Object.entries(input)
      // Drops unknown fields beyond the reported number.
      .filter(([name]) => Object.hasOwn(shape, name) || others++ <= MAX_UNKNOWN)
      .map(([name, value]) =>
        clearable.has(name) && typeof value === 'string' && value.trim() === ''
          ? [name, null]
          : [name, value],
      )
    return Object.fromEntries(entries)
  }, object)
}

/** For hints: fields that are written within `address`. */
const PARTS = ADDRESS_PARTS.map((part) => `address.${part}`)

/** Refuses fields that are not `known`, with a separate error for read-only fields. `meant`: for hints. */
export function refuseOthers(
  input: Record<string, unknown>,
  known: object,
  readOnly: Set<string>,
  ctx: z.RefinementCtx,
  meant: (name: string, names: string[]) => string | undefined = meantBy,
): void {
  const names = Object.keys(known)
  const refuse = (path: string[], message: string, params: { type: string; hint?: string }) =>
    ctx.addIssue({ code: 'custom', path, message, params })
  let unknown = 0
  for (const name of Object.keys(input)) {
    if (Object.hasOwn(known, name)) continue
    if (readOnly.has(name)) {
      refuse([name], 'is set by the service and cannot be written', { type: 'read_only' })
      continue
    }
    if (unknown++ === MAX_UNKNOWN) {
      refuse([], 'has more unknown fields, which are not listed', { type: 'unrecognized_key' })
      return
    }
    const field = meant(name, names)
    const hint = field === undefined ? {} : { hint: `did you mean ${field}?` }
    refuse([name], 'unknown field', { type: 'unrecognized_key', ...hint })
  }
}

/**
 * Maximum number of unknown fields that are listed, each with the nearest name. A body can have 100,000 of them, and a
 * batch of 200 bodies with 30 each blocked the process for 230 ms.
 */
const MAX_UNKNOWN = 10

/** The maximum depth of valid input: a part of an address. Deeper input has been refused. */
const MAX_DEPTH = 2

function refuseUnstorable(value: unknown, path: PropertyKey[], ctx: z.RefinementCtx): void {
  if (typeof value === 'string') {
    if (isStorable(value)) return
    ctx.addIssue({
      code: 'custom',
      path: [...path],
      message: 'contains NUL or a lone surrogate',
      params: { type: 'invalid_text' },
    })
  } else if (typeof value === 'object' && value !== null && path.length < MAX_DEPTH)
    for (const [name, part] of Object.entries(value))
      refuseUnstorable(part, [...path, Array.isArray(value) ? Number(name) : name], ctx)
}

export const actor = z
  .object({
    type: z.enum(ACTOR_TYPES),
    id: z.string().nullable(),
  })
  .meta({ id: 'Actor' })

const alternateKeys = z.array(z.object({ field: z.string(), value: z.string() }).meta({ id: 'AlternateKey' }))

/** A record in the API. */
function buildRecord(kind: Kind) {
  const shape: Record<string, z.ZodType> = {}
  for (const [name, field] of Object.entries(kind.fields))
    shape[name] = shownAs(field).describe(field.description)
  const descriptionOf = (name: keyof typeof commonFields) => commonFields[name].description
  return z
    .object({
      object: z.literal(kind.object),
      id: z.uuid().describe(descriptionOf('id')),
      ...shape,
      external_id: z.string().nullable().describe(descriptionOf('external_id')),
      owner_id: z.uuid().nullable().describe(descriptionOf('owner_id')),
      tags: z.array(z.string()).describe(descriptionOf('tags')),
      custom_fields: z.record(z.string(), z.unknown()).describe(descriptionOf('custom_fields')),
      alternate_keys: alternateKeys.describe(descriptionOf('alternate_keys')),
      version: z.int().min(1).describe(descriptionOf('version')),
      created_at: z.iso.datetime().describe(descriptionOf('created_at')),
      updated_at: z.iso.datetime().describe(descriptionOf('updated_at')),
      created_by: actor.describe(descriptionOf('created_by')),
      updated_by: actor.describe(descriptionOf('updated_by')),
    })
    .meta({ examples: [recordExample(kind)] })
}

/** What `expand` names beside a record. */
export const expanded = z
  .record(z.string(), z.unknown())
  .optional()
  .describe(
    'Only with `expand`, by its names: a record, a user or null; of an associated kind `{data, has_more}`.',
  )

const warnings = z
  .array(
    z
      .object({
        code: z.string(),
        field: z.string(),
        message: z.string(),
        record_ids: z.array(z.uuid()).describe('The oldest records with the value, at most five.'),
      })
      .meta({ id: 'ExistingValue' }),
  )
  .optional()
  .describe('Only of a creation: its email, domain or phone that other records of the kind have.')

/** A record as an answer, with what is only in some answers. */
const buildAnswer = (kind: Kind) =>
  buildRecord(kind)
    .extend({ expanded, warnings })
    .meta({ examples: [recordExample(kind)] })

/** A record in a list: `fields` selects its fields. */
const buildListed = (kind: Kind) =>
  buildRecord(kind)
    .partial()
    .required({ object: true, id: true })
    .describe('All fields; with `fields`, only those fields, `id` and `object`.')
    .meta({ examples: [recordExample(kind)] })

function shownAs(field: Field): z.ZodType {
  const input = fieldTypes[field.type].input(field)
  const shown = ['phone', 'money', 'decimal'].includes(field.type)
    ? z.string()
    : isList(field.type)
      ? z.array(z.string())
      : field.type === 'datetime'
        ? z.iso.datetime()
        : input
  return isNeverNull(field) ? shown : shown.nullable()
}

export type RecordInput = Record<string, unknown> & { [REQUEST_TRACE]?: TraceContext | undefined }

/**
 * The key for the trace of an input's request, if one transaction writes the inputs of several requests. A symbol,
 * because it is not a field.
 */
export const REQUEST_TRACE = Symbol('trace of the request')
export type AgxRecord = Record<string, unknown> & { id: string; object: string; version: number }

/** Schemas with their names in the OpenAPI document: `Contact`, `ListedContact`, `ContactCreate`, `ContactUpdate`. */
const byKind = <T extends z.ZodType>(build: (kind: Kind) => T, { prefix = '', suffix = '' } = {}) =>
  Object.fromEntries(
    kindNames.map((kind) => {
      const definition = kinds[kind]
      return [kind, build(definition).meta({ id: `${prefix}${pascalCase(definition.object)}${suffix}` })]
    }),
  ) as Record<KindName, T>

const creates = byKind(buildCreate, { suffix: 'Create' })
const updates = byKind(buildUpdate, { suffix: 'Update' })
const upserts = byKind(buildUpsert, { suffix: 'Upsert' })
const records = byKind(buildAnswer)
const fields = Object.fromEntries(kindNames.map((kind) => [kind, buildRecord(kinds[kind])])) as Record<
  KindName,
  ReturnType<typeof buildRecord>
>
const listed = byKind(buildListed, { prefix: 'Listed' })

export const createSchema = (kind: KindName): z.ZodType<RecordInput> =>
  creates[kind] as z.ZodType<RecordInput>
export const updateSchema = (kind: KindName): z.ZodType<RecordInput> =>
  updates[kind] as z.ZodType<RecordInput>
export const upsertSchema = (kind: KindName): z.ZodType<RecordInput> =>
  upserts[kind] as z.ZodType<RecordInput>
export const recordSchema = (kind: KindName) => records[kind]
/** The fields of a record alone, as events have it. */
export const fieldsSchema = (kind: KindName) => fields[kind]
export const listedSchema = (kind: KindName) => listed[kind]
