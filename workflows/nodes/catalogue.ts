import type { z } from 'zod'
import type { InputSpec } from '../language/definition.ts'
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
  /** The likely type of `trigger.payload`. */
  payload?: ValueType
  /** The likely types of outputs, by the id of the node. */
  outputs?: Readonly<Record<string, ValueType>>
  /** The workflows that a definition calls, by the name or id that it has. */
  workflows?: Readonly<Record<string, CalledWorkflow>>
}

export interface CalledWorkflow {
  inputs: Readonly<Record<string, InputSpec>>
  /** The likely type of the outputs of its runs. */
  outputs: ValueType
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
  /** The names of those that are unique. */
  uniqueFields?: readonly string[]
  /** The values of fields that the organization defines, such as the stages of deals: names as they are stored. */
  values: Readonly<Record<string, readonly string[]>>
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

/** The fields that an organization defines, by kind of record: custom fields, and the values of native ones. */
export type CustomFields = Readonly<Record<string, readonly CustomField[]>>

export interface CustomField {
  name: string
  type: string
  /** The values of a selection. */
  options: readonly string[] | null
  sensitive?: boolean | undefined
  unique?: boolean | undefined
  /** The values of a native field, such as the stages of deals. */
  isNative?: true
}

/** The catalogue of an organization. */
export function withCustomFields(catalogue: Catalogue, fields: CustomFields): Catalogue {
  const entities = Object.fromEntries(
    Object.entries(catalogue.entities).map(([entity, kind]): [string, RecordKind] => {
      const [native, custom] = [true, false].map((isNative) =>
        (fields[entity] ?? []).filter((field) => (field.isNative ?? false) === isNative),
      ) as [CustomField[], CustomField[]]
      const customFields = Object.fromEntries(
        custom.map((field) => [field.name, typeOfCustomField(field, entity)]),
      )
      const custom_fields: ValueType = { type: 'object', properties: customFields, customFieldsOf: entity }
      const own = withValues(
        kind,
        Object.fromEntries(native.map(({ name, options }) => [name, options ?? []])),
      )
      return [
        entity,
        {
          ...own,
          customFields,
          uniqueFields: custom.filter(({ unique }) => unique).map(({ name }) => name),
          record: withMembers(own.record, { custom_fields }),
          related: withMembers(own.related, { custom_fields }),
        },
      ]
    }),
  )
  return { ...catalogue, entities, eventData: eventDataOf(catalogue, entities) }
}

/** The kind with the values that an organization has for some of its fields. */
export function withValues(kind: RecordKind, values: RecordKind['values']): RecordKind {
  const types = Object.fromEntries(Object.entries(values).map(([name, all]) => [name, oneOf(all)]))
  return {
    ...kind,
    values: { ...kind.values, ...values },
    record: withMembers(kind.record, types),
    related: withMembers(kind.related, types),
  }
}

/** The data of events, with the types that the records of the kinds have. */
export function eventDataOf(
  { eventData }: Pick<Catalogue, 'eventData'>,
  entities: Catalogue['entities'],
): Catalogue['eventData'] {
  const byObject = new Map(Object.values(entities).map((kind) => [kind.object, kind]))
  return (name) => {
    const type = eventData(name)
    const kind = byObject.get(name.split('.')[0]!)
    if (!kind || !type?.properties?.custom_fields) return type
    const typed = Object.entries(kind.record.properties ?? {}).filter(
      ([field]) => field === 'custom_fields' || Object.hasOwn(kind.values, field),
    )
    return withMembers(type, Object.fromEntries(typed))
  }
}

const withMembers = (type: ValueType, members: Record<string, ValueType>): ValueType => ({
  ...type,
  properties: { ...type.properties, ...members },
})

const SCALARS: Record<string, ValueType> = { number: NUMBER, boolean: BOOLEAN, json: UNKNOWN }

function typeOfCustomField({ type, options, sensitive }: CustomField, entity: string): ValueType {
  if (sensitive) return unionOf([{ ...TEXT, maskOf: entity }, NULL])
  if (options && type === 'select') return unionOf([oneOf(options), NULL])
  if (options && type === 'multi_select') return unionOf([listOf(oneOf(options)), NULL])
  return unionOf([SCALARS[type] ?? TEXT, NULL])
}

/** The plural name of a kind, by its plural or singular name. */
export const kindNamed = ({ entities }: Catalogue, name: string): string | undefined =>
  Object.keys(entities).find((plural) => plural === name || entities[plural]!.object === name)
