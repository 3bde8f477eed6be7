import { type ConfigIssue, checkConfig } from '../language/config.ts'
import { hasPlaceholder } from '../language/expressions/template.ts'
import { defineField, makeUnique, notUnique, REMOVE } from '../language/problems.ts'
import { repairHint } from '../language/repair.ts'
import { allowedValues, maskOf, UNKNOWN } from '../language/value-types.ts'
import { isObject } from '../shared/is-object.ts'
import { nearest } from '../shared/nearest.ts'
import type { Catalogue, RecordKind } from './catalogue.ts'
import { choice, filterProblems, sortProblems } from './crm-filters.ts'
import type { Authored, ConfigProblem, UsedCustomField } from './define.ts'

/** The keys that hold the fields of a record. */
export const WRITTEN = ['fields', 'on_create', 'on_update'] as const
type Written = (typeof WRITTEN)[number]

/**
 * Checks the plain values in the config of a record node with the schemas that a run uses: kinds, fields and their
 * values, filters, sorts, keys of upserts. Values of placeholders are not known yet.
 */
export function checkValues(config: Authored, { entities }: Catalogue): ConfigProblem[] {
  const { operation, entity, fields, filters, sort, by } = config
  const problems = ['entity', 'target'].flatMap((member) => kindProblems(member, config[member], entities))
  const kind = typeof entity === 'string' ? entities[meantKind(entity, entities) ?? ''] : undefined
  if (!kind) return problems
  const written = isObject(fields) ? fields : undefined
  return [
    ...problems,
    ...WRITTEN.flatMap((member) => fieldProblems(String(entity), kind, config, member)),
    ...(isObject(filters) ? Object.entries(filters).flatMap((one) => filterProblems(kind, ...one)) : []),
    ...(operation === 'search' ? sortProblems(kind, sort) : []),
    ...(operation === 'upsert' ? keyProblems(kind, by, written) : []),
    ...customProblems(String(meantKind(String(entity), entities)), kind, config),
  ]
}

/** The custom fields that a config names: in what it writes, and in filters, `sort` and `by`. */
function customProblems(
  entity: string,
  { customFields, uniqueFields }: RecordKind,
  config: Authored,
): ConfigProblem[] {
  if (!customFields) return []
  const { filters, sort, by } = config
  const written = WRITTEN.flatMap((member) =>
    Object.entries(customIn(config[member])).map(([name, value]) => ({
      name,
      value,
      path: [member, 'custom_fields', name],
    })),
  )
  const named = (text: unknown) => /^custom_fields\.([^[\].]+)/.exec(String(text ?? ''))?.[1]
  const places: { name: string | undefined; path: PropertyKey[]; atKey?: true }[] = [
    ...written.map(({ name, path }) => ({ name, path, atKey: true as const })),
    ...Object.keys(isObject(filters) ? filters : {}).map((key) => ({
      name: named(key),
      path: ['filters', key],
      atKey: true as const,
    })),
    { name: named(sort), path: ['sort'] },
    { name: named(by), path: ['by'] },
  ]
  const unknown = places.flatMap(({ name, ...place }): ConfigProblem[] => {
    if (name === undefined || Object.hasOwn(customFields, name)) return []
    const meant = nearest(name, Object.keys(customFields))
    return [
      {
        code: 'unknown_custom_field',
        message: `${entity} have no custom field ${name.slice(0, 100)} yet`,
        ...place,
        hint:
          meant === undefined
            ? defineField(entity, name)
            : `did you mean ${place.path[1] === 'custom_fields' ? '' : 'custom_fields.'}${meant}?`,
      },
    ]
  })
  const refused = written.flatMap(({ name, value, path }): ConfigProblem[] => {
    const allowed = Object.hasOwn(customFields, name) ? allowedValues(customFields[name]!) : undefined
    if (!allowed || typeof value !== 'string' || hasPlaceholder(value) || allowed.includes(value)) return []
    return [
      {
        code: 'invalid_value',
        message: `custom_fields.${name} must be one of ${allowed.join(', ')}`,
        path,
        ...choice(value, allowed),
      },
    ]
  })
  const hidden = places.flatMap(({ name, ...place }): ConfigProblem[] => {
    if (name === undefined || place.path.length === 3 || !maskOf(customFields[name] ?? UNKNOWN)) return []
    if (String(place.path[1]).endsWith('[is_null]')) return []
    return [
      {
        code: 'invalid_value',
        message: `custom_fields.${name} of ${entity} is sensitive: records cannot be found or sorted by it`,
        ...place,
        hint: `only \`custom_fields.${name}[is_null]\` is possible`,
      },
    ]
  })
  const key = config.operation === 'upsert' ? named(by) : undefined
  if (key === undefined || !Object.hasOwn(customFields, key) || uniqueFields?.includes(key))
    return [...unknown, ...refused, ...hidden]
  const keyless: ConfigProblem = {
    code: 'unknown_custom_field',
    message: notUnique(entity, key),
    path: ['by'],
    hint: makeUnique(entity, key),
  }
  return [...unknown, ...refused, ...hidden, keyless]
}

export const kindOf = (entity: unknown, entities: Catalogue['entities']): RecordKind | undefined =>
  typeof entity === 'string' && Object.hasOwn(entities, entity) ? entities[entity] : undefined

function kindProblems(member: string, name: unknown, entities: Catalogue['entities']): ConfigProblem[] {
  if (typeof name !== 'string' || hasPlaceholder(name) || Object.hasOwn(entities, name)) return []
  const meant = meantKind(name, entities)
  return [
    {
      code: 'unknown_entity',
      message: `there is no record kind ${name.slice(0, 100)}`,
      path: [member],
      hint: meant ? `did you mean ${meant}?` : `one of ${Object.keys(entities).join(', ')}`,
    },
  ]
}

/** The kind of that name, or else the kind that was meant, to check the rest of the config in the same validation. */
function meantKind(name: string, entities: Catalogue['entities']): string | undefined {
  if (Object.hasOwn(entities, name)) return name
  const singular = Object.keys(entities).find((one) => entities[one]!.object === name.toLowerCase())
  return singular ?? nearest(name, Object.keys(entities))
}

function fieldProblems(entity: string, kind: RecordKind, config: Authored, member: Written): ConfigProblem[] {
  const { operation, on_create = {} } = config
  const fields = config[member]
  if (!isObject(fields)) return []
  const known = Object.entries(fields).filter(([name]) => kind.writable.includes(name))
  const unknown = Object.keys(fields)
    .filter((name) => !kind.writable.includes(name))
    .map(
      (name): ConfigProblem => ({
        code: 'unknown_field',
        message: kind.readable.includes(name)
          ? `${name} of ${entity} is set by the service and cannot be written`
          : `${entity} have no writable field ${name.slice(0, 100)}`,
        path: [member, name],
        atKey: true,
        ...(kind.readable.includes(name) ? { hint: REMOVE } : choice(name, kind.writable)),
      }),
    )
  const isUpdate = operation === 'update' || member === 'on_update'
  const schema = isUpdate ? kind.schemas.update : kind.schemas.create
  const written = Object.fromEntries(known)
  // An unknown field may be a misspelt one, and a placeholder can hold them all: then no field is missing.
  const mayMiss = member !== 'fields' || unknown.length > 0 || !isObject(on_create)
  const issues = checkConfig(schema, written).filter(
    ({ path: [name] }) =>
      Object.hasOwn(written, String(name)) || (!mayMiss && !Object.hasOwn(on_create, String(name))),
  )
  return [
    ...unknown,
    ...known.flatMap(([name, value]) => {
      const values = kind.values[name]
      const problem = values && typeof value === 'string' ? unknownValue(name, value, values) : undefined
      return problem ? [{ ...problem, path: [member, name] }] : []
    }),
    ...issues.map((issue): ConfigProblem => {
      const [name] = issue.path
      const missing = !Object.hasOwn(written, String(name))
      return {
        code: missing ? 'missing_value' : 'invalid_value',
        message: messageOf(issue),
        path: [member, ...(missing ? [] : issue.path)],
        ...(!missing
          ? { hint: () => repairHint(schema, written, issue) }
          : name === undefined
            ? {}
            : { hint: `add \`${String(name)}: …\`` }),
      }
    }),
  ]
}

/** Whether the organization lacks a value, such as a stage. Cases and separators do not count, as in writes. */
function unknownValue(name: string, value: string, values: readonly string[]) {
  const plain = (text: string) => text.toLowerCase().replace(/[^\p{L}\p{N}]+/gu, '')
  if (hasPlaceholder(value) || values.some((one) => plain(one) === plain(value))) return undefined
  return {
    code: 'invalid_value' as const,
    message: `${name} ${JSON.stringify(value.slice(0, 100))} is none of the organization: ${values.join(', ')}`,
    ...choice(value, values),
  }
}

const messageOf = ({ path, message, keys }: ConfigIssue) =>
  keys ? `${path.join('.')} has no ${keys.join(', ')}` : `${path.join('.')} ${message}`.trim()

/** An upsert without a value of its key would create another record in each run. */
function keyProblems(kind: RecordKind, by: unknown, fields: Authored | undefined): ConfigProblem[] {
  if (typeof by !== 'string' || hasPlaceholder(by)) return []
  const [root, custom] = by.split('.')
  const isCustom = root === 'custom_fields' && Boolean(custom)
  if (!isCustom && !kind.upsertKeys.includes(by))
    return [
      {
        code: 'unknown_field',
        message: `records cannot be upserted by ${by.slice(0, 100)}`,
        path: ['by'],
        hint: `one of ${kind.upsertKeys.join(', ')}, or custom_fields.<name> of a unique custom field`,
      },
    ]
  if (!fields) return []
  const inner = isCustom ? fields.custom_fields : fields
  if (typeof inner === 'string') return []
  const value = isObject(inner) ? inner[isCustom ? custom! : by] : undefined
  if (value !== undefined && value !== null && value !== '') return []
  return [
    {
      code: 'missing_value',
      message: `fields has no ${by}, the key of the upsert`,
      path: ['fields'],
      ...(isCustom ? {} : { hint: `add \`${by}: …\`, the value that identifies the record` }),
    },
  ]
}

const customIn = (fields: unknown): Authored =>
  isObject(fields) && isObject(fields.custom_fields) ? fields.custom_fields : {}

/** The custom fields that an operation writes, and the one by which it finds a record. */
export function customFieldsOf({ entity, by, ...config }: Authored): UsedCustomField[] {
  const written = WRITTEN.flatMap((member) =>
    Object.keys(customIn(config[member])).map((name) => ({ name, path: [member, 'custom_fields', name] })),
  )
  const key = typeof by === 'string' ? /^custom_fields\.(.+)$/.exec(by)?.[1] : undefined
  return [
    ...written.filter(({ name }) => name !== key).map((one) => ({ entity, ...one, unique: false })),
    ...(key === undefined ? [] : [{ entity, name: key, path: ['by'], unique: true }]),
  ]
}
