import { isDeepStrictEqual } from 'node:util'
import { type Issue, invalid } from '../../errors.ts'
import { sizeIssues } from './shape.ts'
import { type CustomFieldType, customTypes, type Definition, readValue, UNIQUE_TYPES } from './types.ts'

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
  // A change to a type without options removes the options.
  const kept = before.options && !hasOptions(type) ? { ...before, options: null } : before
  const { version, created_at, updated_at } = before
  const after = { ...completed(name, { ...kept, ...patch, type }), version, created_at, updated_at }
  if (isDeepStrictEqual(after, before)) return undefined
  return { ...after, version: version + 1, updated_at: new Date().toISOString() }
}

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
  const { type, label = name, unique = false, required = false } = input
  const options = input.options ?? null
  const issues: Issue[] = []
  const wrong = (field: string, msg: string, hint?: string) =>
    issues.push({ loc: ['body', field], msg, type: 'invalid_value', ...(hint ? { hint } : {}) })
  if (hasOptions(type) && !options?.length) wrong('options', `a field of type ${type} needs options`)
  if (!hasOptions(type) && options) wrong('options', `a field of type ${type} has no options`)
  if (unique && !customTypes[type].canBeUnique)
    wrong('unique', `a field of type ${type} cannot be unique`, `unique types: ${UNIQUE_TYPES.join(', ')}`)
  let fallback: unknown = null
  if (input.default !== undefined && input.default !== null) {
    if (unique) wrong('default', 'a unique field cannot have a default')
    const reading = readValue({ type, options: options ?? [] }, input.default)
    if ('msg' in reading) wrong('default', reading.msg)
    else fallback = reading.value
    for (const { msg } of sizeIssues({ [name]: fallback })) wrong('default', msg)
  }
  const description = input.description ?? null
  return { definition: { type, label, description, required, unique, options, default: fallback }, issues }
}
