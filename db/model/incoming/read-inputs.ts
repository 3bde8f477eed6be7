import type { InputSpec } from '../../../workflows/language/definition.ts'
import { CellProblem, readBoolean, readCell } from '../csv/read-cell.ts'

/**
 * The values of a payload as the types of the inputs that they are mapped to. Forms, queries, headers and XML have texts
 * only: they are read as the cells of an import are, and an empty one counts as missing unless the input is any text. XML
 * and forms have no list of one either: a single value is one. A value that does not read as its type stays as it is, and
 * `checkInputs` refuses it.
 */
export const readInputs = (
  specs: Record<string, InputSpec>,
  given: Record<string, unknown>,
): Record<string, unknown> =>
  Object.fromEntries(
    Object.entries(given).map(([name, value]) => [
      name,
      Object.hasOwn(specs, name) ? readAs(specs[name]!, value) : value,
    ]),
  )

function readAs(spec: InputSpec, value: unknown): unknown {
  if (typeof value === 'string') return readText(spec, value)
  const isScalar = typeof value === 'number' || typeof value === 'boolean'
  if (spec.type === 'string' && isScalar) return String(value)
  if (spec.type === 'boolean' && isScalar) return readBoolean(String(value)) ?? value
  if (spec.type === 'array' && value !== null && value !== undefined && !Array.isArray(value)) return [value]
  return value
}

function readText({ type, enum: allowed }: InputSpec, text: string): unknown {
  const isBlank = text.trim() === ''
  switch (type) {
    case 'any':
      return text
    case 'string':
      return isBlank && allowed && !allowed.includes(text) ? null : text
    case 'number':
      return isBlank ? null : readNumber(text)
    case 'boolean':
      return isBlank ? null : (readBoolean(text) ?? text)
    case 'array': {
      if (isBlank) return null
      const value = parsed(text) ?? text
      return Array.isArray(value) ? value : [value]
    }
    case 'object':
      return isBlank ? null : (parsed(text) ?? text)
  }
}

/** An ambiguous number, such as `1,250`, is none. */
function readNumber(text: string): unknown {
  try {
    return readCell(text, 'number')
  } catch (error) {
    if (error instanceof CellProblem) return text
    throw error
  }
}

/** The list or the object that a text has as JSON. */
function parsed(text: string): unknown {
  if (!/^\s*[[{]/.test(text)) return undefined
  try {
    return JSON.parse(text)
  } catch {
    return undefined
  }
}
