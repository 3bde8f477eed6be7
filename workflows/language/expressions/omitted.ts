import type { Value } from 'liquidjs'
import { isEmpty } from './truth.ts'

/**
 * `{{ x | omit_if_empty }}` leaves out the member or item whose whole value it is, if x is missing or empty: a write
 * then keeps the field, where null would clear it.
 */
export const OMIT = 'omit_if_empty'

/** The result of the filter for an empty value. It never leaves `render`. */
export const OMITTED = Symbol('omitted')

export const omitFilters = {
  [OMIT]: (value: unknown) => (isEmpty(value) ? OMITTED : value),
}

/** A value, or an expression in parentheses. */
interface Filtered {
  filters: readonly { name: string }[]
}

const omits = ({ filters }: Filtered) => filters.some(({ name }) => name === OMIT)

/** Whether the value may be missing, since a filter that accepts this follows directly. */
export const acceptsMissing = ({ filters: [first] }: Filtered): boolean =>
  first?.name === 'default' || first?.name === OMIT

/** Whether the parts of a text are one placeholder that may be left out. Throws an error for the author. */
export function mayOmit(parts: readonly (string | Value)[]): boolean {
  const [only] = parts
  const found = parts.some((part) => typeof part !== 'string' && omits(part))
  if (!found) return false
  if (parts.length > 1 || typeof only !== 'object' || only.filters.at(-1)!.name !== OMIT)
    throw new Error(`${OMIT} must be the last filter of a placeholder that is the whole text`)
  return true
}

/** Throws an error for the author if an expression in parentheses has the filter. */
export function requireNone(inParentheses: Filtered): void {
  if (omits(inParentheses)) throw new Error(`${OMIT} must be outside of parentheses, as the last filter`)
}
