import { isDeepStrictEqual } from 'node:util'
import { type Issue, invalid } from '../../errors.ts'
import { isMask, SensitiveValue } from './sensitive.ts'
import { isPlain, sizeIssues, withoutNulls } from './shape.ts'
import { type Definition, type Rules, readValue } from './types.ts'

/**
 * The custom fields of a new record: each value as its definition parses it, and defaults for missing values. Throws
 * `validation_error` with all issues.
 */
export function newCustomFields(rules: Rules, given: unknown): Record<string, unknown> {
  const { fields, issues } = preparedCustomFields(rules, given)
  if (issues.length > 0) throw invalid(issues)
  return fields
}

/** Like `newCustomFields`, but returns the issues instead of throwing them. */
export function preparedCustomFields(
  rules: Rules,
  given: unknown,
): { fields: Record<string, unknown>; issues: Issue[] } {
  const { values, issues } = readCustomFields(rules, given)
  const fields = withoutNulls(values)
  for (const [name, definition] of Object.entries(rules.definitions)) {
    if (Object.hasOwn(fields, name)) continue
    if (definition.default !== null) fields[name] = definition.default
    else if (definition.required && !issues.some(({ loc }) => loc[2] === name)) issues.push(missing(name))
  }
  return { fields, issues: [...issues, ...sizeIssues(fields)] }
}

/**
 * Applies a patch key by key; null removes a key. Checks only the changed values, so that values older than a
 * definition do not block other changes. Throws `validation_error`.
 */
export function changedCustomFields(rules: Rules, before: unknown, patch: unknown): Record<string, unknown> {
  const { values, issues } = readCustomFields(rules, changedFields(before, patch))
  const fields = patch === null ? {} : withoutNulls({ ...(before as object), ...values })
  for (const [name, definition] of Object.entries(rules.definitions)) {
    const cleared = values[name] === null || Object.hasOwn(before as object, name)
    if (definition.required && cleared && !Object.hasOwn(fields, name)) issues.push(missing(name))
  }
  issues.push(...sizeIssues(fields))
  if (issues.length > 0) throw invalid(issues)
  return fields
}

/**
 * The fields of a patch that differ from the stored values. A client may send back unchanged values, even those that a
 * later definition would refuse; a restored record, for example, may hold a removed option.
 */
export function changedFields(before: unknown, patch: unknown): Record<string, unknown> {
  const stored = new Map(Object.entries((before ?? {}) as object))
  const entries = Object.entries((patch ?? {}) as object)
  return Object.fromEntries(
    entries.filter(([name, value]) => !stored.has(name) || !isDeepStrictEqual(stored.get(name), value)),
  )
}

/** Each value as its definition parses it, and the issues of invalid values. */
export function readCustomFields(
  rules: Rules,
  given: unknown,
): { values: Record<string, unknown>; issues: Issue[] } {
  const values: Record<string, unknown> = {}
  const issues: Issue[] = []
  for (const [name, value] of Object.entries((given ?? {}) as object)) {
    const loc = ['body', 'custom_fields', name]
    const definition = Object.hasOwn(rules.definitions, name) ? rules.definitions[name] : undefined
    if (value === null || (definition && isUnset(definition, value))) values[name] = null
    else if (definition) {
      // A mask of a former value, as of a revert: `keepSensitive` checks whose it is.
      const isKept = definition.sensitive && isMask(value)
      const reading = isKept ? { value } : readValue(definition, value)
      if ('value' in reading)
        values[name] = definition.sensitive && !isKept ? new SensitiveValue(reading.value) : reading.value
      else issues.push({ loc, msg: reading.msg, type: `invalid_${definition.type}` })
    } else if (rules.strict)
      issues.push({
        loc,
        msg: 'has no definition; the organization accepts only custom fields with a definition',
        type: 'unrecognized_key',
        hint: `defined fields: ${Object.keys(rules.definitions).join(', ') || 'none'}`,
      })
    else if (isPlain(value)) values[name] = value
    else
      issues.push({
        loc,
        msg: 'must be text, a number, true, false, null or a list of these',
        type: 'invalid_value',
        hint: 'objects need a definition of type json',
      })
  }
  return { values, issues }
}

const missing = (name: string): Issue => ({
  loc: ['body', 'custom_fields', name],
  msg: 'required',
  type: 'missing',
})

/** Forms and webhook payloads send an empty text, or an empty list of options, for an unset value. */
const isUnset = ({ type }: Definition, value: unknown): boolean =>
  (typeof value === 'string' && value.trim() === '') ||
  (type === 'multi_select' && Array.isArray(value) && value.length === 0)
