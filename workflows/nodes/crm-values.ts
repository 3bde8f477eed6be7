import { type ConfigIssue, checkConfig } from '../language/config.ts'
import { hasPlaceholder } from '../language/expressions/template.ts'
import { defineField, makeUnique, meantBy, nearestName, notUnique, REMOVE } from '../language/problems.ts'
import { repairHint } from '../language/repair.ts'
import { allowedValues, maskOf, UNKNOWN } from '../language/value-types.ts'
import { isObject } from '../shared/is-object.ts'
import { nearest } from '../shared/nearest.ts'
import type { Catalogue, FilterIssue, RecordKind } from './catalogue.ts'
import type { Authored, ConfigProblem, UsedCustomField } from './define.ts'

/** The settings that hold the fields of a record. */
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

/** A filter by a value that the organization does not have finds nothing. */
function valueIssue({ values }: RecordKind, parameter: string, value: unknown): FilterIssue | undefined {
  const [field = '', operator = ''] = parameter.split('[')
  const allowed = Object.hasOwn(values, field) ? values[field]! : undefined
  if (!allowed || operator.startsWith('is_null')) return undefined
  const all: unknown[] = Array.isArray(value)
    ? value
    : String(value).split(operator.includes('in') ? ',' : '\0')
  const unknown = all.find((one) => !allowed.includes(String(one).trim().toLowerCase()))
  return unknown === undefined
    ? undefined
    : {
        message: `${String(unknown).slice(0, 100)} is none of the organization`,
        type: 'invalid_value',
        allowed,
      }
}

function filterProblems(kind: RecordKind, parameter: string, value: unknown): ConfigProblem[] {
  const issue = kind.checkFilter(parameter, value) ?? valueIssue(kind, parameter, value)
  const unknownYet = [value].flat().some((one) => typeof one === 'string' && hasPlaceholder(one))
  if (isObject(value)) {
    const [operator = 'gt', operand = '…'] = Object.entries(value)[0] ?? []
    return [
      {
        code: 'invalid_value',
        message: `the operator of a filter is in its key`,
        path: ['filters', parameter],
        hint: `replace it by \`"${parameter}[${operator}]": ${JSON.stringify(operand)}\``,
      },
    ]
  }
  const written = operatorInValue(kind, parameter, value)
  if (written) return [written]
  if (!issue || (issue.type === 'invalid_value' && unknownYet)) return []
  const { message, type, allowed } = issue
  const path = ['filters', parameter]
  if (type === 'invalid_value')
    return [{ code: 'invalid_value', message: `${parameter} ${message}`, path, ...choice(value, allowed) }]
  const [field = '', operator] = parameter.split('[')
  const meant =
    type === 'unknown_operator'
      ? meantBy(
          operator?.replace(/\]$/, '') ?? '',
          allowed.map((one) => one.slice(field.length + 1, -1)),
        )
      : undefined
  return [
    {
      code: 'unknown_field',
      message:
        type === 'unknown_operator' ? message : `records cannot be filtered by ${parameter.slice(0, 100)}`,
      path,
      atKey: true,
      ...(meant === undefined
        ? type === 'unknown_operator'
          ? { hint: `one of ${allowed.join(', ')}` }
          : nearestName(field, allowed)
        : { hint: `did you mean ${field}[${meant}]?` }),
    },
  ]
}

const SIGNS: Record<string, string> = {
  '>=': 'gte',
  '<=': 'lte',
  '!=': 'ne',
  '<>': 'ne',
  '==': 'eq',
  '=': 'eq',
  '>': 'gt',
  '<': 'lt',
  like: 'contains',
  ilike: 'contains',
  contains: 'contains',
  not: 'ne',
  in: 'in',
}
const SIGN = /^\s*(>=|<=|!=|<>|==|=|>|<|(?:like|ilike|contains|not|in)(?=[\s(]))\s*(.*)$/is
/** A pattern of SQL or of files: `%ada%`, `*@example.com`. */
const PATTERN = /^([%*]?)([^%*]+)([%*]?)$/

/**
 * The problem of a filter whose value has the operator in it, such as `"> 100"`: it would be compared with a field as a
 * plain text, and find nothing. Undefined for other values.
 */
function operatorInValue(kind: RecordKind, parameter: string, value: unknown): ConfigProblem | undefined {
  const [, field = '', operator] = /^([^[\]]+)(?:\[(\w+)\])?$/.exec(parameter) ?? []
  const path = ['filters', parameter]
  const allowed = (name: string) =>
    kind.checkFilter(`${field}[${name}]`, name === 'is_null' ? true : '1')?.type !== 'unknown_operator'
  if (value === null && operator === undefined)
    return {
      code: 'invalid_value',
      message: `null is no value of a filter: it finds the records without ${field.slice(0, 100)} by an operator`,
      path,
      hint: `replace it by \`"${field}[is_null]": true\``,
    }
  if (typeof value !== 'string') return undefined
  const [, sign, operand = ''] = SIGN.exec(value) ?? []
  // A text field may have a value that begins with such a word.
  const isWord = sign !== undefined && /^[a-z]/i.test(sign)
  const meant = sign === undefined ? undefined : SIGNS[sign.toLowerCase()]
  if (meant !== undefined && !(isWord && operator !== undefined)) {
    const plain = operand
      .trim()
      .replace(/^(['"])(.*)\1$/s, '$2')
      .replace(/^%(.*)%$/s, '$1')
    if (isWord && !/^(like|ilike)$/i.test(sign!) && !/^(['"(])/.test(operand.trim())) return undefined
    return {
      code: 'invalid_value',
      message: `the operator of a filter is in its key, not in its value ${JSON.stringify(value.slice(0, 100))}`,
      path,
      hint: allowed(meant)
        ? `replace it by \`"${field}${meant === 'eq' ? '' : `[${meant}]`}": ${JSON.stringify(plain)}\``
        : 'remove the sign from it',
    }
  }
  const [, before, text = '', after] = PATTERN.exec(value) ?? []
  const isPattern =
    before !== '' && before !== undefined
      ? text.length > 0
      : after === '*' || (after === '%' && !/\d\s*$/.test(text))
  if (!isPattern || hasPlaceholder(value) || (operator !== undefined && operator !== 'eq')) return undefined
  const by = before === '' && allowed('starts_with') ? 'starts_with' : 'contains'
  return {
    code: 'invalid_value',
    message: `a filter compares with ${JSON.stringify(value.slice(0, 100))} as it is written, and knows no patterns`,
    path,
    ...(allowed(by) ? { hint: `replace it by \`"${field}[${by}]": ${JSON.stringify(text)}\`` } : {}),
  }
}

/** The hint with the value that was meant, or with all allowed values. */
function choice(value: unknown, allowed: readonly string[]): { hint?: string } {
  if (allowed.length === 0) return {}
  const meant = typeof value === 'string' ? meantBy(value, allowed) : undefined
  return { hint: meant === undefined ? `one of ${allowed.join(', ')}` : `did you mean ${meant}?` }
}

function sortProblems(kind: RecordKind, sort: unknown): ConfigProblem[] {
  if (typeof sort !== 'string' || hasPlaceholder(sort) || sort.startsWith('custom_fields.')) return []
  if (kind.sortable.includes(sort)) return []
  return [
    {
      code: 'unknown_field',
      message: `records cannot be sorted by ${sort.slice(0, 100)}`,
      path: ['sort'],
      ...(sort.startsWith('-') && kind.sortable.includes(sort.slice(1))
        ? { hint: `write \`sort: ${sort.slice(1)}\` and \`order: desc\`` }
        : choice(sort, kind.sortable)),
    },
  ]
}

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
