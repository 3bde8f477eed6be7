import { type RenderLimits, render, type Scope } from '../expressions/liquid.ts'

/**
 * Whether the `when` of a node or a trigger holds: false, null, an empty text and the text `false` do not.
 * Throws NodeError `placeholder_error` if it cannot be rendered.
 */
export function whenHolds(when: string, scope: Scope, limits: Partial<RenderLimits> = {}): boolean {
  const value = render(when, scope, limits)
  return !(value === false || value === null || value === '' || value === 'false')
}
