import { describeMetric, METRICS } from '../../db/model/analytics/metrics/index.ts'
import { queryProblems } from '../../db/model/analytics/query.ts'
import { backdatedFields } from '../../db/model/records/backdated.ts'
import { commonFields, READ_ONLY } from '../../db/model/records/common-fields.ts'
import {
  filterNames,
  knownHop,
  operatorsOf,
  parseFilterValue,
  sortNames,
} from '../../db/model/records/filters.ts'
import { type FieldType, type Kind, referencesOf } from '../../db/model/records/kind.ts'
import { kinds } from '../../db/model/records/kinds/index.ts'
import { createSchema, fieldsSchema, updateSchema } from '../../db/model/records/schemas.ts'
import { upsertKeys } from '../../db/model/records/upsert-keys.ts'
import {
  mayBeNull,
  NULL,
  typeOfSchema,
  unionOf,
  type ValueType,
  withoutReferences,
} from '../../workflows/language/value-types.ts'
import {
  type Catalogue,
  eventDataOf,
  type FilterIssue,
  type RecordKind,
  withValues,
} from '../../workflows/nodes/catalogue.ts'
import { EVENTS } from '../../workflows/shared/events.ts'
import { associationContent } from './association-shape.ts'
import { eventSchema } from './event-examples.ts'

const ASSOCIATION = typeOfSchema(associationContent)

/** Texts of a form that their schema does not tell. */
const FORMATS: Partial<Record<FieldType, string>> = { money: 'decimal', currency: 'currency' }

/** The types of the data of all events that the service raises. */
const EVENT_DATA = new Map(
  EVENTS.filter(({ subject }) => subject !== 'any').map((event) => [
    event.name,
    withFormats(
      Object.values(kinds).find(({ object }) => object === event.name.split('.')[0]),
      withoutReferences(eventSchema(event)),
    ),
  ]),
)

const SET_BY_CLIENTS = Object.keys(commonFields).filter((name) => !READ_ONLY.includes(name))

const entities = Object.fromEntries(
  Object.values(kinds).map((kind) => [kind.entity, withValues(recordKind(kind), ofNewOrganization(kind))]),
)

/** The kinds of records with their fields and references, for the validation of workflows. */
export const catalogue: Catalogue = {
  metrics: METRICS.map(describeMetric),
  checkAnalytics: (query, isUnknown) =>
    queryProblems(query, { now: new Date(), timezone: 'UTC' }, isUnknown).map(
      ({ path, message, type, hint }) => ({ path, message, hint, isName: type !== 'invalid_value' }),
    ),
  eventData: eventDataOf({ eventData: (name) => EVENT_DATA.get(name) }, entities),
  entities,
}

function recordKind(kind: Kind): RecordKind {
  const record = withFormats(kind, typeOfSchema(fieldsSchema(kind.entity)))
  const settable = Object.entries(kind.fields).filter(([, field]) => !field.readOnly)
  return {
    object: kind.object,
    record,
    related: { ...record, properties: { ...record.properties, association: ASSOCIATION } },
    values: {},
    readable: [...READ_ONLY, ...SET_BY_CLIENTS, ...Object.keys(kind.fields)],
    writable: [
      ...SET_BY_CLIENTS,
      'associations',
      ...settable.map(([field]) => field),
      ...backdatedFields(kind),
    ],
    backdated: backdatedFields(kind),
    schemas: { create: createSchema(kind.entity), update: updateSchema(kind.entity) },
    upsertKeys: upsertKeys(kind.entity),
    sortable: sortNames(kind),
    checkFilter: (parameter, value) => filterIssue(kind, parameter, value),
    references: Object.fromEntries(referencesOf(kind).map(([field, { to }]) => [field, to])),
  }
}

/** The type of a record with the formats of its fields, by which comparisons with them are checked. */
function withFormats(kind: Kind | undefined, type: ValueType): ValueType {
  const formatted = Object.entries(kind?.fields ?? {}).flatMap(([name, field]) => {
    const format = FORMATS[field.type]
    const known = type.properties?.[name]
    return format && known
      ? [[name, unionOf([{ type: 'string', format }, ...(mayBeNull(known) ? [NULL] : [])])]]
      : []
  })
  return { ...type, properties: { ...type.properties, ...Object.fromEntries(formatted) } }
}

/** The values of fields that an organization can define, as a new one has them. */
function ofNewOrganization({ fields }: Kind): RecordKind['values'] {
  return Object.fromEntries(
    Object.entries(fields).flatMap(([name, { values, ofOrganization }]) =>
      ofOrganization ? [[name, values!]] : [],
    ),
  )
}

function filterIssue(kind: Kind, parameter: string, value: unknown): FilterIssue | undefined {
  const filter = parseFilterValue(kind, parameter, value)
  if (!('msg' in filter)) return undefined
  const [field = ''] = parameter.split('[')
  const hop = knownHop(kind, field)
  const [of, name, before] = hop
    ? [kinds[hop.kind], hop.field, field.slice(0, -hop.field.length)]
    : [kind, field, '']
  const allowed =
    filter.type === 'unrecognized_key'
      ? filterNames(of).map((one) => `${before}${one}`)
      : filter.type === 'unknown_operator'
        ? operatorsOf(kind, field).map((operator) => `${field}[${operator}]`)
        : (of.fields[name]?.values ?? [])
  return { message: filter.msg, type: filter.type, allowed }
}
