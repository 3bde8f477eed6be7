import type { z } from 'zod'
import type { ValueType } from '../language/value-types.ts'
import type { MetricInfo } from '../shared/analytics.ts'

/** The organization's data model, for node types and validation; passed as an argument. */
export interface Catalogue {
  metrics: readonly MetricInfo[]
  /** The problems of an analytics query that its schema does not find. `isUnknown`: a value that is not known yet. */
  checkAnalytics(query: Record<string, unknown>, isUnknown: (value: unknown) => boolean): AnalyticsIssue[]
  /** The type of the data of an event; undefined if the service does not raise it. */
  eventData(name: string): ValueType | undefined
  /** The kinds of records, by plural name. */
  entities: Readonly<Record<string, RecordKind>>
}

export interface RecordKind {
  /** Its singular name. */
  object: string
  /** The type of its records. */
  record: ValueType
  /** The type of the records that a record is associated with. */
  related: ValueType
  /** Names of the fields that a record has. */
  readable: readonly string[]
  /** Names of the fields that a client can set. */
  writable: readonly string[]
  /** The fields that point to a record, with the plural name of its kind. */
  references: Readonly<Record<string, string>>
  /** The values of fields that a write accepts. */
  schemas: { create: z.ZodType; update: z.ZodType }
  /** The fields by which an upsert finds a record; `custom_fields.<name>` is another. */
  upsertKeys: readonly string[]
  /** The fields that a search can sort by; `custom_fields.<name>` is another. */
  sortable: readonly string[]
  /** Checks one filter of a search. @returns the issue, if there is one. */
  checkFilter(parameter: string, value: unknown): FilterIssue | undefined
}

export interface AnalyticsIssue {
  path: string[]
  message: string
  /** Whether the issue is an unknown name of a metric or a dimension. */
  isName: boolean
  hint?: string | undefined
}

export interface FilterIssue {
  message: string
  /** `unrecognized_key`: the field; `unknown_operator`; `invalid_value`. */
  type: string
  /** The names or values to write instead. */
  allowed: readonly string[]
}

/** The plural name of a kind, by its plural or singular name. */
export const kindNamed = ({ entities }: Catalogue, name: string): string | undefined =>
  Object.keys(entities).find((plural) => plural === name || entities[plural]!.object === name)
