import { type RenderLimits, render, type Scope } from '../language/expressions/liquid.ts'
import { NodeError } from '../language/node-error.ts'

/**
 * Whether the `when` of a node, a trigger, a wait or an endpoint holds: false, null, an empty text and the text `false`
 * do not. Returns NodeError `placeholder_error` if it cannot be rendered, so that callers can continue with others.
 */
export function evaluateWhen(
  when: string,
  scope: Scope,
  limits: Partial<RenderLimits> = {},
): boolean | NodeError {
  try {
    const value = render(when, scope, limits)
    return !(value === false || value === null || value === '' || value === 'false')
  } catch (error) {
    if (error instanceof NodeError) return error
    throw error
  }
}
