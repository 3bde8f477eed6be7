import { isDeepStrictEqual } from 'node:util'
import { type Issue, invalid } from '../../errors.ts'
import { sizeIssues } from './shape.ts'
import {
  type CustomFieldType,
  customTypes,
  type Definition,
  readValue,
  SENSITIVE_TYPES,
  UNIQUE_TYPES,
} from './types.ts'

/** Checks and completes the definition of a custom field. */

/** A definition as a client writes it. Its members are checked together, since they depend on each other. */
export interface DefinitionInput {
  type: CustomFieldType
  label?: string | undefined
  description?: string | null | undefined
  required?: boolean | undefined
  unique?: boolean | undefined
  options?: string[] | null | undefined
  default?: unknown
  sensitive?: boolean | undefined
}

export type DefinitionPatch = Omit<DefinitionInput, 'type'> & { type?: CustomFieldType | undefined }

/** Throws `validation_error` with all contradictions in `input`. */
export function newDefinition(name: string, input: DefinitionInput): Definition {
  const now = new Date().toISOString()
  return { ...completed(name, input), version: 1, created_at: now, updated_at: now }
}

/** @returns the next version, or undefined if the patch changes nothing. Throws `validation_error`. */
export function changedDefinition(
  name: string,
  before: Definition,
  patch: DefinitionPatch,
): Definition | undefined {
  const type = patch.type ?? before.type
  const sensitive = before.sensitive === true
  if ((patch.sensitive ?? sensitive) !== sensitive)
    throw wrongMember(
      'sensitive',
      'cannot be changed: history, events and runs keep the values as they were written',
      'define another field, and delete this one with delete_values=true',
    )
  if (sensitive && type !== before.type)
    throw wrongMember('type', 'that of a sensitive field cannot be changed')
  // A change to a type without options removes the options.
  const kept = before.options && !hasOptions(type) ? { ...before, options: null } : before
  const { version, created_at, updated_at } = before
  const after = { ...completed(name, { ...kept, ...patch, type }), version, created_at, updated_at }
  if (isDeepStrictEqual(after, before)) return undefined
  return { ...after, version: version + 1, updated_at: new Date().toISOString() }
}

const wrongMember = (member: string, msg: string, hint?: string) =>
  invalid([{ loc: ['body', member], msg, type: 'invalid_value', ...(hint ? { hint } : {}) }])

/** The contradictions in a definition whose invalid members may be missing. */
export const contradictions = (input: DefinitionInput): Issue[] => read('', input).issues

type Completed = Omit<Definition, 'version' | 'created_at' | 'updated_at'>

function completed(name: string, input: DefinitionInput): Completed {
  const { definition, issues } = read(name, input)
  if (issues.length > 0) throw invalid(issues)
  return definition
}

const hasOptions = (type: CustomFieldType) => type === 'select' || type === 'multi_select'

function read(name: string, input: DefinitionInput): { definition: Completed; issues: Issue[] } {
  const { type, label = name, unique = false, required = false, sensitive = false } = input
  const options = input.options ?? null
  const issues: Issue[] = []
  const wrong = (field: string, msg: string, hint?: string) =>
    issues.push({ loc: ['body', field], msg, type: 'invalid_value', ...(hint ? { hint } : {}) })
  if (hasOptions(type) && !options?.length) wrong('options', `a field of type ${type} needs options`)
  if (!hasOptions(type) && options) wrong('options', `a field of type ${type} has no options`)
  if (unique && !customTypes[type].canBeUnique)
    wrong('unique', `a field of type ${type} cannot be unique`, `unique types: ${UNIQUE_TYPES.join(', ')}`)
  if (sensitive && !SENSITIVE_TYPES.includes(type))
    wrong(
      'sensitive',
      `a field of type ${type} cannot be sensitive`,
      `types that can: ${SENSITIVE_TYPES.join(', ')}`,
    )
  if (sensitive && unique)
    wrong('unique', 'a sensitive field cannot be unique: a refusal would tell its value')
  if (sensitive && input.default != null) wrong('default', 'a sensitive field cannot have a default')
  let fallback: unknown = null
  if (input.default !== undefined && input.default !== null) {
    if (unique) wrong('default', 'a unique field cannot have a default')
    const reading = readValue({ type, options: options ?? [] }, input.default)
    if ('msg' in reading) wrong('default', reading.msg)
    else fallback = reading.value
    for (const { msg } of sizeIssues({ [name]: fallback })) wrong('default', msg)
  }
  const description = input.description ?? null
  const definition: Completed = { type, label, description, required, unique, options, default: fallback }
  return { definition: { ...definition, ...(sensitive && { sensitive }) }, issues }
}
