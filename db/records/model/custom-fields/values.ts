import { isDeepStrictEqual } from 'node:util'
import { type Issue, invalid } from '../../../errors.ts'
import { isPlain, tooMuch, withoutNulls } from './shape.ts'
import { type Definition, type Rules, readValue } from './types.ts'

/**
 * The custom fields of a new record: each value as its definition reads it, defaults where there is none. Throws
 * `validation_error` with all that is wrong.
 */
export function newCustomFields(rules: Rules, given: unknown): Record<string, unknown> {
  const { fields, issues } = preparedCustomFields(rules, given)
  if (issues.length > 0) throw invalid(issues)
  return fields
}

/** The same, with what is wrong in place of an error. */
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
  return { fields, issues: [...issues, ...tooMuch(fields)] }
}

/**
 * What a patch makes of them: merged key by key, a key that is null is gone. Only what the patch changes is checked, so
 * that a record from before a definition can still be changed elsewhere. Throws `validation_error`.
 */
export function changedCustomFields(rules: Rules, before: unknown, patch: unknown): Record<string, unknown> {
  const { values, issues } = readCustomFields(rules, changesAmong(before, patch))
  const fields = patch === null ? {} : withoutNulls({ ...(before as object), ...values })
  for (const [name, definition] of Object.entries(rules.definitions)) {
    const cleared = values[name] === null || Object.hasOwn(before as object, name)
    if (definition.required && cleared && !Object.hasOwn(fields, name)) issues.push(missing(name))
  }
  issues.push(...tooMuch(fields))
  if (issues.length > 0) throw invalid(issues)
  return fields
}

/**
 * Of what a patch names all that is not stored just so. What a client has read it may send back, also where a definition
 * that came, or changed, since would refuse it: that of a deleted record is not looked at when an option goes.
 */
export function changesAmong(before: unknown, patch: unknown): Record<string, unknown> {
  const stored = new Map(Object.entries((before ?? {}) as object))
  const given = Object.entries((patch ?? {}) as object)
  return Object.fromEntries(
    given.filter(([name, value]) => !stored.has(name) || !isDeepStrictEqual(stored.get(name), value)),
  )
}

/** Each value as its definition reads it, and what is wrong with those that it does not. */
export function readCustomFields(
  rules: Rules,
  given: unknown,
): { values: Record<string, unknown>; issues: Issue[] } {
  const values: Record<string, unknown> = {}
  const issues: Issue[] = []
  for (const [name, value] of Object.entries((given ?? {}) as object)) {
    const loc = ['body', 'custom_fields', name]
    const definition = Object.hasOwn(rules.definitions, name) ? rules.definitions[name] : undefined
    if (value === null || (definition && isNothing(definition, value))) values[name] = null
    else if (definition) {
      const reading = readValue(definition, value)
      if ('value' in reading) values[name] = reading.value
      else issues.push({ loc, msg: reading.msg, type: `invalid_${definition.type}` })
    } else if (rules.strict)
      issues.push({
        loc,
        msg: 'has no definition, and the organization accepts no other custom fields',
        type: 'unrecognized_key',
        hint: `defined are ${Object.keys(rules.definitions).join(', ') || 'none yet'}`,
      })
    else if (isPlain(value)) values[name] = value
    else
      issues.push({
        loc,
        msg: 'must be a text, a number, true, false, null or a list of these',
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

/** Forms and other systems' payloads have no other way to say that there is no value; no choice is none either. */
const isNothing = ({ type }: Definition, value: unknown): boolean =>
  (typeof value === 'string' && value.trim() === '') ||
  (type === 'multi_select' && Array.isArray(value) && value.length === 0)
