import { z } from 'zod'
import { type CommonField, type CommonType, commonFields } from './common-fields.ts'
import { fieldTypes, type Operator } from './field-types.ts'
import { isSortable, operatorsOf } from './filters.ts'
import type { EntityName, Field, Kind } from './kind.ts'
import { entities } from './kinds/index.ts'
import { upsertKeys } from './upsert-keys.ts'

/** What a client or an agent has to know of a kind to read, write, filter and sort its records. */
export interface KindDescription {
  entity: EntityName
  singular: string
  description: string
  fields: FieldDescription[]
  /** The fields by which an upsert finds a record. */
  upsert_keys: string[]
  /** One of these must be there; empty where no such rule holds. */
  at_least_one_of: string[]
  example: Record<string, unknown>
}

export interface FieldDescription {
  name: string
  type: CommonType
  description: string
  required: boolean
  read_only: boolean
  /** What a record gets where nothing is said; null also where it depends, as the description then says. */
  default: unknown
  /** All that it can be; null where there is no such list. */
  values: string[] | null
  /** Longest text in characters, or largest number; null without one. */
  max: number | null
  searchable: boolean
  sortable: boolean
  operators: Operator[]
  /** What an id in it belongs to: a kind, or `users`. */
  references: string | null
}

/** Everything that the kind's file says. */
export function describeKind(entity: EntityName): KindDescription {
  const kind = entities[entity]
  const { id, ...others } = commonFields
  const fields: [string, Field | CommonField][] = Object.entries({ id, ...kind.fields, ...others })
  return {
    entity,
    singular: kind.object,
    description: kind.description,
    fields: fields.map(([name, field]) => describeField(kind, name, field)),
    upsert_keys: upsertKeys(entity),
    at_least_one_of: [...(kind.atLeastOneOf ?? [])],
    example: kind.example,
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
    max: field.readOnly ? null : largest(field),
    searchable: isOwn(kind, name)
      ? fieldTypes[kind.fields[name]!.type].searched !== undefined
      : 'searchable' in field,
    sortable: field.type === 'custom_fields' || isSortable(kind, name),
    operators: operatorsOf(kind, field.type === 'custom_fields' ? `${name}.any` : name),
    references: field.type === 'user' ? 'users' : (field.to ?? null),
  }
}

const isOwn = (kind: Kind, name: string) => Object.hasOwn(kind.fields, name)

/** As the schema that checks it says. */
function largest(field: Field | CommonField): number | null {
  if (!isNative(field)) return null
  const schema = z.toJSONSchema(fieldTypes[field.type].input(field), { io: 'input', unrepresentable: 'any' })
  return schema.maxLength ?? schema.maximum ?? null
}

const isNative = (field: Field | CommonField): field is Field => Object.hasOwn(fieldTypes, field.type)
