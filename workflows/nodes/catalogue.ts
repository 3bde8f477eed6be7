import type { z } from 'zod'
import {
  BOOLEAN,
  listOf,
  NULL,
  NUMBER,
  oneOf,
  TEXT,
  UNKNOWN,
  unionOf,
  type ValueType,
} from '../language/value-types.ts'
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
  /** The types of its custom fields; absent if they are not known. */
  customFields?: Readonly<Record<string, ValueType>>
  /** Names of the fields that a record has. */
  readable: readonly string[]
  /** Names of the fields that a client can set. */
  writable: readonly string[]
  /** Those of them with times of the past, for which a test of the node needs a scope of its own. */
  backdated: readonly string[]
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

/** The custom fields of an organization, by kind of record. */
export type CustomFields = Readonly<Record<string, readonly CustomField[]>>

export interface CustomField {
  name: string
  type: string
  /** The values of a selection. */
  options: readonly string[] | null
}

/** The catalogue of an organization. */
export function withCustomFields(catalogue: Catalogue, fields: CustomFields): Catalogue {
  const entities = Object.fromEntries(
    Object.entries(catalogue.entities).map(([entity, kind]): [string, RecordKind] => {
      const customFields = Object.fromEntries(
        (fields[entity] ?? []).map((field) => [field.name, typeOfCustomField(field)]),
      )
      const custom_fields: ValueType = { type: 'object', properties: customFields, customFieldsOf: entity }
      const known = (type: ValueType): ValueType => ({
        ...type,
        properties: { ...type.properties, custom_fields },
      })
      return [entity, { ...kind, customFields, record: known(kind.record), related: known(kind.related) }]
    }),
  )
  const byObject = new Map(Object.values(entities).map((kind) => [kind.object, kind]))
  const eventData = (name: string): ValueType | undefined => {
    const type = catalogue.eventData(name)
    const fields = byObject.get(name.split('.')[0]!)?.record.properties?.custom_fields
    return type?.properties?.custom_fields && fields
      ? { ...type, properties: { ...type.properties, custom_fields: fields } }
      : type
  }
  return { ...catalogue, entities, eventData }
}

const SCALARS: Record<string, ValueType> = { number: NUMBER, boolean: BOOLEAN, json: UNKNOWN }

function typeOfCustomField({ type, options }: CustomField): ValueType {
  if (options && type === 'select') return unionOf([oneOf(options), NULL])
  if (options && type === 'multi_select') return unionOf([listOf(oneOf(options)), NULL])
  return unionOf([SCALARS[type] ?? TEXT, NULL])
}

/** The plural name of a kind, by its plural or singular name. */
export const kindNamed = ({ entities }: Catalogue, name: string): string | undefined =>
  Object.keys(entities).find((plural) => plural === name || entities[plural]!.object === name)
