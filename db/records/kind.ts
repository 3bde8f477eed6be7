import type { EntityName } from './kinds/index.ts'

/**
 * What a kind of record is: one file in `kinds/` gives its fields, and from them come the create and update schemas,
 * the columns, the filters, the sort fields, free-text search, OpenAPI and the targets of webhook mappings.
 */
export type { EntityName }

export type FieldType =
  | 'text'
  | 'email'
  | 'phone'
  | 'url'
  | 'domain'
  | 'integer'
  | 'money'
  | 'currency'
  | 'timezone'
  | 'boolean'
  | 'datetime'
  | 'enum'
  | 'reference'
  | 'address'

export interface Field {
  type: FieldType
  description: string
  required?: true
  /** Longest text, in characters; default 255. */
  max?: number
  /** Of `enum`. */
  values?: readonly string[]
  /** Of `reference`: the kind that it points to. It is also the primary link between the two. */
  to?: EntityName
  /** Set by the service, never by a client. */
  readOnly?: true
  default?: unknown
  /** Whether free-text search finds it. */
  searchable?: true
}

export interface Kind {
  /** The singular: `object` on the wire, and the first half of its events. */
  object: string
  /** The plural: the path, the table, the scope. */
  entity: EntityName
  fields: Record<string, Field>
  /** At least one of these must be there. */
  atLeastOneOf?: readonly string[]
  /** The fields that an upsert may find a record by, besides `external_id`. */
  upsertKeys: readonly string[]
  example: Record<string, unknown>
}
