import { z } from 'zod'
import { type CommonField, type CommonType, commonFields } from './common-fields.ts'
import { fieldTypes, type Operator } from './field-types.ts'
import { isSortable, operatorsOf } from './filters.ts'
import type { Field, Kind, KindName } from './kind.ts'
import { kinds } from './kinds/index.ts'
import { upsertKeys } from './upsert-keys.ts'

/** The description of a kind, for clients and agents that read, write, filter and sort its records. */
export interface KindDescription {
  entity: KindName
  singular: string
  description: string
  fields: FieldDescription[]
  /** The fields by which an upsert finds a record. */
  upsert_keys: string[]
  /** At least one of these is required; empty without such a rule. */
  at_least_one_of: string[]
  example: Record<string, unknown>
}

export interface FieldDescription {
  name: string
  type: CommonType
  description: string
  required: boolean
  read_only: boolean
  /** The default of new records; null if there is none, or if it depends on other values: see the description. */
  default: unknown
  /** The allowed values; null if there is no list. */
  values: string[] | null
  /** The longest text in characters, or the largest number; null without a limit. */
  max: number | null
  searchable: boolean
  sortable: boolean
  operators: Operator[]
  /** The target of an id: a kind, or `users`. */
  references: string | null
}

/** Describes a kind from its definition. */
export function describeKind(kind: KindName): KindDescription {
  const definition = kinds[kind]
  const { id, ...others } = commonFields
  const fields: [string, Field | CommonField][] = Object.entries({ id, ...definition.fields, ...others })
  return {
    entity: kind,
    singular: definition.object,
    description: definition.description,
    fields: fields.map(([name, field]) => describeField(definition, name, field)),
    upsert_keys: upsertKeys(kind),
    at_least_one_of: [...(definition.atLeastOneOf ?? [])],
    example: definition.example,
  }
}

function describeField(kind: Kind, name: string, field: Field | CommonField): FieldDescription {
  return {
    name,
    type: field.type,
    description: field.description,
    required: field.required ?? false,
    read_only: field.readOnly ?? false,
    default: field.default ?? null,
    values: field.values ? [...field.values] : null,
    max: field.readOnly ? null : maxOf(field),
    searchable: isOwn(kind, name)
      ? fieldTypes[kind.fields[name]!.type].searched !== undefined
      : 'searchable' in field,
    sortable: field.type === 'custom_fields' || isSortable(kind, name),
    operators: operatorsOf(kind, field.type === 'custom_fields' ? `${name}.any` : name),
    references: field.type === 'user' ? 'users' : (field.to ?? null),
  }
}

const isOwn = (kind: Kind, name: string) => Object.hasOwn(kind.fields, name)

/** The limit from the field's schema. */
function maxOf(field: Field | CommonField): number | null {
  if (!isNative(field)) return null
  const schema = z.toJSONSchema(fieldTypes[field.type].input(field), { io: 'input', unrepresentable: 'any' })
  return schema.maxLength ?? schema.maximum ?? null
}

const isNative = (field: Field | CommonField): field is Field => Object.hasOwn(fieldTypes, field.type)
