import type { Operator } from '../field-types.ts'
import { type CustomFieldType, customTypes, type NamedDefinition } from './types.ts'

/** The description of a custom field with a definition, for clients and agents. */
export interface CustomFieldDescription {
  /** The key in `custom_fields`; as filter and sort field `custom_fields.<name>`. */
  name: string
  type: CustomFieldType
  label: string
  description: string | null
  required: boolean
  unique: boolean
  options: string[] | null
  default: unknown
  searchable: boolean
  sortable: boolean
  operators: Operator[]
}

export function describeCustomField(definition: NamedDefinition): CustomFieldDescription {
  const { name, type, label, description, required, unique, options } = definition
  const { sortable, operators, searchable } = customTypes[type]
  return {
    name,
    type,
    label,
    description,
    required,
    unique,
    options,
    default: definition.default,
    searchable,
    sortable,
    operators,
  }
}
