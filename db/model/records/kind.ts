import type { KindName, KindObject } from '../../../workflows/shared/record-kinds.ts'
import type { Actor } from '../actor.ts'
import type { Issue } from '../errors.ts'
import type { Pipeline } from './pipelines/pipeline.ts'

/**
 * The definition of a record kind: a file in `kinds/` declares its fields. The create and update schemas, the columns,
 * filters, sort fields, full-text search, OpenAPI and the targets of webhook mappings follow from them.
 */
export { type KindName, withArticle } from '../../../workflows/shared/record-kinds.ts'

export type FieldType =
  | 'text'
  | 'email'
  | 'emails'
  | 'phone'
  | 'phones'
  | 'url'
  | 'domain'
  | 'integer'
  /** Exact, not negative, as text without trailing zeros. */
  | 'decimal'
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
  /** No request leaves it without a value. A reference is null while its record is deleted. */
  required?: true
  /** The maximum length in characters (default 255), or the maximum number. */
  max?: number
  /** For `integer`: whether it is a percentage. */
  percent?: true
  /** For `enum`: the allowed values. */
  values?: readonly string[]
  /** For `enum`: the organization defines the values (see pipelines/pipeline.ts); `values` are those of a new one. */
  ofOrganization?: true
  /** For `reference`: the target kind. The field is also the primary link between the two records. */
  to?: KindName
  /**
   * For `reference`: the fields of the target, by the same names, that a new record takes over where they are not given.
   * Money comes with its currency, and only into a record without another.
   */
  copies?: readonly string[]
  /** Set by the service, never by a client, unless it is `backdated`. */
  readOnly?: true
  /** A read-only time that a create, an upsert or an import can set: see backdated.ts. */
  backdated?: true
  default?: unknown
  /**
   * An index supports `sort` by this field, so that a page reads only its rows: see db/migrations/sort-index.ts. A text
   * field also has a column `<name>_lower`.
   */
  sorted?: true
  /** Optional in requests but never null: `derive` sets its default. */
  filled?: true
}

type Values = Readonly<Record<string, unknown>>

/** A record that is about to be created or changed. */
export interface Draft {
  /** The new values of all fields. */
  next: Values
  /** The old values; undefined for a new record. */
  before: Values | undefined
  /** The fields that the client sent. */
  given: Values
  /** The time of the change, in the format of records. */
  now: string
  actor: Actor
  /** Those of the organization, for a kind that `hasPipelines`; undefined if the change does not concern them. */
  pipelines?: readonly Pipeline[] | undefined
}

export interface KindEvent {
  /** Whether a created (without `before`) or changed record raises the event. */
  when: (record: Values, before: Values | undefined) => boolean
  /** The relevant fields, for the example in the catalogue. */
  example: Values
}

/** See `KindDefinition.sums`. The records that are summed have one currency, that of the sum. */
export interface Sums {
  field: string
  over: string
  into: string
}

/** A kind with its names. */
export interface Kind extends KindDefinition {
  /** The singular: `object` on the wire, and the first half of its events. */
  object: KindObject
  /** The plural: the path, the table, the scope. */
  entity: KindName
}

/** The content of a file in `kinds/`. */
export interface KindDefinition {
  /** The meaning of its records. */
  description: string
  fields: Record<string, Field>
  /** At least one of these is required. */
  atLeastOneOf?: readonly string[]
  /**
   * Fields that are the key of a record together: no two have the same values, so none are merged (`mergeableKinds`).
   * The first is a reference and, with the others, an upsert key.
   */
  identity?: readonly [reference: string, ...others: string[]]
  /** With `identity`: whether a record stays instead of another with its key, where a merge brings them together. */
  prevails?: (record: Values, other: Values) => boolean
  /** The lookup fields of upserts, besides `external_id`. */
  upsertKeys: readonly string[]
  /** Computes the derived fields of a created or changed record. */
  derive?: (draft: Draft) => Record<string, unknown>
  /** The issues that depend on several fields. */
  check?: (draft: Omit<Draft, 'actor'>) => Issue[]
  /** The sum of `field` over the records that refer to one record by `over` is the field `into` of that record. */
  sums?: Sums
  /** Its records move through the stages of pipelines. */
  hasPipelines?: true
  /** The events besides `created` and `updated`, by action: `won` is `deal.won` in the catalogue. */
  events?: Record<string, KindEvent>
  /** The columns of a list in the console, behind the name. */
  columns: readonly string[]
  /** The dimensions in analytics, besides the owner: columns that the index on the creation time covers. */
  dimensions: readonly string[]
  /** Imports can find its records by name. */
  isFoundByName?: true
  /**
   * By field or target of a column: its names in other systems, normalised as by `normalise`, best first. For webhook
   * payloads and columns of CSV files.
   */
  synonyms: Record<string, string>
  example: Record<string, unknown>
}

type ReferenceField = Field & { to: KindName }

/** The fields of a kind that reference another record, or only those that reference the kind `to`. */
export const referencesOf = (kind: Kind, to?: KindName): [string, ReferenceField][] =>
  Object.entries(kind.fields).filter(
    (entry): entry is [string, ReferenceField] =>
      entry[1].to !== undefined && (to === undefined || entry[1].to === to),
  )

/** Whether a record always has a value of the field. */
export const isNeverNull = ({ required, to, filled, default: fallback }: Field): boolean =>
  (required === true && !to) || filled === true || fallback !== undefined

/** The fields of a kind that name a user of the organization. */
export const userFields = (kind: Kind): string[] => [
  'owner_id',
  ...Object.keys(kind.fields).filter((name) => kind.fields[name]!.type === 'user'),
]
