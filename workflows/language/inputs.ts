import type { InputSpec } from './definition.ts'
import { didYouMean } from './problems.ts'

export interface InputProblem {
  name: string
  message: string
  /** `missing`, `unknown_input`, `type_error`. */
  type: string
}

/** Checks the given inputs of a run against the inputs of the workflow, and sets defaults. */
export function checkInputs(
  specs: Record<string, InputSpec>,
  given: Record<string, unknown>,
): { inputs: Record<string, unknown>; problems: InputProblem[] } {
  const problems: InputProblem[] = []
  const inputs: [string, unknown][] = []
  for (const [name, spec] of Object.entries(specs)) {
    const value = Object.hasOwn(given, name) ? given[name] : undefined
    if (value === undefined || value === null) {
      if (spec.default !== undefined) inputs.push([name, spec.default])
      else if (spec.required) problems.push({ name, message: `Input ${name} is required.`, type: 'missing' })
      else inputs.push([name, null])
    } else if (!fits(spec.type, value))
      problems.push({ name, message: wrongType(name, spec.type, value), type: 'type_error' })
    else if (!isAllowed(spec, value))
      problems.push({ name, message: notAllowed(name, spec.enum!, String(value)), type: 'invalid_value' })
    else inputs.push([name, value])
  }
  for (const name of Object.keys(given))
    if (!Object.hasOwn(specs, name))
      problems.push({ name, message: `The workflow has no input ${name}.`, type: 'unknown_input' })
  return { inputs: Object.fromEntries(inputs), problems }
}

/** With what the placeholder of another workflow needs to convert the value. */
function wrongType(name: string, type: InputSpec['type'], value: unknown): string {
  const convert =
    type === 'string' && typeof value === 'number'
      ? ' (in a placeholder, `| append: ""` makes a text of a number)'
      : ''
  return `Input ${name} must be of type ${type}${convert}.`
}

/** Whether a value has the type of an input. */
export function fits(type: InputSpec['type'], value: unknown): boolean {
  if (type === 'any') return true
  if (type === 'array') return Array.isArray(value)
  if (type === 'object') return typeof value === 'object' && value !== null && !Array.isArray(value)
  return typeof value === type
}

/** Whether a value is one of those that the input allows. */
export const isAllowed = ({ enum: allowed }: InputSpec, value: unknown): boolean =>
  allowed === undefined || allowed.includes(String(value))

function notAllowed(name: string, allowed: readonly string[], value: string): string {
  const { hint } = didYouMean(value, allowed)
  return `Input ${name} must be one of ${allowed.join(', ').slice(0, 1_000)}${hint ? `: ${hint}` : '.'}`
}
