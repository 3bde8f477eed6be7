import type { EntityName, ObjectName } from '../../../workflows/record-kinds.ts'
import type { Actor } from '../../postgres/tenancy.ts'

/**
 * What a kind of record is: one file in `kinds/` gives its fields, and from them come the create and update schemas,
 * the columns, the filters, the sort fields, free-text search, OpenAPI and the targets of webhook mappings.
 */
export { type EntityName, withArticle } from '../../../workflows/record-kinds.ts'

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
  | 'date'
  | 'datetime'
  | 'enum'
  | 'id'
  | 'reference'
  | 'user'
  | 'address'

export interface Field {
  type: FieldType
  description: string
  required?: true
  /** Longest text, in characters (default 255), or largest number. */
  max?: number
  /** Of `integer`: whether it counts percent. */
  percent?: true
  /** Of `enum`. */
  values?: readonly string[]
  /** Of `reference`: the kind that it points to. It is also the primary link between the two. */
  to?: EntityName
  /** Set by the service, never by a client. */
  readOnly?: true
  default?: unknown
  /** Never null, though no client has to say it: `derive` sees to it. */
  filled?: true
}

type Values = Readonly<Record<string, unknown>>

/** A record that is about to be created or changed. */
export interface Draft {
  /** All fields, as they are to be. */
  next: Values
  /** As they were; undefined for a new record. */
  before: Values | undefined
  /** What the client named. */
  given: Values
  /** The moment of the change, as records show times. */
  now: string
  actor: Actor
}

export interface KindEvent {
  /** Whether a record that was just created (without `before`) or changed raises it. */
  when: (record: Values, before: Values | undefined) => boolean
  /** The fields that tell of it, for the example in the catalogue. */
  example: Values
}

/** A kind with its names. */
export interface Kind extends KindDefinition {
  /** The singular: `object` on the wire, and the first half of its events. */
  object: ObjectName
  /** The plural: the path, the table, the scope. */
  entity: EntityName
}

/** What a file in `kinds/` says of its kind. */
export interface KindDefinition {
  /** What its records stand for. */
  description: string
  fields: Record<string, Field>
  /** At least one of these must be there. */
  atLeastOneOf?: readonly string[]
  /** The fields that an upsert may find a record by, besides `external_id`. */
  upsertKeys: readonly string[]
  /** The fields that follow from others, each time that a record is created or changed. */
  derive?: (draft: Draft) => Record<string, unknown>
  /** What a change means beyond `created` and `updated`, by action: `won` is `deal.won` of the catalogue. */
  events?: Record<string, KindEvent>
  example: Record<string, unknown>
}

type ReferenceField = Field & { to: EntityName }

/** The fields of a kind that point to another record, optionally only those that point to one kind. */
export const referencesOf = (kind: Kind, to?: EntityName): [string, ReferenceField][] =>
  Object.entries(kind.fields).filter(
    (entry): entry is [string, ReferenceField] =>
      entry[1].to !== undefined && (to === undefined || entry[1].to === to),
  )

/** The fields of a kind that name a user of the organization. */
export const userFields = (kind: Kind): string[] => [
  'owner_id',
  ...Object.keys(kind.fields).filter((name) => kind.fields[name]!.type === 'user'),
]
